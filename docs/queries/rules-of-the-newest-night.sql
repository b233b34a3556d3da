-- May the model ship?
--
-- One row a rule of `gates` and slice, what is not met first, with the verdict in a sentence.
SELECT evaluation, evaluation_date, model_id, rule, verdict, explanation
FROM latest_gates
ORDER BY evaluation, CASE WHEN verdict = 'passed' THEN 1 ELSE 0 END, gate, model_id, slice, slice_value
