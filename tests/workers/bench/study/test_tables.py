import gzip

import numpy as np
import pytest

from service.contract.errors import RequestRefused
from workers.bench.study import tables
from workers.bench.study.rows import StratumRows

BEST = "mean_max_normcount_prefix0"
OWN = f"dataset,model,num_strata,stratum,cider_d,{BEST}\n"
THEIRS = "dataset\tarchitecture\trun\tnum_strata\tstratum\tCIDEr\tWMD\tsum_sum_count_filter0\n"


def _read(tmp_path, text):
    path = tmp_path / "rows.txt"
    path.write_text(text, "utf-8")
    return tables.read_rows_table(path)


def test_rows_come_back_as_they_were_written(tmp_path):
    rows = StratumRows(
        ["d", "d"], ["m", "m\t2"], [1, 2], [0, 1],
        {BEST: np.array([1 / 3, np.inf]), "sum_sum_count_filter0": np.array([1.0, 2.0])},
        {"cider_d": np.array([0.1, np.nan])}, "stratum",
    )  # fmt: skip
    tables.write_rows_table(tmp_path / "rows.tsv", rows)
    back = tables.read_rows_table(tmp_path / "rows.tsv")
    assert (back.datasets, back.models, back.strata, back.stratum, back.idf) == (
        rows.datasets, rows.models, rows.strata, rows.stratum, "stratum",
    )  # fmt: skip
    for name, column in (rows.pregen | rows.postgen).items():
        np.testing.assert_array_equal((back.pregen | back.postgen)[name], column)


def test_the_authors_names_are_read_as_ours(tmp_path):
    text = THEIRS + "flickr8k\tinit\t1\t2\t1\t.5\t.1\tinf\n"
    path = tmp_path / "data.txt.gz"
    path.write_bytes(gzip.compress(text.encode()))
    rows = tables.read_rows_table(path)
    assert (rows.datasets, rows.models) == (["flickr8k"], ["init_1"])
    assert (list(rows.strata), list(rows.stratum), rows.idf) == ([2], [1], "stratum")
    assert {name: list(column) for name, column in rows.postgen.items()} == {
        "cider_d": [0.5],
        "wmd": [0.1],
    }
    assert {name: list(column) for name, column in rows.pregen.items()} == {
        "sum_sum_count_miss0": [np.inf]
    }


def test_a_learned_metric_may_say_its_model_and_what_is_no_score_is_passed_over(tmp_path):
    header = OWN.replace("\n", ",nneval@0123456789ab,seconds\n")
    rows = _read(tmp_path, header + "d,m,1,0,.5,.25,.75,12\n")
    assert (list(rows.pregen), rows.idf) == ([BEST], None)
    assert rows.postgen == {"cider_d": [0.5], "nneval@0123456789ab": [0.75]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a table with the columns dataset, num_strata, stratum"),
        ("dataset,model,stratum\n", "expected a table with the columns num_strata"),
        ("dataset,num_strata,stratum,cider_d\n", "a column `model`, or `architecture` and `run`"),
        ("dataset,model,num_strata,stratum,cider_d\n", "a column of pre-gen scores, found none"),
        (f"dataset,model,num_strata,stratum,{BEST}\n", "a column of post-gen scores, found none"),
        (OWN, "expected rows, found none"),
        (OWN + "d,m,1,0,.5,.2\nd,m,2,2,.5,.2\n", "line 3: .* found '2' and '2'"),
        (OWN + "d,m,two,0,.5,.2\n", "line 2: .* found 'two' and '0'"),
        (OWN + "d,m,1,0,.5,much\n", f"line 2: expected a number in {BEST}, found 'much'"),
        (OWN + "d,m,1,0,.5\n", f"line 2: expected a number in {BEST}, found None"),
        (
            OWN.replace("\n", ",idf\n") + "d,m,1,0,.5,.2,dataset\nd,m,1,0,.5,.2,\n",
            "expected one idf for all rows, dataset or stratum, found None, dataset",
        ),
        (OWN.replace("\n", ",idf\n") + "d,m,1,0,.5,.2,mine\n", "found mine"),
    ],
)
def test_what_is_no_table_of_rows_is_refused_with_its_place(tmp_path, text, said):
    with pytest.raises(RequestRefused, match=said):
        _read(tmp_path, text)


@pytest.mark.parametrize(
    "content", [b"\x1f\x8bno gzip", b"\xff\xfe", gzip.compress(b"a" * 99, mtime=0)[:-9]]
)
def test_what_cannot_be_read_is_refused(tmp_path, content):
    (tmp_path / "rows").write_bytes(content)
    with pytest.raises(RequestRefused, match="cannot be read"):
        tables.read_rows_table(tmp_path / "rows")
    with pytest.raises(RequestRefused, match="cannot be read"):
        tables.read_rows_table(tmp_path / "nowhere")
