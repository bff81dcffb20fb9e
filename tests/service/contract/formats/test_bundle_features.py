"""The header of features.safetensors, in a folder and in a tar alike."""

import json
import struct

import pytest

from contract_files import features, line, refused, safetensors_file
from service.contract.errors import InvalidBundle
from service.contract.formats import bundles
from service.contract.formats.checkpoint_header import FeatureEncoder


@pytest.fixture
def header_of(bundle):
    def act(rows):
        path = bundle({"captions.jsonl": line(), "features.safetensors": rows})
        return bundles.read_features_header(path)

    return act


def test_the_header_says_all_that_is_needed_to_find_a_row(header_of, bundle):
    content = features(ids=["b.jpg", "é.jpg"], tensors={"features": ("F32", (2, 3))})
    found = header_of(content)
    assert found == bundles.FeaturesHeader(
        ("b.jpg", "é.jpg"),
        3,
        "F32",
        FeatureEncoder(name="vgg", digest="sha256:0"),
        found.data_start,
    )
    assert len(content) - found.data_start == 2 * 3 * 4
    assert found.data_start == 8 + struct.unpack("<Q", content[:8])[0]


def test_a_bundle_of_captions_alone_has_no_features(bundle):
    assert bundles.read_features_header(bundle({"captions.jsonl": line()})) is None


@pytest.mark.long
@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (features(ids=["a"]), ("2 rows, but `ids` names 1 image",)),
        (features(ids=["a", "b", "c"]), ("2 rows, but `ids` names 3 images",)),
        (features(ids=[]), ("2 rows, but `ids` names 0 images",)),
        (features(ids=["a", "a"]), ("`ids` names an image twice: 'a'",)),
        (features(ids=["a", 5]), ("ids: expected a JSON list of strings",)),
        (features(ids=["a", ["b"]]), ("ids: expected a JSON list of strings",)),
        (features(ids={"a": "b"}), ("ids: expected a JSON list of strings",)),
        (features(metadata={"ids": None}), ("metadata `ids` is missing",)),
        (features(metadata={"ids": ""}), ("ids: expected a JSON list of strings",)),
        (features(metadata={"ids": '["a", "b"'}), ("ids: expected JSON",)),
        (features(metadata={"ids": '["a", "\\ud800"]'}), ("ids/1: expected text, found a lone",)),
        (features(metadata={"encoder": None}), ("metadata `encoder` is missing",)),
        *(
            (features(metadata={"encoder": odd}), ("`encoder` must be", f"found {odd!r}"[:60]))
            for odd in (
                "vgg", "", "{}", "[]", "null", '{"name": "vgg"}', '{"name": 1, "digest": "x"}',
                '{"name": "", "digest": "x"}', '{"name": "x", "digest": "y", "more": 1}',
                '{"name": "x", "name": "y", "digest": "z"}', '{"name": NaN}', "[" * 9000,
                '{"name": "x", "digest": "y"}' + " " * 10_000,
            )
        ),
        (features(tensors={"features": ("F64", (2, 3))}), ("expected F16 or F32, found F64",)),
        (features(tensors={"features": ("BF16", (2, 3))}), ("expected F16 or F32, found BF16",)),
        (features(tensors={"features": ("U16", (2, 3))}), ("expected F16 or F32, found U16",)),
        *(
            (features(ids=[], tensors=tensors), ("expected one tensor `features` (N, D)", "found"))
            for tensors in (
                {"Features": ("F16", (2, 3))}, {"features": ("F16", (6,))},
                {"features": ("F16", ())}, {"features": ("F16", (2, 3, 1, 1))},
                {"features": ("F16", (0, 3))}, {"features": ("F16", (2, 0))},
                {"features": ("F16", (2, 3)), "more": ("F16", (2, 3))},
            )
        ),
        (features()[:-1], ("features.safetensors: ", "the file is cut off")),
        (features() + b"\0", ("other bytes come after them",)),
        (features()[:50], ("features.safetensors: the header claims",)),
        (b"", ("features.safetensors: expected a safetensors file", "found 0 bytes")),
        (safetensors_file(b"{}", length=2**63), (f"claims {2**63} bytes, at most 100000000",)),
        (safetensors_file({"features": 1}), ("tensor 'features': expected exactly dtype",)),
    ],
)  # fmt: skip
def test_features_that_are_none_are_refused_with_what_was_expected(rows, words, header_of):
    refused(lambda: header_of(rows), InvalidBundle, "features.safetensors", *words)


def test_a_name_is_matched_letter_by_letter(header_of):
    assert header_of(features(ids=["a", "A"])).ids == ("a", "A")


def test_names_of_a_hundred_thousand_images_are_read(header_of):
    ids = [f"{n}_{n:x}.jpg" for n in range(100_000)]
    rows = features(tensors={"features": ("F16", (100_000, 1))}, metadata={"ids": json.dumps(ids)})
    assert header_of(rows).ids == tuple(ids)
