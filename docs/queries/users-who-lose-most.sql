-- Which users lose most if the candidate replaces the baseline?
--
-- One row a user with a value under both models, the greatest loss first. Users with several lists have the mean of
-- their lists. Results.user_differences is the same in Python, for two nights too.
SELECT evaluation, evaluation_date, user_id, value, baseline_value, value - baseline_value AS delta
FROM (
  SELECT evaluation, evaluation_date, user_id,
         avg(CASE WHEN model_id = 'als' THEN ndcg END) AS value,
         avg(CASE WHEN model_id = 'popular' THEN ndcg END) AS baseline_value
  FROM latest_user_metrics
  WHERE k = 10
  GROUP BY evaluation, evaluation_date, user_id
) AS of_users
WHERE value < baseline_value
ORDER BY evaluation, delta, user_id
LIMIT 20
