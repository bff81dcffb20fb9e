"""Files with a mark: each reader refuses what it did not write, with the file's name."""

import json

import pytest

from service.contract.errors import MetricFailed
from workers.bench.study import rows
from workers.metrics import postgen, references
from workers.metrics.accord import large_model, model
from workers.metrics.families import bertscore
from workers.metrics.learned import nneval
from workers.metrics.vectors import sentences


def _file(**metadata):
    header = json.dumps({"__metadata__": metadata}).encode()
    return len(header).to_bytes(8, "little") + header


READERS = {
    "prescore_scores": postgen.read_scores,
    "prescore_references": references.read_references,
    "prescore_learned": nneval.read_nneval,
    "prescore_accord": model.read_accord,
    "prescore_accord_large": lambda path: large_model.read_large_model(
        path, model.load_shipped_accord()
    ),
    "prescore_embedded_references": bertscore.read,
    "prescore_reference_sentences": sentences.read,
    "prescore_rows": rows.read_rows_file,
}
FOREIGN = [b"", b"[]", b"{}", b"\x02\0\0\0\0\0\0\0{}", b"\xff" * 64, _file(), _file(other="1")]


@pytest.mark.parametrize("mark", READERS)
def test_another_file_is_refused(tmp_path, mark):
    path = tmp_path / "file"
    path.write_bytes(_file(**{mark: "0"}))
    with pytest.raises(MetricFailed, match=r"of format \d in file, found '0'"):
        READERS[mark](path)
    for content in (*FOREIGN, *(_file(**{mark: version}) for version in "123")):
        path.write_bytes(content)
        with pytest.raises(MetricFailed, match=r"file is not|in file, found"):
            READERS[mark](path)


def test_references_of_an_unknown_tokenizer_are_refused(tmp_path):
    (tmp_path / "file").write_bytes(_file(prescore_references="2", tokenizer="bert"))
    with pytest.raises(MetricFailed, match="the tokenizer 'bert' is not known"):
        references.read_references(tmp_path / "file")
