# The front door, without torch: `prescore api`, `prescore janitor` and `prescore migrate`.
#
#   docker build -f deploy/api.Dockerfile -t prescore-api:0.1.0 .
#
# pip's own variables may be given as build arguments; they stay in the first stage.
FROM python:3.11-slim AS build
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG PIP_FIND_LINKS
RUN python -m venv /opt/prescore
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY deploy/constraints.txt deploy/
COPY service service
RUN /opt/prescore/bin/pip install --no-cache-dir -c deploy/constraints.txt \
    ./service/client '.[service,otel,s3]'

FROM python:3.11-slim
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
