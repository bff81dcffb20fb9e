"""Flickr8k as a bundle, and the published scorer, for parity tests."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pycocoevalcap.cider.cider import Cider

from service.contract.formats import bundles, importers
from service.contract.formats.checkpoint_header import FeatureEncoder
from service.contract.formats.vocabularies import MODEL_TOKENIZERS
from workers.inference import columns as columns_file
from workers.inference import decoding, features, prefix, scoring, vocabulary
from workers.inference.captioners import RecurrentCaptioner
from workers.metrics import pregen

ENCODER = FeatureEncoder(name="mobilenetv2-1.0-224-quant", digest="pool1280-uint8")
BF16 = scoring.ScoringOptions("bf16")


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


def cider_d(captions: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """The published scorer on Karpathy's tokens, without PTB."""
    tokens = MODEL_TOKENIZERS["karpathy"]
    hypotheses = {index: [caption] for index, caption in enumerate(captions)}
    gts = {
        index: [" ".join(tokens(reference)) for reference in image]
        for index, image in enumerate(references)
    }
    score, _ = Cider().compute_score(gts, hypotheses)
    return float(score)


class Split:
    """One split's images for one model: everything that the engine computes from them."""

    def __init__(self, bundle: Path, split: str, model: RecurrentCaptioner) -> None:
        self.model = model
        items = bundles.read_split(bundle, split)
        self.references = [item.references for item in items]
        self.features = features.read_features(bundle, [item.image for item in items], ENCODER)
        self.encoded = vocabulary.encode_captions(
            self.references, model.description.vocabulary, model.description.tokenizer
        )

    def cider_of(self, options: decoding.DecodingOptions) -> float:
        found = decoding.decode_captions(self.model, self.features, options)
        return cider_d(
            [decoding.detokenize_caption(self.model, caption) for caption in found], self.references
        )

    def columns(
        self, options: scoring.ScoringOptions = scoring.ScoringOptions()
    ) -> columns_file.ProbabilityColumns:
        return scoring.compute_columns(self.model, self.features, self.encoded, options)

    def prefixes(self) -> np.ndarray:
        return prefix.walk_prefixes(self.model, self.features, self.encoded)

    def pregen(self, names: Sequence[str] | None = None) -> dict[str, float]:
        columns = self.columns()
        return pregen.scores(
            columns.logp, columns.rank, columns.caption_offsets, columns.image_offsets, names
        )
