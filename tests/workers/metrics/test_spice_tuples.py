"""Real captions to tuples by SPICE's own Java, killed, starved and hindered."""

import os
import shutil
import signal
import sqlite3
from pathlib import Path

import pytest

from helpers import interruptions
from service.contract.errors import JavaFailed, MetricFailed, RunCanceled
from service.contract.formats.outputs import LONGEST_PARSED
from workers.metrics import spice_tuples
from workers.metrics.spice_tuples import PARSER, TupleParser, TupleStore, make_jvm

pytestmark = pytest.mark.processes

CAPTION = "a man in a red shirt is riding two horses near his house"
TUPLES = [  # as SPICE's own command finds them
    *(["man", "horse", "ride"], ["shirt", "red"], ["horse", "house", "near"]),
    *(["man", "shirt", "in"], ["man", "house", "have"], ["horse", "two"]),
    *(["horse"], ["house"], ["man"], ["shirt"]),
]
HOSTILE = ["", "...", "\0", "🐕 a dog", "he sits", "a," * 3000, "SCORE ||| a", "\ud800 dog"]


@pytest.fixture
def store(tmp_path):
    return TupleStore(tmp_path / "a folder" / "tuples.sqlite", PARSER)


def test_every_caption_gets_its_own_tuples_whatever_stands_beside_it(parser):
    found = parser.parse([*HOSTILE, CAPTION, "a dog"])
    assert list(found) == [*HOSTILE, CAPTION, "a dog"]
    assert found[CAPTION] == TUPLES
    assert found["a dog"] == found["🐕 a dog"] == found["\ud800 dog"] == [["dog"]]


def test_a_long_caption_is_read_up_to_the_limit_and_in_time(parser):
    """Its tenth part is a sentence, so that the parser need not try everything for minutes."""
    words = ("a dog sits . " * 100).split()
    found = parser.parse([" ".join(words[:LONGEST_PARSED]), " ".join(words)])
    assert found[" ".join(words)] == found[" ".join(words[:LONGEST_PARSED])]
    assert [word for word, *_ in found[" ".join(words)]].count("dog") >= LONGEST_PARSED // 4


def test_what_is_known_starts_no_java(store):
    store.put({CAPTION: TUPLES, "a dog": [["dog"]]})
    told = []
    parser = TupleParser(make_jvm([]), store)
    captions = ["a dog", CAPTION, "a  dog"]
    assert parser.parse(captions, progress=lambda *at: told.append(at)) == {
        "a dog": [["dog"]], CAPTION: TUPLES, "a  dog": [["dog"]],
    }  # fmt: skip
    assert parser._jvm.pid is None
    assert told == [(2, 2)]


def test_what_was_parsed_is_remembered_for_this_parser_alone(parser, store, tmp_path, monkeypatch):
    monkeypatch.setattr(parser, "_store", store)
    found = parser.parse([CAPTION])
    again = TupleParser(make_jvm([]), TupleStore(tmp_path / "a folder" / "tuples.sqlite", PARSER))
    assert again.parse([CAPTION]) == found
    another = TupleStore(tmp_path / "a folder" / "tuples.sqlite", "another")
    assert another.get([CAPTION]) == {}


def test_a_store_remembers_thousands_at_once(store):
    many = {f"caption {index}": [[str(index)]] for index in range(5000)}
    store.put(many)
    assert store.get([*many, "unknown"]) == many


@pytest.mark.parametrize("content", [b"no database" * 100, b""])
def test_a_damaged_store_begins_anew(tmp_path, content):
    path = tmp_path / "tuples.sqlite"
    path.write_bytes(content)
    store = TupleStore(path, PARSER)
    assert store.get([CAPTION]) == {}
    store.put({CAPTION: TUPLES})
    assert store.get([CAPTION]) == {CAPTION: TUPLES}


