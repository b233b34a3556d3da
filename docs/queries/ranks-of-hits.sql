-- At which rank did each of two models have the items that the users wanted?
--
-- One row a user and relevant item that at least one of the two recommended; NULL where the other did not. Published tables
-- hold no items: the tables recommendations and held_out are your own, see items-of-the-worst-users.sql. For frames that you
-- evaluate, evaluate(...).hit_ranks('als', 'popular') has the same rows, by the policies of the evaluation.
WITH ranked AS (
  SELECT model_id, user_id, item_id,
         row_number() OVER (PARTITION BY model_id, user_id ORDER BY score DESC, item_id) AS place
  FROM recommendations
)
SELECT shown.user_id, shown.item_id, max(wanted.gain) AS gain,
       min(CASE WHEN shown.model_id = 'popular' THEN shown.place END) AS baseline_rank,
       min(CASE WHEN shown.model_id = 'als' THEN shown.place END) AS rank
FROM ranked AS shown
JOIN held_out AS wanted ON wanted.user_id = shown.user_id AND wanted.item_id = shown.item_id
WHERE wanted.gain >= 1 AND shown.model_id IN ('als', 'popular')
GROUP BY shown.user_id, shown.item_id
ORDER BY shown.user_id, shown.item_id
