-- Does a model buy accuracy with the same few items for everyone?
--
-- One row a model of the newest night: nDCG next to Personalization, the share in which the lists of two users differ.
-- CatalogCoverage, Gini, MIUF or any other measure of the config can take its place.
SELECT evaluation, evaluation_date, model_id,
       max(CASE WHEN measure = 'nDCG' THEN value END) AS accuracy,
       max(CASE WHEN measure = 'Personalization' THEN value END) AS personalization
FROM latest_metrics
WHERE slice = 'all' AND k = 10 AND measure IN ('nDCG', 'Personalization')
GROUP BY evaluation, evaluation_date, model_id
ORDER BY evaluation, accuracy DESC, model_id
