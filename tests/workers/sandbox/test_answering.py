"""A child that stays in the sandbox: what it answers, what it may do to its parent, how it ends."""

from functools import partial
from pathlib import Path

import pytest

from helpers import staying_child
from service.kernel.process_limits import ChildLimits
from workers.sandbox.operations import ChildStopped, InputRefused, StayingChild

pytestmark = pytest.mark.processes


@pytest.fixture
def staying(needs_sandbox):
    started = []
    start = partial(StayingChild, shared=4096, modules=[Path(staying_child.__file__).parent])

    def begin(name="serve", inputs=(), **options):
        started.append(start(f"staying_child:{name}", inputs, **options))
        return started[-1]

    yield begin
    for each in started:
        each.close()


def _is_there(pid):
    return Path(f"/proc/{pid}").exists()


def test_it_opens_its_files_once_answers_in_turn_and_cannot_cut_off_the_shared_memory(
    staying, tmp_path
):
    (tmp_path / "one").write_text("words")
    (tmp_path / "other").write_text("not given")
    child = staying(inputs=[tmp_path / "one"], parameters={"more": 7})
    assert child.told == {"opened": ["words"], "more": 7}
    child.memory[:3] = b"\x01\x02\x03"
    assert child.ask({"do": "double", "bytes": 3}) == {"length": 1}
    assert bytes(child.memory[:4]) == b"\x02\x04\x06\x00"
    assert child.ask({"do": "double", "bytes": 2}) == {"length": 2}
    assert bytes(child.memory[:3]) == b"\x04\x08\x06"
    found = child.ask({"do": "cut"})
    assert "reached" not in (found["0"], found["1073741824"], found["seals"])
    assert len(bytes(child.memory)) == 4096  # SIGBUS, were it shorter


def test_a_refusal_leaves_it_closed_and_says_why(staying):
    child = staying()
    pid = child.pid
    with pytest.raises(InputRefused, match="not this one"):
        child.ask({"do": "refuse"})
    assert not child.is_open
    assert not _is_there(pid)
    with pytest.raises(ChildStopped, match="has ended already"):
        child.ask({"do": "double", "bytes": 1})
    with pytest.raises(InputRefused, match=r"a text\\nof two lines"):
        staying("refuse")


@pytest.mark.parametrize(
    ("request_", "said"),
    [({"do": "wait"}, r"took longer than 0.5 s"), ({"do": "end"}, "ended with exit code 3")],
)
def test_what_gives_no_answer_is_ended(request_, said, staying):
    child = staying(limits=ChildLimits(0.5 if request_["do"] == "wait" else 20.0, None))
    with pytest.raises(ChildStopped, match=said):
        child.ask(request_)
    assert not _is_there(child.pid)


def test_its_memory_has_a_limit_for_all_requests_together(staying):
    child = staying(limits=ChildLimits(cpu_seconds=None, memory=200_000_000))
    assert child.ask({"do": "allocate", "bytes": 100_000_000})["bytes"] == 100_000_000
    with pytest.raises(InputRefused, match="more memory than it may"):
        child.ask({"do": "allocate", "bytes": 300_000_000})


def test_it_ends_when_it_is_closed_or_nobody_has_it_any_more(staying):
    modules = [Path(staying_child.__file__).parent]
    one = StayingChild("staying_child:serve", [], shared=4096, modules=modules)
    pid = one.pid
    assert _is_there(pid)
    one.close()
    one.close()
    assert not _is_there(pid)
    other = StayingChild("staying_child:serve", [], shared=4096, modules=modules)
    pid = other.pid
    del other
    assert not _is_there(pid)
