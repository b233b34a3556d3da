-- Which users does a model serve worst on the newest night?
--
-- Users without a hit come first, and of them those who had the most to find. user_metrics has a column a measure:
-- nDCG is ndcg, AP(denom='min') is ap_denom_min. n_recommended = 0 is a user without a list. The table has no items:
-- items-of-the-worst-users.sql takes them from the log.
SELECT evaluation, evaluation_date, user_id, ndcg AS value, n_relevant, n_hits, n_recommended
FROM latest_user_metrics
WHERE k = 10 AND model_id = 'als' AND ndcg IS NOT NULL
ORDER BY evaluation, value, n_relevant DESC, user_id
LIMIT 20
