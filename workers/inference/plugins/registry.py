"""Registry of the plug-ins that are installed here, and failures of their code. Looking does not
import them.

A process that has imported a plug-in keeps its code, whatever is installed afterwards; so it keeps
the version, too, with which it was imported.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from types import FrameType
from typing import Any, NoReturn

from prescore.plain_text import quoted
from service.contract.errors import (
    PluginFailed,
    PluginUnavailable,
    PrescoreError,
    UnusableCheckpoint,
)
from service.contract.findings import describe_error
from service.contract.formats.plugins import GROUP, InstalledPlugin

Factory = Callable[..., Any]


@dataclass(frozen=True)
class LoadedPlugin:
    plugin: InstalledPlugin
    factory: Factory


@dataclass(frozen=True)
class InstalledPlugins:
    """Installed plug-ins. `usable`: by name; `wrong`: why others are not, by their own names."""

    usable: Mapping[str, InstalledPlugin]
    wrong: Mapping[str, str]

    def __str__(self) -> str:
        return ", ".join(map(str, self.usable.values())) or "none"


_loaded: dict[str, LoadedPlugin] = {}  # in this process


def find_plugins() -> InstalledPlugins:
    by_name: dict[str, list[InstalledPlugin]] = {}
    for entry in entry_points(group=GROUP):  # of a package that is found twice, the first
        by_name.setdefault(entry.name, []).append(_of(entry))
    wrong = {
        f"{name!r:.80}": problem
        for name, found in sorted(by_name.items())
        if (problem := _problem(found)) is not None
    }
    usable = {name: found[0] for name, found in sorted(by_name.items()) if _problem(found) is None}
    return InstalledPlugins(usable, wrong)


def check_plugin(asked: InstalledPlugin) -> None:
    """Raise PluginUnavailable unless this very version is here."""
    here = _loaded[asked.name].plugin if asked.name in _loaded else _find(asked.name)
    if here != asked:
        raise PluginUnavailable(
            f"expected the plug-in {asked}, this worker has {here}: install the same version on "
            "all workers of the service, and start them again"
        )


def load_plugin(name: str) -> LoadedPlugin:
    """Import a plug-in. Raises PluginUnavailable and PluginFailed."""
    if name not in _loaded:
        plugin = _find(name)
        entry = next(iter(entry_points(group=GROUP, name=name)))
        with translate_failures(plugin, "importing it"):
            factory = entry.load()
        if not callable(factory):
            raise PluginFailed(
                f"the plug-in {plugin}: expected {entry.value} to be a factory that is called with "
                f"config, tensors and description, found {type(factory).__name__}"
            )
        _loaded[name] = LoadedPlugin(plugin, factory)
    return _loaded[name]


def _find(name: str) -> InstalledPlugin:
    installed = find_plugins()
    if name in installed.usable:
        return installed.usable[name]
    wrong = installed.wrong.get(f"{name!r:.80}")
    if wrong is not None:
        raise PluginUnavailable(f"the plug-in {name!r} cannot be used here: {wrong}")
    raise PluginUnavailable(
        f"expected the plug-in {name!r}, which is not installed here; plug-ins here: "
        f"{installed!s:.500}. Install a package with this entry point of {GROUP}"
    )


def _of(entry: EntryPoint) -> InstalledPlugin:
    """Describe a plug-in; package and version are empty where the package does not name them."""
    package = entry.dist
    if package is None:
        return InstalledPlugin(entry.name, "", "")
    return InstalledPlugin(
        entry.name, package.metadata["Name"] or "", package.metadata["Version"] or ""
    )


def _problem(found: Sequence[InstalledPlugin]) -> str | None:
    if len(found) > 1:
        given = ", ".join(sorted(f"{each.package} {each.version}" for each in found))
        return f"expected one package that has it, found {given:.300}: uninstall all but one"
    return found[0].oddity()


SECONDS = 240.0  # of one call; usual ones take less than 5


class PluginRefusal(Exception):
    """A plug-in raises it where a checkpoint's config or tensors are not what it expects."""


class _CallTimeout(BaseException):
    """A call takes too long. No Exception: a plug-in's own code must not catch it."""


@contextlib.contextmanager
def translate_failures(plugin: InstalledPlugin, doing: str) -> Iterator[None]:
    """Turn what the plug-in's code raises into UnusableCheckpoint, where it refuses a checkpoint,
    or PluginFailed. What Prescore's own helpers raise, and MemoryError, stay as they are.
    """
    try:
        with _limited():
            yield
    except (PrescoreError, MemoryError):
        raise
    except PluginRefusal as refused:
        raise UnusableCheckpoint(f"the plug-in {plugin} refused it: {_text(refused)}") from None
    except _CallTimeout:
        raise PluginFailed(
            f"the plug-in {plugin} failed in {doing}: no answer within {SECONDS:g} s"
        ) from None
    except (Exception, SystemExit) as error:
        detail = f"the plug-in {plugin} failed in {doing}: {quoted(describe_error(error))}"
        raise PluginFailed(detail) from error


def _text(error: Exception) -> str:
    return quoted(describe_error(error).removeprefix(f"{type(error).__name__}: "))


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Raise _CallTimeout after SECONDS. Elsewhere the task's own deadline ends it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _late(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
    raise _CallTimeout
