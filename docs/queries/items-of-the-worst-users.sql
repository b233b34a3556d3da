-- What were the users shown whom a model serves worst, and what did they want?
--
-- Published tables hold no items. This query takes them from your own tables, here called recommendations and held_out:
-- give them your names and columns, and the condition that your config has for the date.
SELECT worst.user_id, shown.item_id, shown.score, wanted.gain
FROM (
  SELECT user_id FROM latest_user_metrics
  WHERE k = 10 AND model_id = 'als' AND ndcg IS NOT NULL
  ORDER BY ndcg, n_relevant DESC, user_id
  LIMIT 5
) AS worst
JOIN recommendations AS shown ON shown.user_id = worst.user_id AND shown.model_id = 'als'
LEFT JOIN held_out AS wanted ON wanted.user_id = shown.user_id AND wanted.item_id = shown.item_id
ORDER BY worst.user_id, shown.score DESC, shown.item_id
