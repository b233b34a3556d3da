-- On which nights did a measure mean something else than the night before?
--
-- One row a change of options or policies. Values before and after it do not compare.
SELECT evaluation, evaluation_date, measure, k, definition, definition_before
FROM (
  SELECT evaluation, evaluation_date, measure, k, definition,
         lag(definition) OVER (PARTITION BY evaluation, measure, k ORDER BY evaluation_date, recorded_at)
           AS definition_before
  FROM run_measures WHERE status = 'PUBLISHED'
) AS definitions
WHERE definition <> definition_before
ORDER BY evaluation, evaluation_date, measure, k
