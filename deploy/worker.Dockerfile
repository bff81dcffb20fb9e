# The engine room: `prescore worker inference`, `prescore worker metrics` and, with neither network
# nor home, `prescore worker converter`.
#
#   docker build -f deploy/worker.Dockerfile -t prescore-worker:0.1.0 .
#
# torch is the CUDA build of the package index. `--build-arg TORCH=any` takes the one that pip finds by
# PIP_FIND_LINKS or PIP_EXTRA_INDEX_URL, given as build arguments, such as a CPU build; its hash is not
# compared. These arguments stay in the first stage. PYTHON: the base image, which
# `--build-arg PYTHON=python:3.11-slim@sha256:...` pins by its digest.
ARG PYTHON=python:3.11-slim
FROM ${PYTHON} AS build
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG PIP_FIND_LINKS
ARG TORCH=locked
RUN python -m venv /opt/prescore
WORKDIR /src
COPY deploy/constraints.txt deploy/
COPY deploy/locks deploy/locks
# Packages before the sources: layers that a change of ours leaves as they are. Each file has its hash.
RUN if [ "$TORCH" = locked ]; then set -- --no-deps --require-hashes -r deploy/locks/torch.txt; \
    else set -- -c deploy/constraints.txt torch; fi \
    && /opt/prescore/bin/pip install --no-cache-dir "$@"
RUN /opt/prescore/bin/pip install --no-cache-dir --no-deps --require-hashes \
    -r deploy/locks/worker.txt
RUN python -m venv /opt/tools \
    && /opt/tools/bin/pip install --no-cache-dir --no-deps --require-hashes -r deploy/locks/tools.txt
COPY pyproject.toml README.md LICENSE ./
COPY service service
COPY workers workers
RUN /opt/prescore/bin/pip install --no-cache-dir --no-index --no-deps --no-build-isolation \
    ./service/client '.[workers,otel]' && /opt/prescore/bin/pip check
RUN /opt/tools/bin/cyclonedx-py environment -o /opt/prescore/sbom.cdx.json /opt/prescore/bin/python

FROM ${PYTHON}
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
