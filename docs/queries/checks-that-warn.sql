-- What was wrong with the inputs of the newest night?
--
-- One row a check that is not ok, with the share of bad rows, lists or users, and a few of them. A check that fails
-- ends its run before anything is published: it is in nights-that-failed.sql.
SELECT c.evaluation, c.evaluation_date, c.input, c.check, c.verdict, c.count, c.share, c.threshold, c.examples
FROM latest_checks AS c
WHERE c.verdict <> 'ok'
ORDER BY c.evaluation, c.share DESC, c.input, c.check
