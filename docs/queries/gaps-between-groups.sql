-- How far do the groups of users lie apart on the newest night?
--
-- One row a model and segment: the gap between the best and the worst group with its interval, the widest first. Small
-- groups and the unknown group are left out.
SELECT evaluation, evaluation_date, model_id, slice, value AS gap, ci_low, ci_high, n_users, n_left_out
FROM latest_group_metrics
WHERE measure = 'GroupGap(nDCG)' AND k = 10
ORDER BY evaluation, gap DESC, model_id, slice
