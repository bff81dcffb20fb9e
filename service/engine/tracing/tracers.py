"""Choice of a process's tracer, by OpenTelemetry's own variables.

They are its standard ones, which the SDK reads too: so this is no setting of ours.
"""

from collections.abc import Mapping
from importlib.util import find_spec

import structlog

from service.engine.tracing.spans import OFF, Tracer

log = structlog.get_logger()

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_SPOKEN = "http/protobuf"
_NEEDED = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


def choose_tracer(role: str, environment: Mapping[str, str]) -> Tracer:
    """The tracer of a process; `OFF` where no collector is named, or the extra is missing."""
    if not is_tracing_wanted(environment):
        return OFF
    protocol = next((environment[name] for name in _PROTOCOLS if environment.get(name)), _SPOKEN)
    if protocol != _SPOKEN:
        log.warning("no traces", reason=f"the protocol is {protocol:.20}, expected {_SPOKEN}")
        return OFF
    if not all(map(_is_there, _NEEDED)):
        log.warning("no traces", reason="the extra otel is not installed: pip install '.[otel]'")
        return OFF
    from service.engine.tracing import span_export  # noqa: PLC0415  only where it is wanted

    return span_export.export_to_collector(role, environment)


def is_tracing_wanted(environment: Mapping[str, str]) -> bool:
    """True if a collector is named, and nothing says that no spans are to be sent."""
    exporter = environment.get("OTEL_TRACES_EXPORTER") or "otlp"
    return (
        any(environment.get(name) for name in _ENDPOINTS)
        and environment.get("OTEL_SDK_DISABLED", "").strip().lower() != "true"
        and exporter.strip().lower() == "otlp"
    )


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # nor is the package around it
        return False
