-- How are the values of the users spread, beyond their mean?
--
-- One row a model with exact quantiles over users on the newest night: half of the users have at most the median. Users
-- with several lists have the mean of their lists. Another measure is another column: AP(denom='min') is ap_denom_min.
SELECT evaluation, evaluation_date, model_id, count(*) AS n_users,
       percentile_cont(0.1) WITHIN GROUP (ORDER BY value) AS low_tenth,
       percentile_cont(0.25) WITHIN GROUP (ORDER BY value) AS low_quarter,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY value) AS median,
       percentile_cont(0.75) WITHIN GROUP (ORDER BY value) AS high_quarter,
       percentile_cont(0.9) WITHIN GROUP (ORDER BY value) AS high_tenth,
       avg(value) AS mean
FROM (
  SELECT evaluation, evaluation_date, model_id, user_id, avg(ndcg) AS value
  FROM latest_user_metrics
  WHERE k = 10 AND ndcg IS NOT NULL
  GROUP BY evaluation, evaluation_date, model_id, user_id
) AS of_users
GROUP BY evaluation, evaluation_date, model_id
ORDER BY evaluation, model_id
