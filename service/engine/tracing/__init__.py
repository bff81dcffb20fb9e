"""Traces across the queue: a span of each request, and of each attempt at a task that it asked for.

`contexts` says which request's span tasks are added for, which their rows keep. `spans` is what the
service and the workers use; `span_export` alone imports OpenTelemetry, where the environment names
a collector and the extra `otel` is installed. Else nothing is imported, kept or measured.
"""
