-- On which nights did a measure mean something else than the night before?
--
-- One row a change of options or policies. Values before and after it do not compare.
SELECT evaluation, evaluation_date, measure, k, definition, definition_before
FROM (
  SELECT *, lag(definition) OVER (PARTITION BY evaluation, measure, k ORDER BY evaluation_date, recorded_at)
              AS definition_before
  FROM (
    SELECT evaluation, evaluation_date, recorded_at, measure, k,
           concat_ws('; ', name, options, policies, group_rule) AS definition
    FROM run_measures WHERE status = 'PUBLISHED'
  ) AS published
) AS definitions
WHERE definition <> definition_before
ORDER BY evaluation, evaluation_date, measure, k
