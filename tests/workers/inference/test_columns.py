import numpy as np
import pytest
from safetensors.numpy import save

from service.contract.errors import InvalidColumns
from workers.inference import columns
from workers.inference.columns import ProbabilityColumns


def _columns(captions, images, entropy=False):
    rng = np.random.default_rng(captions)
    caption_offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 9, captions))])
    tokens = caption_offsets[-1]
    bounds = np.sort(rng.integers(0, captions + 1, images - 1))
    return ProbabilityColumns(
        logp=-rng.exponential(size=tokens).astype(np.float32),
        rank=rng.integers(0, 50, tokens).astype(np.uint16),
        caption_offsets=caption_offsets,
        image_offsets=np.concatenate([[0], bounds, [captions]]),
        top_ids=rng.integers(0, 50, (tokens, 2)).astype(np.uint16),
        top_logp=-rng.exponential(size=(tokens, 2)).astype(np.float32),
        entropy=rng.exponential(size=tokens).astype(np.float32) if entropy else None,
    )


@pytest.mark.parametrize("entropy", [False, True])
def test_columns_survive_a_file_to_the_bit(tmp_path, entropy):
    written = _columns(20, 4, entropy)
    columns.write_columns(tmp_path / "c", written, {"precision": "fp32"})
    found, metadata = columns.read_columns(tmp_path / "c")
    for name, value in vars(written).items():
        assert (value is None) == (getattr(found, name) is None), name
        if value is not None:
            np.testing.assert_array_equal(getattr(found, name), value, name, strict=True)
    assert metadata == {"precision": "fp32"}
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (save({"logp": np.zeros(2, np.float32)}), "missing: .*rank"),
        (b"\x80\x04nonsense", "not a columns file"),
    ],
)
def test_a_file_without_a_column_or_of_another_kind_is_refused(tmp_path, content, told):
    (tmp_path / "c").write_bytes(content)
    with pytest.raises(InvalidColumns, match=told):
        columns.read_columns(tmp_path / "c")


def test_ranks_take_two_bytes_where_the_vocabulary_allows():
    assert columns.choose_index_type(2**16) is np.uint16
    assert columns.choose_index_type(2**16 + 1) is np.uint32
