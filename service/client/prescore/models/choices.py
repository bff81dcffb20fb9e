"""Choices in requests."""

from enum import StrEnum


class Tokenizer(StrEnum):
    """Tokenizer that splits captions and references into words; `none`: they are tokens already."""

    PTB = "ptb"
    NONE = "none"


class Units(StrEnum):
    """Units of pre-gen scores where the tokens of columns are pieces of words."""

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
    """Format of a webhook's messages: signed JSON, or a line of text for Slack."""

    STANDARD = "standard"
    SLACK = "slack"


class IfNoBaseline(StrEnum):
    PASS = "pass"  # noqa: S105  no password
    FAIL = "fail"
    UNDECIDED = "undecided"


class Until(StrEnum):
    """End of an evaluation with gates: with its last task, or as soon as all gates are decided."""

    DONE = "done"
    VERDICT = "verdict"
