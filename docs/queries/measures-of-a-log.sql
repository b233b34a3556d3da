-- What are precision, recall, RR, AP and nDCG at 10 of each user, from your own tables alone?
--
-- One row a model and user with a relevant item, a gain of at least 1; users without a list have 0. These are P, R, RR, AP
-- and nDCG of evaluate(recommendations, held_out) with its defaults, see sql.md. The tables recommendations and held_out are
-- your own: give them your names and columns, and the condition that your config has for the date.
WITH judged AS (
  SELECT user_id, item_id, max(gain) AS gain FROM held_out GROUP BY user_id, item_id
),
users AS (
  SELECT user_id, sum(CASE WHEN gain >= 1 THEN 1 ELSE 0 END) AS n_relevant,
         sum(CASE WHEN place <= 10 THEN greatest(gain, 0) / log2(place + 1) ELSE 0 END) AS ideal
  FROM (SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY gain DESC) AS place FROM judged) AS best_first
  GROUP BY user_id
),
listed AS (
  SELECT model_id, user_id, item_id, max(score) AS score FROM recommendations GROUP BY model_id, user_id, item_id
),
ranked AS (
  SELECT listed.model_id, listed.user_id, judged.gain, CASE WHEN judged.gain >= 1 THEN 1 ELSE 0 END AS is_hit,
         row_number() OVER (PARTITION BY listed.model_id, listed.user_id ORDER BY score DESC, listed.item_id) AS place
  FROM listed LEFT JOIN judged ON judged.user_id = listed.user_id AND judged.item_id = listed.item_id
),
counted AS (
  SELECT *, sum(is_hit) OVER (PARTITION BY model_id, user_id ORDER BY place) AS n_hits FROM ranked
),
lists AS (
  SELECT model_id, user_id, sum(is_hit) AS hits, sum(is_hit * n_hits / place) AS precisions,
         min(CASE WHEN is_hit = 1 THEN place END) AS first_hit, sum(greatest(gain, 0) / log2(place + 1)) AS dcg
  FROM counted WHERE place <= 10
  GROUP BY model_id, user_id
)
SELECT models.model_id, users.user_id, coalesce(hits, 0) / 10 AS p, coalesce(hits, 0) / n_relevant AS r,
       coalesce(1 / first_hit, 0) AS rr, coalesce(precisions, 0) / n_relevant AS ap, coalesce(dcg, 0) / ideal AS ndcg
FROM users
CROSS JOIN (SELECT DISTINCT model_id FROM recommendations) AS models
LEFT JOIN lists ON lists.model_id = models.model_id AND lists.user_id = users.user_id
WHERE n_relevant > 0
ORDER BY models.model_id, users.user_id
