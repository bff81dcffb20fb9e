"""Features of a grid's places and of regions, in features.safetensors."""

import io
import struct

import pytest

from contract_files import features, laid_out, line, refused, safetensors_file
from service.contract import limits
from service.contract.errors import InvalidBundle
from service.contract.formats import bundles
from service.contract.formats.bundles import validation
from service.contract.formats.bundles.features import read_region_counts

GRID = {"features": ("F16", (2, 4, 3))}
REGIONS = {"counts": ("U16", (2,)), **GRID}


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


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ({"counts": ("U16", (2,))}, ("expected one tensor `features`",)),
        ({"features": ("F16", (2, 3)), "counts": ("U16", (2,))}, ("(N, P, D)", "`counts` (N)")),
        ({**GRID, "counts": ("U16", (3,))}, ("`counts` (N)", "'counts': (3,)")),
        ({**GRID, "counts": ("U16", (2, 1))}, ("`counts` (N)",)),
        ({**GRID, "counts": ("I64", (2,))}, ("counts: expected U16, found I64",)),
        ({**GRID, "boxes": ("F16", (2, 4))}, ("expected one tensor `features`",)),
        ({"features": ("F16", (2, 0, 3))}, ("expected one tensor `features`",)),
        (
            {"features": ("F16", (2, limits.PLACES + 1, 1))},
            ("at most 1024 places", "found 1,025 of size 1"),
        ),
        (
            {"features": ("F16", (2, 2, limits.PLACE_VALUES // 2 + 1))},
            ("2,097,152 values", "found 2 of size 1,048,577"),
        ),
    ],
)
def test_other_shapes_are_refused_with_what_was_expected(tensors, words):
    refused(lambda: _header(features(tensors=tensors)), InvalidBundle, *words)


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
    refused(
        lambda: validation.validate_bundle(path),
        InvalidBundle,
        f"counts of '{wrong}': expected at most 4",
        f"found {max(counts)}",
    )
