"""T55: the commands that work without a service print plain lines, whatever captions, names and
categories are in the files that they are given.
"""

import json

import pytest
from typer.testing import CliRunner

from helpers import command_app
from helpers.contract_files import checkpoint
from helpers.hostile_text import HOSTILE, REAL, check_plain, check_table
from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem

NAMES = ("::add-mask::x.jpg", "=cmd|' /C calc'!A0", "x ##[error]y.jpg", "日本.jpg")
SPLIT = "::error::s"
ENCODER = '{"name": "\\u001b[2J\\n::add-mask::x", "digest": "d"}'


@pytest.fixture
def prescore(tmp_path, monkeypatch):
    monkeypatch.setenv("PRESCORE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PRESCORE_ASSETS", "")
    monkeypatch.setenv("PRESCORE_URL", "http://[::1]:1")
    monkeypatch.chdir(tmp_path)
    app = command_app.prescore()

    def run(*arguments, code=0):
        result = CliRunner().invoke(app, list(map(str, arguments)))
        assert code is None or result.exit_code == code, result.output
        check_plain(result.output)
        return result

    return run


@pytest.fixture
def bundle(tmp_path):
    said = (*HOSTILE.values(), REAL, "a dog runs")
    items = [BundleItem(name, SPLIT, said) for name in NAMES]
    bundles.write_bundle_folder(tmp_path / "bundle", items)
    given = [{"image": name, "caption": text} for name, text in zip(NAMES, said[1:], strict=False)]
    (tmp_path / "outputs.json").write_text(
        json.dumps([*given[:-1], {**given[-1], "caption": REAL}])
    )
    return tmp_path / "bundle"


def test_score(prescore, bundle, tmp_path):
    asked = ("--dataset", f"{bundle}/{SPLIT}", "--metrics", "bleu_4,cider_d", "--tokenizer", "none")
    result = prescore("score", "outputs.json", *asked, "--csv", "own.csv")
    assert len(result.stdout.splitlines()) == 3
    rows = check_table((tmp_path / "own.csv").read_bytes().decode())
    assert len(rows) == 1 + len(NAMES)
    assert rows[-1][:2] == [NAMES[-1], REAL]
    assert rows[1][0] == f"'{NAMES[0]}"


def test_probe(prescore, bundle, tmp_path):
    asked = ("--probes", "human,single", "--metrics", "bleu_1,bleu_4", "--tokenizer", "none")
    prescore("probe", f"{bundle}/{SPLIT}", *asked, "--csv", "table.csv")
    check_table((tmp_path / "table.csv").read_bytes().decode())


def test_judge(prescore, tmp_path):
    pair = {"references": ["a dog runs"], "a": "a dog", "b": "a cat", "preferred": "a"}
    names = [f"{text}c" for text in (*NAMES, "<script>", "日本")]
    lines = [json.dumps({**pair, "category": name}) for name in names]
    (tmp_path / "pairs.jsonl").write_text("\n".join(lines))
    asked = ("--metrics", "bleu_1", "--tokenizer", "none")
    result = prescore("judge", "pairs.jsonl", *asked, "--csv", "t.csv", "--plot", "t.svg")
    assert len(result.stdout.splitlines()) == 9
    assert "日本" in result.stdout
    check_table((tmp_path / "t.csv").read_bytes().decode())
    picture = (tmp_path / "t.svg").read_text("utf-8")
    check_plain(picture)
    assert "<script" not in picture
    found = json.loads(prescore("judge", "pairs.jsonl", *asked, "--json").stdout)
    assert set(names) < set(found["pairs"]["bleu_1"])
    for text in HOSTILE.values():
        (tmp_path / "pairs.jsonl").write_text(json.dumps({**pair, "category": text, "a": text}))
        prescore("judge", "pairs.jsonl", *asked, code=None)


def test_check_and_convert(prescore, bundle, tmp_path):
    prescore("check", bundle)
    (tmp_path / "odd.safetensors").write_bytes(checkpoint(metadata={"encoder": ENCODER}))
    refused = prescore("check", "odd.safetensors", code=2)
    assert "encoder: expected no control characters" in refused.stderr
    sentences = [{"raw": text} for text in HOSTILE.values()]
    image = {"filename": NAMES[0], "split": SPLIT, "sentences": sentences}
    (tmp_path / "k.json").write_text(json.dumps({"images": [image]}))
    prescore("convert", "karpathy", "out", "k.json")
    image["split"] = HOSTILE["terminal"]
    (tmp_path / "k.json").write_text(json.dumps({"images": [image]}))
    prescore("convert", "karpathy", "out", "k.json", code=2)


def test_study(prescore, tmp_path):
    head = "dataset,model,num_strata,stratum,cider_d,geomean_join_pplx_none"
    rows = [
        f"{SPLIT},=m{at}##[x]{HOSTILE['terminal'][:3]},1,0,{at / 10},{20 - at * at}"
        for at in range(6)
    ]
    (tmp_path / "rows.csv").write_text("\n".join([head, *rows]))
    prescore("lab", "study", "rows.csv", "--csv", "all.csv", "--rows", "again.tsv")
    check_table((tmp_path / "all.csv").read_text("utf-8"))
    check_table((tmp_path / "again.tsv").read_text("utf-8"), delimiter="\t")
    again = prescore("lab", "study", "again.tsv")
    assert again.stdout == prescore("lab", "study", "rows.csv").stdout
