"""Flickr8k as a bundle with features, for parity tests."""

from pathlib import Path

import numpy as np

from service.contract.formats import bundles, importers
from service.contract.formats.checkpoint_header import FeatureEncoder
from workers.inference import features

ENCODER = FeatureEncoder(name="mobilenetv2-1.0-224-quant", digest="pool1280-uint8")


def make_bundle(data: Path, folder: Path) -> Path:
    source = data / "flickr8k"
    lists = {"train": "train", "val": "dev", "test": "test"}
    splits = {ours: source / f"Flickr_8k.{theirs}Images.txt" for ours, theirs in lists.items()}
    bundles.write_bundle_folder(
        folder, importers.read_flickr8k(source / "Flickr8k.token.txt.gz", splits)
    )
    stored = np.load(source / "mobilenetv2_pool1280_uint8.npz")
    rows = stored["q"].astype(np.float32) * stored["scale"]
    names = [str(name) for name in stored["filenames"]]
    features.write_features(folder / bundles.FEATURES, names, rows, ENCODER)
    return folder
