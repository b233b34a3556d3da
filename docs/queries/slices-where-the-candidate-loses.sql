-- For which users is the candidate worse than the baseline on the newest night?
--
-- One row a slice with a lower mean, the greatest loss first. Both means are over the same users; in an A/B test, over
-- those of each model. verdict says whether the loss is more than chance after the correction for the number of tests:
-- worse, or undecided.
SELECT evaluation, evaluation_date, model_id, baseline_model_id, slice, slice_value,
       delta, ci_low, ci_high, p_adjusted, verdict, n_users, is_small
FROM latest_comparisons
WHERE test IN ('t', 'unpaired') AND measure = 'nDCG' AND k = 10 AND delta < 0
ORDER BY evaluation, delta, model_id, slice, slice_value
