"""T73: the table of the guide that says what each process may reach, against what it reaches."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import hostile_child
from helpers.sandbox_surroundings import surroundings
from service.kernel import landlock
from workers.runtime import child

pytestmark = pytest.mark.processes

GUIDE = Path(__file__).resolve().parents[3] / "deploy/guide/plugins-and-sandbox.md"
SCOPED = {"connect to an abstract socket", "signal the parent"}  # by later versions of Landlock
_TRY = "import json, sys; sys.path.insert(0, sys.argv[1]); import hostile_child; "
_TRY += "given = json.loads(sys.argv[2]); from pathlib import Path; {confine}; "
_TRY += "print(json.dumps(hostile_child.attack([], [], given)))"
# By its own program: a question whose answer is the attack.
_JUDGE = "import json, sys; sys.path.insert(0, sys.argv[1]); import hostile_child; "
_JUDGE += "from service.stored import judge_process; given = json.loads(sys.argv[2]); "
_JUDGE += "attack = lambda _: hostile_child.attack([], [], given); "
_JUDGE += "judge_process.QUESTIONS['dataset'] = attack; judge_process.main()"
CONFINE = {
    "Java": "from workers.metrics.java import jvm_child; jvm_child.confine_java([])",
    "warm child": "from workers.runtime import child; child.confine_child("
    '[Path(given["input"]).parent], Path(given["output"]).parent)',
}


def _read_table():
    """Kind of process -> attempts that the guide says to succeed, and those that fail."""
    text = GUIDE.read_text("utf-8").partition("### What each process may reach")[2]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    header, rows = rows[0], [row for row in rows[2:] if row[-1] in ("yes", "no")]
    return {
        kind: {
            told: {
                name for row in rows if row[at] == told for name in re.findall("`(.+?)`", row[0])
            }
            for told in ("yes", "no")
        }
        for at, kind in enumerate(header, start=1)
    }


def _attack_confined(kind, tmp_path):
    with surroundings(tmp_path) as given:
        inputs = tmp_path / "inputs"
        inputs.mkdir()
        (inputs / "input").write_bytes(b"input")
        changed = {**given, "input": str(inputs / "input")}
        program = _TRY.format(confine=CONFINE[kind])
        result = subprocess.run(_command(program, changed), capture_output=True, check=True)
    return json.loads(result.stdout)


def _command(program, given):
    helpers = Path(hostile_child.__file__).parent
    return [sys.executable, "-c", program, str(helpers), json.dumps(given)]


def _attack_judging(tmp_path):
    (tmp_path / "own").mkdir()
    with surroundings(tmp_path) as given:
        asked = {"question": "dataset", "path": given["input"], "images": given["output"]}
        judge = subprocess.Popen(
            _command(_JUDGE, given),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(tmp_path / "own")},
            text=True,
        )
        with judge:
            judge.stdin.write(json.dumps(asked) + "\n")
            judge.stdin.flush()
            answer = judge.stdout.readline()
    return json.loads(answer)["facts"]


@pytest.mark.parametrize("kind", ["child in the sandbox", "judge", "Java", "warm child"])
def test_each_kind_of_process_reaches_what_the_guide_says_and_nothing_else(kind, hostile, tmp_path):
    if kind == "warm child" and child._NVIDIA.exists():
        pytest.skip("this machine has NVIDIA's driver")
    if kind == "judge":
        found = _attack_judging(tmp_path)
    elif kind in CONFINE:
        found = _attack_confined(kind, tmp_path)
    else:
        with surroundings(tmp_path) as given:
            files = {"inputs": [tmp_path / "input"], "outputs": [Path(given["output"])]}
            found = hostile("attack", given, **files)
    told = _read_table()[kind]
    assert told["yes"] | told["no"] == set(found)
    reached = {name for name, how in found.items() if how == "reached"}
    if landlock.read_landlock_version() < 6:
        reached -= SCOPED
    assert reached == told["yes"]
