"""The library transformers, imported: it asks no hub, starts no threads and writes no progress."""

import os
from typing import Any


def import_transformers() -> Any:
    os.environ |= {
        "HF_HUB_OFFLINE": "1",
        "HF_DEACTIVATE_ASYNC_LOAD": "1",  # by no threads: the sandbox has none
        "TOKENIZERS_PARALLELISM": "false",
    }
    import transformers
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    return transformers


_MOST_POSITIONS = 32_768  # where the config names none


def count_positions(config: Any) -> int:
    """Count the positions of words that a network has."""
    text = config.get_text_config(decoder=True)
    return int(getattr(text, "max_position_embeddings", None) or _MOST_POSITIONS)


def find_output_layer(model: Any) -> Any:
    """Find the layer of logits."""
    parts = (getattr(model, name, None) for name in ("decoder", "text_decoder", "language_model"))
    own = (each.get_output_embeddings() for each in (model, *parts) if each is not None)
    return next(layer for layer in own if layer is not None)