def test_a_store_that_cannot_be_had_is_left_out(tmp_path):
    """Its folder is a file; another one is locked."""
    (tmp_path / "file").touch()
    store = TupleStore(tmp_path / "file" / "tuples.sqlite", PARSER)
    store.put({CAPTION: TUPLES})
    assert store.get([CAPTION]) == {}


def test_a_locked_store_is_left_out(store, tmp_path, monkeypatch):
    monkeypatch.setattr("workers.metrics.spice_tuples._WAIT", 0.01)
    store.put({CAPTION: TUPLES})
    other = sqlite3.connect(tmp_path / "a folder" / "tuples.sqlite", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert store.get([CAPTION]) == {}
    other.close()
    assert store.get([CAPTION]) == {CAPTION: TUPLES}


@pytest.mark.slow  # a killed Java by itself: tests/workers/metrics/java/test_jvm.py
def test_a_killed_java_is_an_error_and_what_was_parsed_before_is_kept(
    spice_jars, store, monkeypatch
):
    monkeypatch.setattr("workers.metrics.spice_tuples._BATCH", 2)
    parser = TupleParser(make_jvm(spice_jars), store)

    def kill(_done, _total):
        if parser._jvm.pid is not None and store.get([CAPTION]):
            os.kill(parser._jvm.pid, signal.SIGKILL)

    texts = ["a dog", CAPTION, f"{CAPTION} and a dog", f"{CAPTION} and a black dog"]
    with pytest.raises(JavaFailed, match="tuples: Java was killed by signal 9"):
        parser.parse(texts, progress=kill)
    assert parser._jvm.pid is None
    assert store.get([CAPTION, "a dog"]) == {CAPTION: TUPLES, "a dog": [["dog"]]}


@pytest.mark.slow
def test_a_java_without_memory_ends_and_says_so(spice_jars, monkeypatch):
    """CoreNLP alone would go on with a sentence that has no structure: with a wrong score."""
    monkeypatch.setattr("workers.metrics.spice_tuples._HEAP_MB", 64)
    monkeypatch.setattr("workers.metrics.spice_tuples._HEAP_MB_PER_CORE", 0)
    parser = TupleParser(make_jvm(spice_jars))
    with pytest.raises(JavaFailed, match=r"OutOfMemoryError"):
        parser.parse([CAPTION])
    assert parser._jvm.pid is None


def test_a_cancel_kills_java_while_it_reads_its_grammar(spice_jars):
    parser = TupleParser(make_jvm(spice_jars))
    with pytest.raises(RunCanceled):
        parser.parse(
            [CAPTION], progress=interruptions.ends_when(lambda _: parser._jvm.pid is not None)
        )
    assert parser._jvm.pid is None


def test_nothing_is_left_on_disk(parser, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    parser.parse(["a cat in a hat"])
    assert list(tmp_path.iterdir()) == []


def test_what_is_written_is_read(tmp_path):
    spice_tuples.write_tuples(tmp_path / "result", {CAPTION: TUPLES})
    assert spice_tuples.read_tuples(tmp_path / "result") == {CAPTION: TUPLES}
    assert [path.name for path in tmp_path.iterdir()] == ["result"]


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"prescore_tuples": 1, "parser": "x", "tuples": {}}']
)
def test_another_file_is_refused(tmp_path, content):
    (tmp_path / "result").write_text(content)
    with pytest.raises(MetricFailed, match="result"):
        spice_tuples.read_tuples(tmp_path / "result")


@pytest.mark.slow
def test_blanks_in_paths_and_other_locales_change_nothing(spice_jars, tmp_path, monkeypatch):
    folder = tmp_path / "a folder with ä blanks"
    folder.mkdir()
    jars = [Path(shutil.copy(jar, folder)) for jar in spice_jars]
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LANG", "C")
    parser = TupleParser(make_jvm(jars))
    assert parser.parse([CAPTION]) == {CAPTION: TUPLES}
    parser.close()
