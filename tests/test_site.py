"""The guide as a site: it is built, without a broken link, and loads nothing from other hosts."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.documents import ROOT, pages, read

pytest.importorskip("mkdocs", reason="needs MkDocs: pip install '.[dev]'")
pytestmark = pytest.mark.processes

BIN = Path(sys.executable).parent
SITE = ROOT / "build" / "guide"


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


def test_a_broken_link_ends_the_build(tmp_path):
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "scoring.md").write_text("# Scores\n", encoding="utf-8")
    page = tmp_path / "pages" / "README.md"
    page.write_text("[an anchor](scoring.md#nowhere) [a file](absent.py)\n", encoding="utf-8")
    config = read("deploy/guide/mkdocs.yml").partition("nav:")[0]
    config = config.replace("../../build/guide-pages", "pages")
    (tmp_path / "mkdocs.yml").write_text(config.replace("../../build/guide", "site"))
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", tmp_path / "mkdocs.yml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "nowhere" in done.stderr
    assert "absent.py" in done.stderr
