-- Which nights failed, where, and why?
--
-- One row a night whose last run failed, the newest first. has_results says whether an earlier run of the same night
-- was published: its results are still there.
SELECT evaluation, evaluation_date, error_stage, failed_checks, error_message, has_results, recorded_at
FROM nights
WHERE status = 'FAILED'
ORDER BY evaluation_date DESC, evaluation
