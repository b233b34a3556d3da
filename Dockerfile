# Two images: `process` computes nights in its own process and has no JVM, `spark` adds pyspark and a JRE.
#   docker build --target process -t rankeval .
FROM python:3.12-slim AS wheel
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY requirements/run.txt requirements/
COPY rankeval_spark rankeval_spark
# The versions of the lock, without its hashes: that is for all packages together, and an image has some of them.
RUN sed -nE 's/^([A-Za-z0-9._-]+==.*[^ \\]) *\\?$/\1/p' requirements/run.txt > constraints.txt
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim AS process
COPY --from=wheel /src/constraints.txt /wheels/ /opt/wheels/
RUN pip install --no-cache-dir -c /opt/wheels/constraints.txt "$(ls /opt/wheels/*.whl)[report,stores]"
RUN useradd --create-home --uid 10001 eval
USER 10001
WORKDIR /srv/eval
ENTRYPOINT ["rankeval"]
CMD ["--help"]

FROM process AS spark
USER 0
RUN pip install --no-cache-dir -c /opt/wheels/constraints.txt "$(ls /opt/wheels/*.whl)[spark,java]"
USER 10001
# Starts Spark once, which fetches Delta's jars: a night needs no network for them.
RUN python -c "from rankeval_spark import build_session; build_session('image').stop()"
