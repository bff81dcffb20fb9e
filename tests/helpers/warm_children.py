"""Warm children of a worker, with a home."""

from pathlib import Path

from service.contract.assets import AssetFolders
from workers.runtime.child_services import ChildServices, ServiceSettings
from workers.runtime.warm_child import ChildFiles, WarmChild


def start_warm_child(home: Path, memory: int = 1_000_000_000) -> WarmChild:
    """A child whose folders are below the home."""
    places = AssetFolders(home)
    files = ChildFiles(home / "inputs", home / "work", places)
    for each in (files.inputs, files.work):
        each.mkdir(exist_ok=True)
    settings = {"PRESCORE_HOME": str(home), "PRESCORE_DEVICE": "cpu"}
    services = ChildServices(ServiceSettings(places, memory))
    return WarmChild("metrics", {**settings, "PRESCORE_TASK_MEMORY": str(memory)}, files, services)
