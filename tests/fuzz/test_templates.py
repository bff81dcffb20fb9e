"""Chat templates and processors' configurations with changes anywhere, rendered and used in the
sandbox: whatever they do, their process alone ends, within its limits, and answers are bounded.
"""

import json
import os
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fuzz import bounds, edits
from helpers import changed_folders, vision_language_folders
from service.kernel import confinement
from service.kernel.process_limits import ChildLimits
from workers.inference.huggingface import prompted_pictures
from workers.sandbox import exchange
from workers.sandbox.operations import ChildStopped, InputRefused, StayingChild

pytestmark = [
    pytest.mark.processes,
    pytest.mark.long,
    pytest.mark.skipif(
        confinement.explain_missing_sandbox() is not None, reason="this machine has no sandbox"
    ),
    pytest.mark.filterwarnings("ignore"),
]

SECONDS = float(os.environ.get("PRESCORE_FUZZ_SECONDS", "600"))
FEW, ROUND = 6, 200
ANSWER = 10.0  # seconds of an answer here; the service allows more
LIBRARIES = 2_000_000_000  # bytes of a child beside what it may take
MOST = 1 << 26  # bytes of the tensors of one small picture
COMMON = settings(
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)
# What templates are made of, with what has left other sandboxes of Jinja, and what has no end.
_PARTS = (
    *("{{ ", " }}", "{% ", " %}", "{# ", " #}", "{%- ", " -%}", "\n", "'", "[", "]", "(", ")"),
    *("{% for m in messages %}", "{% endfor %}", "{% if m.role == 'user' %}", "{% endif %}"),
    *("{{ m.content[0].text }}", "{{ messages }}", "{{ bos_token }}", "{{ '<image>' }}"),
    *("{% for i in range(99999) %}", "{% for i in range(10 ** 18) %}", "{{ 'a' * 10 ** 9 }}"),
    *("{{ 10 ** 10 ** 8 }}", "{{ '%s' % messages }}", "{{ '%99999999d' % 1 }}", "{{ x.y.z }}"),
    *("{{ '{0.__class__}'.format(1) }}", "{{ ''.__class__.__mro__[1].__subclasses__() }}"),
    *("{{ cycler.__init__.__globals__.os.popen('id') }}", "{{ self._TemplateReference__context }}"),
    *("{{ lipsum.__globals__ }}", "{{ namespace() }}", "{% include '/etc/passwd' %}"),
    *("{% import 'os' as os %}", "{% extends 'x' %}", "{% macro f(x) %}{{ f(x) }}{% endmacro %}"),
    *("{{ f(1) }}", "{% set n = namespace(s='ab') %}", "{% set n.s = n.s + n.s %}", "{{ n.s }}"),
    *("{% generation %}", "{% endgeneration %}", "{{ raise_exception('x') }}", "{% break %}"),
    *(
        "{{ strftime_now('%Y' * 9999) }}",
        "{{ messages | tojson(indent=99999999) }}",
        "{{ ''|xmlattr }}",
    ),
    *("{{ messages | join('a' * 99999) }}", "{{ [1] * 10 ** 9 }}", "{{ 'a'.center(10 ** 9) }}"),
    *("{{ ('a' * 99999) | wordwrap(1) }}", "{{ messages | map('first') | list }}", "\ud800"),
)
_TEMPLATES = st.lists(st.sampled_from(_PARTS), max_size=12).map("".join)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "llava"
    vision_language_folders.save_model(folder, "llava")
    return folder


class _Builder:
    """A child that builds processors, started again where it has ended."""

    def __init__(self, package: Path) -> None:
        self._package = package
        self._child: StayingChild | None = None
        self.ends: Counter[str] = Counter()

    def build(self, texts: dict[str, str]) -> None:
        """Count how it ended; raises where something else does than may."""
        if self._child is None or not self._child.is_open:
            self._child = StayingChild(
                "changed_folders:serve",
                [self._package],
                {"prompt": "one is"},
                shared=exchange.SHARED_BYTES,
                limits=ChildLimits(60.0, None, prompted_pictures._MEMORY),
                modules=[Path(changed_folders.__file__).parent],
            )
        child = self._child
        asked = json.dumps(texts).encode()
        child.memory[: len(asked)] = asked
        try:
            told = child.ask({"do": "build", "bytes": len(asked)}, ANSWER)
        except (ChildStopped, InputRefused) as stopped:
            self.ends[f"its process ended: {stopped!s:.40}"] += 1
            return
        assert told["bytes"] <= MOST
        assert psutil.Process(child.pid).memory_info().rss < prompted_pictures._MEMORY + LIBRARIES
        self.ends["refused" if "refused" in told else "used"] += 1

    def close(self) -> None:
        if self._child is not None:
            self._child.close()


@pytest.fixture
def builder(folder):
    with prompted_pictures._join_texts(folder) as package, closing(_Builder(package)) as made:
        yield made


def _changes(folder: Path) -> st.SearchStrategy[dict[str, str]]:
    def changed(name: str) -> st.SearchStrategy[dict[str, str]]:
        text = st.builds(edits.edited, st.just((folder / name).read_bytes()), edits.EDITS)
        return text.map(lambda data: {name: data.decode("utf-8", "replace")})

    template = _TEMPLATES.map(lambda text: {"chat_template.jinja": text})
    names = ("processor_config.json", "tokenizer_config.json", "preprocessor_config.json")
    there = [name for name in ("chat_template.jinja", *names) if (folder / name).exists()]
    return st.one_of(template, *map(changed, there))


def _held(builder: _Builder):
    def hold(texts: dict[str, str]) -> None:
        with bounds.growing_little():
            builder.build(texts)

    return hold


def test_what_is_made_up_ends_its_own_process_at_most(builder, folder):
    builder.build({})
    assert builder.ends == {"used": 1}
    few = settings(COMMON, max_examples=FEW, derandomize=True)
    few(given(_changes(folder))(_held(builder)))()


@pytest.mark.slow
def test_what_is_made_up_for_long_ends_its_own_process_at_most(builder, folder):
    many = settings(COMMON, max_examples=ROUND, derandomize=False)
    tried = many(given(_changes(folder))(_held(builder)))
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        tried()
    print(f"templates: {dict(builder.ends)} in {SECONDS:.0f} s")
    assert builder.ends["used"]
    assert builder.ends["refused"]
