"""The page's types agree with the published interface, and its files have one form.

With Node, and the packages of `types/package-lock.json`, which are for development alone.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.processes]
ROOT = Path(__file__).resolve().parents[3]
TOOLS = Path(__file__).with_name("types")


def _run(folder, *command):
    return subprocess.run(
        command, check=False, cwd=folder, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if shutil.which("npm") is None:
        pytest.skip("no npm: Debian's package `npm`")
    made = tmp_path_factory.mktemp("types")
    for path in TOOLS.iterdir():
        shutil.copy(path, made)
    shutil.copytree(ROOT / "service" / "web", made / "web")
    installed = _run(made, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    if installed.returncode:
        pytest.skip(f"npm cannot install the tools here: {installed.stderr.strip()[:300]}")
    interface = str(ROOT / "openapi" / "openapi.json")
    made_types = _run(made, "npx", "openapi-typescript", interface, "-o", "schemas.d.ts")
    assert made_types.returncode == 0, made_types.stderr
    return made


def test_the_page_asks_for_what_the_interface_answers(folder):
    checked = _run(folder, "npx", "tsc", "-p", "tsconfig.json")
    assert checked.stdout == ""


def test_a_wrong_field_is_found(folder):
    path = folder / "web" / "views" / "wrong.js"
    path.write_text(
        '/** @param {import("../core/api.js").Schemas["Evaluation"]} run */\n'
        "export const wrong = (run) => run.absent;\n"
    )
    try:
        found = _run(folder, "npx", "tsc", "-p", "tsconfig.json").stdout
    finally:
        path.unlink()
    assert "Property 'absent' does not exist" in found


def test_files_have_the_form_that_the_formatter_gives(folder):
    """Mend: npx prettier --print-width 110 --write 'service/web/**/*.js'"""
    told = _run(folder, "npx", "prettier", "--check", "web/**/*.js")
    assert told.returncode == 0, told.stdout + told.stderr
