-- Which quantiles of the users' values did each model have, slice by slice, on the newest night?
--
-- One row a model, slice and share that the config names under quantiles. In the table metrics they are one map: there the
-- median is quantiles['0.5']. Where quantile_error is 0, they are exact.
SELECT evaluation, evaluation_date, model_id, slice, slice_value, n_users, share, value, quantile_error
FROM latest_quantiles
WHERE measure = 'nDCG' AND k = 10
ORDER BY evaluation, slice, slice_value, model_id, share
