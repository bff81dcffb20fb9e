"""Packages of other tools, which are imported only where their format is written."""

from importlib import import_module
from typing import Any

from prescore.errors import InvalidArgument


def import_peer(module: str, extra: str) -> Any:
    """Import a tool's module. Raise InvalidArgument, with the extra to install, if it is absent."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise InvalidArgument(
            f"expected the package {error.name}, found none: pip install 'prescore-client[{extra}]'"
        ) from None
