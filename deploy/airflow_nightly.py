"""A DAG of Airflow 3: evaluates each night, judges its gates, and promotes a model that may ship.

Copy it into the folder of DAGs. ``RANKEVAL_HOME`` of the scheduler's environment is the folder with the config; results
are where that says. Secrets, such as the address of a webhook, are variables of the workers' environment.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import dag
from airflow.timetables.interval import CronDataIntervalTimetable

HOME = os.environ.get("RANKEVAL_HOME", "/srv/eval")
RANKEVAL = os.environ.get("RANKEVAL", ".venv/bin/rankeval")
GATE_FAILED = 6  # published, and a model may not ship: no reason to run the night again
DAY = "{{ data_interval_start | ds }}"  # the same in each retry and in catch-up, whenever they run


@dag(
    dag_id="rankeval_nightly",
    # A run at 03:15 is about the day before. With a plain "15 3 * * *" Airflow 3 gives a run the day it starts on.
    schedule=CronDataIntervalTimetable("15 3 * * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=True,  # nights that were missed
    max_active_runs=1,  # one run a date, in order: checks compare a night with those before it
    default_args={"cwd": HOME, "append_env": True},
)
def rankeval_nightly() -> None:
    """Run, gate, promote: a night is published even where a model may not ship."""
    run = BashOperator(
        task_id="run",
        bash_command=f"{RANKEVAL} run conf/nightly.yaml --date {DAY} --json || [ $? = {GATE_FAILED} ]",
        retries=3,  # a rerun replaces its own date and nothing else
        retry_delay=timedelta(minutes=10),
    )
    gate = BashOperator(
        task_id="gate", bash_command=f"{RANKEVAL} gate results --date {DAY} --json", skip_on_exit_code=GATE_FAILED
    )
    promote = BashOperator(task_id="promote", bash_command=f"./promote.sh {DAY}")
    run >> gate >> promote


rankeval_nightly()
