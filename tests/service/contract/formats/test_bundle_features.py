"""The header of features.safetensors, in a folder and in a tar alike; of places and regions too."""

import io
import json
import struct

import pytest

from helpers.contract_files import features, laid_out, line, refused, safetensors_file
from service.contract import limits
from service.contract.errors import InvalidBundle
from service.contract.formats import bundles
from service.contract.formats.bundles import validation
from service.contract.formats.bundles.features import read_region_counts
from service.contract.formats.checkpoint_header import FeatureEncoder

GRID = {"features": ("F16", (2, 4, 3))}
REGIONS = {"counts": ("U16", (2,)), **GRID}


@pytest.fixture
def header_of(bundle):
    def act(rows):
        path = bundle({"captions.jsonl": line(), "features.safetensors": rows})
        return bundles.read_features_header(path)

    return act


def test_the_header_says_all_that_is_needed_to_find_a_row(header_of, bundle):
    content = features(ids=["É.jpg", "é.jpg"], tensors={"features": ("F32", (2, 3))})
    found = header_of(content)
    encoder = FeatureEncoder(name="vgg", digest="sha256:0")
    ids = ("É.jpg", "é.jpg")  # matched letter by letter
    assert found == bundles.FeaturesHeader(ids, 3, "F32", encoder, found.data_start)
    assert len(content) - found.data_start == 2 * 3 * 4
    assert found.data_start == 8 + struct.unpack("<Q", content[:8])[0]


def test_a_bundle_of_captions_alone_has_no_features(bundle):
    assert bundles.read_features_header(bundle({"captions.jsonl": line()})) is None


@pytest.mark.long
@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (features(ids=["a"]), ("2 rows, but `ids` names 1 image",)),
        (features(ids=["a", "a"]), ("`ids` names an image twice: 'a'",)),
        (features(ids=["a", 5]), ("ids: expected a JSON list of strings",)),
        (features(metadata={"ids": None}), ("metadata `ids` is missing",)),
        (features(metadata={"ids": '["a", "b"'}), ("ids: expected JSON",)),
        (features(metadata={"ids": '["a", "\\ud800"]'}), ("ids/1: expected text, found a lone",)),
        (features(metadata={"encoder": None}), ("metadata `encoder` is missing",)),
        *(
            (features(metadata={"encoder": odd}), ("`encoder` must be", f"found {odd!r}"[:60]))
            for odd in (
                "vgg", "[]", '{"name": "vgg"}', '{"name": "x", "name": "y", "digest": "z"}',
                '{"name": "x", "digest": "y"}' + " " * 10_000,
            )
        ),
        (features(tensors={"features": ("F64", (2, 3))}), ("expected F16 or F32, found F64",)),
        *(
            (features(ids=[], tensors=tensors), ("expected one tensor `features` (N, D)", "found"))
            for tensors in (
                {"Features": ("F16", (2, 3))}, {"features": ("F16", (6,))},
                {"features": ("F16", ())}, {"features": ("F16", (2, 3, 1, 1))},
                {"features": ("F16", (0, 3))}, {"features": ("F16", (2, 0))},
                {"features": ("F16", (2, 3)), "more": ("F16", (2, 3))},
                {"counts": ("U16", (2,))}, {**GRID, "boxes": ("F16", (2, 4))},
            )
        ),
        *(
            (features(tensors=tensors), words)
            for tensors, words in (
                ({"features": ("F16", (2, 3)), "counts": ("U16", (2,))}, ("`counts` (N)",)),
                ({**GRID, "counts": ("U16", (3,))}, ("`counts` (N)", "'counts': (3,)")),
                ({**GRID, "counts": ("I64", (2,))}, ("counts: expected U16, found I64",)),
                ({"features": ("F16", (2, 1025, 1))}, ("at most 1024 places", "1,025 of size 1")),
                ({"features": ("F16", (2, 2, 2**20 + 1))}, ("2,097,152 values", "size 1,048,5")),
            )
        ),
        (features()[:-1], ("features.safetensors: ", "the file is cut off")),
        (b"", ("features.safetensors: expected a safetensors file", "found 0 bytes")),
        (safetensors_file(b"{}", length=2**63), (f"claims {2**63} bytes, at most 100000000",)),
    ],
)  # fmt: skip
def test_features_that_are_none_are_refused_with_what_was_expected(rows, words, header_of):
    refused(lambda: header_of(rows), InvalidBundle, "features.safetensors", *words)


def test_names_of_a_hundred_thousand_images_are_read(header_of):
    ids = [f"{n}_{n:x}.jpg" for n in range(100_000)]
    rows = features(tensors={"features": ("F16", (100_000, 1))}, metadata={"ids": json.dumps(ids)})
    assert header_of(rows).ids == tuple(ids)


def _header(content):
    return bundles.parse_features_header(io.BytesIO(content))


def test_the_shape_says_what_the_features_are_of():
    vectors, grid, regions = (
        _header(features(tensors=tensors)) for tensors in (None, GRID, REGIONS)
    )
    assert (vectors.inputs, vectors.places, vectors.size) == ("features", 1, 3)
    assert (grid.inputs, grid.places, grid.size) == ("grid", 4, 3)
    assert (regions.inputs, regions.places, regions.size) == ("regions", 4, 3)
    assert (vectors.counts_start, grid.counts_start) == (None, None)


@pytest.mark.parametrize("names", [("features", "counts"), ("counts", "features")])
def test_values_are_found_in_whatever_order_the_tensors_are(names):
    header, _ = laid_out({name: REGIONS[name] for name in names})
    parts = {"features": bytes(range(48)), "counts": struct.pack("<2H", 4, 0)}
    metadata = {"ids": '["a.jpg", "b.jpg"]', "encoder": '{"name": "vgg", "digest": "sha256:0"}'}
    header["__metadata__"] = metadata
    content = safetensors_file(header, b"".join(parts[name] for name in names))
    found = _header(content)
    assert content[found.data_start :][:48] == parts["features"]
    assert list(read_region_counts(io.BytesIO(content), found)) == [4, 0]


def test_as_many_places_and_values_as_the_limits_say_are_taken():
    most = limits.PLACES, limits.PLACE_VALUES // limits.PLACES
    found = _header(features(tensors={"features": ("F16", (2, *most))}))
    assert (found.places, found.size) == most


@pytest.mark.parametrize("counts", [(4, 0), (5, 0), (1, 65_535)])
def test_more_regions_than_places_are_refused_with_the_image_when_a_bundle_is_judged(
    bundle, counts
):
    content = bytearray(features(tensors=REGIONS))
    start = _header(bytes(content)).counts_start
    content[start : start + 4] = struct.pack("<2H", *counts)
    path = bundle({"captions.jsonl": line(), "features.safetensors": bytes(content)})
    if max(counts) <= 4:
        assert validation.validate_bundle(path).features.inputs == "regions"
        return
    wrong = "a.jpg" if counts[0] > 4 else "b.jpg"
    words = (f"counts of '{wrong}': expected at most 4", f"found {max(counts)}")
    refused(lambda: validation.validate_bundle(path), InvalidBundle, *words)
