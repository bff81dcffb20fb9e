"""Which plug-ins are installed here. Looking does not import them.

A process that has imported a plug-in keeps its code, whatever is installed afterwards; so it keeps
the version, too, with which it was imported.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from service.contract.errors import PluginFailed, PluginUnavailable
from service.contract.formats.plugins import GROUP, InstalledPlugin
from workers.inference.plugins import guarding

Factory = Callable[..., Any]


@dataclass(frozen=True)
class Loaded:
    plugin: InstalledPlugin
    factory: Factory


@dataclass(frozen=True)
class Installed:
    """`usable`: by name; `wrong`: why others are not, by what they call themselves."""

    usable: Mapping[str, InstalledPlugin]
    wrong: Mapping[str, str]

    def __str__(self) -> str:
        return ", ".join(map(str, self.usable.values())) or "none"


_loaded: dict[str, Loaded] = {}  # in this process


def look() -> Installed:
    by_name: dict[str, list[InstalledPlugin]] = {}
    for entry in entry_points(group=GROUP):  # of a package that is found twice, the first
        by_name.setdefault(entry.name, []).append(_of(entry))
    wrong = {
        f"{name!r:.80}": problem
        for name, found in sorted(by_name.items())
        if (problem := _problem(found)) is not None
    }
    usable = {name: found[0] for name, found in sorted(by_name.items()) if _problem(found) is None}
    return Installed(usable, wrong)


def check(asked: InstalledPlugin) -> None:
    """Raise PluginUnavailable unless this very version is here."""
    here = _loaded[asked.name].plugin if asked.name in _loaded else _find(asked.name)
    if here != asked:
        raise PluginUnavailable(
            f"expected the plug-in {asked}, this worker has {here}: install the same version on "
            "all workers of the service, and start them again"
        )


def load(name: str) -> Loaded:
    """Import a plug-in. Raises PluginUnavailable and PluginFailed."""
    if name not in _loaded:
        plugin = _find(name)
        (entry,) = _entries(name)
        with guarding.failures(plugin, "importing it"):
            factory = entry.load()
        if not callable(factory):
            raise PluginFailed(
                f"the plug-in {plugin}: expected {entry.value} to be a factory that is called with "
                f"config, tensors and description, found {type(factory).__name__}"
            )
        _loaded[name] = Loaded(plugin, factory)
    return _loaded[name]


def _find(name: str) -> InstalledPlugin:
    installed = look()
    if name in installed.usable:
        return installed.usable[name]
    wrong = installed.wrong.get(f"{name!r:.80}")
    if wrong is not None:
        raise PluginUnavailable(f"the plug-in {name!r} cannot be used here: {wrong}")
    raise PluginUnavailable(
        f"expected the plug-in {name!r}, which is not installed here; plug-ins here: "
        f"{installed!s:.500}. Install a package with this entry point of {GROUP}"
    )


def _entries(name: str) -> Sequence[EntryPoint]:
    return list(entry_points(group=GROUP, name=name))[:1]


def _of(entry: EntryPoint) -> InstalledPlugin:
    """Its package and version are empty where the package does not say them."""
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
