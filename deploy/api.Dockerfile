# The front door, without torch: `prescore api`, `prescore janitor` and `prescore migrate`.
#
#   docker build -f deploy/api.Dockerfile -t prescore-api:0.1.0 .
#
# pip's own variables may be given as build arguments; they stay in the first stage. PYTHON: the base
# image, which `--build-arg PYTHON=python:3.11-slim@sha256:...` pins by its digest.
ARG PYTHON=python:3.11-slim
FROM ${PYTHON} AS build
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG PIP_FIND_LINKS
RUN python -m venv /opt/prescore
WORKDIR /src
COPY deploy/locks deploy/locks
# Packages before the sources: a layer that a change of ours leaves as it is. Each file has its hash.
RUN /opt/prescore/bin/pip install --no-cache-dir --no-deps --require-hashes -r deploy/locks/api.txt
RUN python -m venv /opt/tools \
    && /opt/tools/bin/pip install --no-cache-dir --no-deps --require-hashes -r deploy/locks/tools.txt
COPY pyproject.toml README.md LICENSE ./
COPY service service
RUN /opt/prescore/bin/pip install --no-cache-dir --no-index --no-deps --no-build-isolation \
    ./service/client '.[service,otel,s3]' && /opt/prescore/bin/pip check
RUN /opt/tools/bin/cyclonedx-py environment -o /opt/prescore/sbom.cdx.json /opt/prescore/bin/python

FROM ${PYTHON}
RUN groupadd --gid 10001 prescore \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp prescore \
    && install -d -o prescore -g prescore -m 700 /var/lib/prescore
COPY --from=build /opt/prescore /opt/prescore
ENV PATH=/opt/prescore/bin:$PATH
ENV PRESCORE_HOME=/var/lib/prescore
ENV PYTHONUNBUFFERED=1
USER 10001:10001
EXPOSE 8000
ENTRYPOINT ["prescore"]
CMD ["api"]
