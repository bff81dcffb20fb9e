"""The guide as a site: it is built, without a broken link, and loads nothing from other hosts."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.documents import ROOT, pages, read

pytest.importorskip("mkdocs", reason="needs MkDocs: pip install '.[dev]'")
pytestmark = pytest.mark.processes

BIN = Path(sys.executable).parent
SITE = ROOT / "build" / "guide"
COPY = runpy.run_path(str(ROOT / "deploy/guide/site_files.py"))["copy_files"]


def test_the_site_has_every_page_of_the_guide_and_asks_no_other_host():
    command = ["sh", "deploy/guide/site.sh"]
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert str(SITE / "index.html") in done.stdout
    guide = [page for page in pages() if page.startswith("deploy/guide/")]
    for page in guide:
        name = page.removesuffix(".md").removesuffix("README") or "index"
        path = SITE / (f"{name}index.html" if page.endswith("README.md") else f"{name}.html")
        text = path.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|link)\b[^>]*?(?:src|href)=\"?([^\" >]+)", text)
        assert loaded
        assert [url for url in loaded if re.match(r"(https?:)?//", url)] == [], page


@pytest.mark.parametrize("target", ["scoring.md#nowhere", "nowhere.py"])
def test_a_broken_link_ends_the_build(tmp_path, target):
    COPY(tmp_path / "pages")
    page = tmp_path / "pages" / "deploy/guide/limits.md"
    page.write_text(f"[a link]({target})\n", encoding="utf-8")
    config = read("deploy/guide/mkdocs.yml").replace("../../build/guide-pages", "pages")
    (tmp_path / "mkdocs.yml").write_text(config.replace("../../build/guide", "site"))
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", tmp_path / "mkdocs.yml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert target.split("#")[-1] in done.stderr
