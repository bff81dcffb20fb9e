"""T41: nothing in a PyTorch file is executed. Where the safe reader is left out, what runs reaches
nothing (T51).
"""

import contextlib
import socket
from pathlib import Path

import pytest

from helpers import malicious_pickles, unpickling
from service.kernel.confinement import MECHANISMS
from service.kernel.process_limits import ChildLimits
from workers.sandbox import operations

pytestmark = [
    pytest.mark.processes,
    pytest.mark.long,
    pytest.mark.usefixtures("needs_sandbox"),
]
LIMITS = ChildLimits(seconds=100, memory=1_000_000_000, file_size=100_000_000)
# What is called by its name alone (os.system) does not remember that it ran.
CODE = """
import unpickling, socket
unpickling.RAN.append(1)
try:
    open({path!r}, "w").close()
finally:
    socket.create_connection(("127.0.0.1", {port}), 1).close()
"""


@pytest.fixture
def canary(tmp_path):
    """A file that nobody writes, and a socket that nobody connects to."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield Canary(tmp_path / "outside" / "canary", server)


class Canary:
    def __init__(self, path: Path, server: socket.socket) -> None:
        path.parent.mkdir()
        self.path, self._server = path, server
        self.code = CODE.format(path=str(path), port=server.getsockname()[1])

    def is_silent(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            self._server.accept()[0].close()
            return False
        return not list(self.path.parent.iterdir())


def _open(how, files, folder, limits=LIMITS, **options):
    (folder / "inputs").mkdir()
    for number, content in enumerate(files.values()):
        (folder / "inputs" / f"{number}").write_bytes(content)
    inputs = [folder / "inputs" / f"{number}" for number in range(len(files))]
    helpers = [Path(unpickling.__file__).parent]
    run = operations.run_operation(
        f"unpickling:{how}",
        inputs,
        [folder / "made"],
        limits=limits,
        modules=helpers,
        **options,
    )
    names = dict(zip((path.name for path in inputs), files, strict=True))
    return run, names


def test_no_trick_of_pickles_is_executed_and_each_file_is_refused(tmp_path, canary):
    files = malicious_pickles.malicious(canary.code, str(canary.path))
    assert len(files) >= 60
    files |= malicious_pickles.bombs()
    answer, names = _open("safely", files, tmp_path)
    taken = {names[number] for number, said in answer["said"].items() if said is None}
    assert taken == set()
    assert len(answer["said"]) == len(files)
    assert answer["ran"] == []
    assert canary.is_silent()
    named = [said for said in answer["said"].values() if "it names exec, and" in said]
    assert len(named) > 10
    assert not [said for said in answer["said"].values() if "weights_only" in said]


@pytest.mark.slow
def test_a_file_that_takes_time_without_end_is_ended(tmp_path):
    with pytest.raises(operations.ChildStopped, match="SIGXCPU"):
        _open("safely", {"": malicious_pickles.endless()}, tmp_path, ChildLimits(cpu_seconds=6))


@pytest.mark.slow
def test_without_the_safe_reader_they_run_and_reach_nothing(tmp_path, canary):
    files = malicious_pickles.malicious(canary.code, str(canary.path))
    answer, _ = _open("carelessly", files, tmp_path)
    assert len(answer["ran"]) > 35
    assert canary.is_silent()


@pytest.mark.slow
def test_without_the_sandbox_they_reach_what_they_want(tmp_path, canary):
    """So the two tests before show something."""
    files = malicious_pickles.malicious(canary.code, str(canary.path))
    answer, _ = _open("carelessly", files, tmp_path, without=MECHANISMS)
    assert len(answer["ran"]) > 35
    assert not canary.is_silent()
    assert canary.path.exists()
