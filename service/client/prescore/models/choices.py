"""Choices in requests."""

from enum import StrEnum


class Tokenizer(StrEnum):
    """How captions and references are split into words; `none`: they are tokens already."""

    PTB = "ptb"
    NONE = "none"


class Units(StrEnum):
    """What pre-gen scores are made of where the tokens of columns are pieces of words."""

    WORDS = "words"
    PIECES = "pieces"


class Precision(StrEnum):
    """Precision of the logits from which pre-gen scores are computed."""

    FP32 = "fp32"
    BF16 = "bf16"


class Idf(StrEnum):
    """CIDEr's document frequencies: of the whole split, or of the images that have a caption."""

    DATASET = "dataset"
    SUBSET = "subset"


class WebhookFormat(StrEnum):
    """How messages to a webhook are written: JSON that is signed, or a line of text for Slack."""

    STANDARD = "standard"
    SLACK = "slack"


class IfNoBaseline(StrEnum):
    PASS = "pass"  # noqa: S105  no password
    FAIL = "fail"
    UNDECIDED = "undecided"


class Until(StrEnum):
    """When an evaluation with gates ends: with its last task, or when all gates are decided."""

    DONE = "done"
    VERDICT = "verdict"
