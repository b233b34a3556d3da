-- Which share of the users gains, and which loses, more than 0.05 with each model instead of the baseline?
--
-- One row a model. The mean difference can be 0 while a quarter of the users loses what another quarter gains. 0.05 is a
-- difference of nDCG@10 that is worth a look: choose your own. Where the config names a margin, comparisons has both shares.
WITH of_users AS (
  SELECT evaluation, evaluation_date, model_id, user_id, avg(ndcg) AS value
  FROM latest_user_metrics
  WHERE k = 10 AND ndcg IS NOT NULL
  GROUP BY evaluation, evaluation_date, model_id, user_id
)
SELECT one.evaluation, one.evaluation_date, one.model_id, count(*) AS n_users,
       avg(CASE WHEN one.value - base.value > 0.05 THEN 1 ELSE 0 END) AS share_gains,
       avg(CASE WHEN one.value - base.value < -0.05 THEN 1 ELSE 0 END) AS share_loses,
       avg(one.value - base.value) AS mean_difference
FROM of_users AS one
INNER JOIN of_users AS base
  ON base.evaluation = one.evaluation AND base.evaluation_date = one.evaluation_date AND base.user_id = one.user_id
WHERE base.model_id = 'popular' AND one.model_id <> 'popular'
GROUP BY one.evaluation, one.evaluation_date, one.model_id
ORDER BY one.evaluation, one.model_id
