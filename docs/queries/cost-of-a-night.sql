-- What does a night cost: seconds, and rows read?
--
-- One row a published run, the newest night first; a night that was run again has several, the last one at the end.
-- Stages are in the view run_stages, inputs in run_inputs.
SELECT stages.evaluation, stages.evaluation_date, stages.run_id, stages.seconds, stages.slowest_seconds, inputs.n_rows
FROM (
  SELECT evaluation, evaluation_date, run_id, sum(seconds) AS seconds, max(seconds) AS slowest_seconds
  FROM run_stages WHERE status = 'PUBLISHED'
  GROUP BY evaluation, evaluation_date, run_id
) AS stages
JOIN (
  SELECT run_id, sum(n_rows) AS n_rows
  FROM run_inputs WHERE status = 'PUBLISHED'
  GROUP BY run_id
) AS inputs ON inputs.run_id = stages.run_id
ORDER BY stages.evaluation_date DESC, stages.evaluation, stages.run_id
