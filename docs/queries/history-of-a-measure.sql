-- How did one measure develop, night by night?
--
-- One row a model and night, oldest first, with the change since the night before. Users differ from night to night,
-- so a change within the intervals means nothing yet: `rankeval compare --against previous` tests it.
SELECT evaluation, evaluation_date, model_id, value, ci_low, ci_high, n_users,
       value - lag(value) OVER (PARTITION BY evaluation, model_id ORDER BY evaluation_date) AS change
FROM metrics
WHERE slice = 'all' AND measure = 'nDCG' AND k = 10
ORDER BY evaluation, model_id, evaluation_date
