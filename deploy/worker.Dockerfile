# The engine room: `prescore worker inference`, `prescore worker metrics` and, with neither network
# nor home, `prescore worker converter`.
#
#   docker build -f deploy/worker.Dockerfile -t prescore-worker:0.1.0 .
#
# pip takes the CUDA build of torch, unless PIP_FIND_LINKS or PIP_EXTRA_INDEX_URL, given as a build
# argument, leads it to a CPU build. These arguments stay in the first stage.
FROM python:3.11-slim AS build
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG PIP_FIND_LINKS
RUN python -m venv /opt/prescore
WORKDIR /src
COPY deploy/constraints.txt deploy/
# torch before the sources: a layer that a change of ours leaves as it is
RUN /opt/prescore/bin/pip install --no-cache-dir -c deploy/constraints.txt torch
COPY pyproject.toml README.md LICENSE ./
COPY service service
COPY workers workers
RUN /opt/prescore/bin/pip install --no-cache-dir -c deploy/constraints.txt \
    ./service/client '.[workers,otel]'

FROM python:3.11-slim
RUN groupadd --gid 10001 prescore \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp prescore \
    && install -d -o prescore -g prescore -m 700 /var/lib/prescore /run/prescore
COPY --from=build /opt/prescore /opt/prescore
ENV PATH=/opt/prescore/bin:$PATH
ENV PRESCORE_HOME=/var/lib/prescore
ENV PYTHONUNBUFFERED=1
USER 10001:10001
ENTRYPOINT ["prescore"]
CMD ["worker", "inference"]
