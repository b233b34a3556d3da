-- Which model is best on the newest night, and how certain is that?
--
-- One row a model: the mean over all users with its interval, best first. Change the measure and the cutoff;
-- k = 0 is the whole list. For errors such as RMSE, the lowest value is the best: order ascending.
SELECT evaluation, evaluation_date, model_id, value, ci_low, ci_high, n_users
FROM latest_metrics
WHERE slice = 'all' AND measure = 'nDCG' AND k = 10
ORDER BY evaluation, value DESC, model_id
