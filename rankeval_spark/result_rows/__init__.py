"""From merged aggregates to rows of the result tables, in Arrow: no Spark here."""
