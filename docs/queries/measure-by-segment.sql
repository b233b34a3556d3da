-- How good is each model for each country, on the newest night?
--
-- Change the slice, the measure and the cutoff; a crossing is 'country*device'.
SELECT evaluation, evaluation_date, model_id, slice_value, value, ci_low, ci_high, n_users
FROM latest_metrics
WHERE slice = 'country' AND measure = 'nDCG' AND k = 10
ORDER BY evaluation, slice_value, value DESC, model_id
