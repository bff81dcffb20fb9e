import json
from pathlib import Path

from service import app, problems
from service.contract import errors

DOCUMENT = Path(__file__).resolve().parents[2] / "openapi" / "openapi.json"


def test_the_published_interface_is_the_apps():
    """Out of date? python -m service openapi > openapi/openapi.json"""
    assert json.loads(DOCUMENT.read_text(encoding="utf-8")) == app.describe()


def test_the_interface_is_openapi_3_1():
    assert app.describe()["openapi"].startswith("3.1")


def _all(kind):
    for child in kind.__subclasses__():
        yield child
        yield from _all(child)


def test_every_refusal_has_an_http_status():
    for kind in _all(errors.RequestRefused):
        assert any(parent in problems.STATUS for parent in kind.__mro__[:-4]), kind
        assert 400 <= problems.status_of(kind.__new__(kind)) < 600


def test_the_tree_in_the_errors_module_names_every_error():
    for kind in _all(errors.PrescoreError):
        assert f" {kind.__name__} " in errors.__doc__ or f"{kind.__name__}\n" in errors.__doc__, (
            kind
        )
