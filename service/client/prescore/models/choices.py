"""Choices in requests, each with the values that the service takes."""

from typing import Literal

Tokenizer = Literal["ptb", "none"]  # of captions and references; none: they are tokens already
Units = Literal["words", "pieces"]  # of pre-gen scores where tokens are pieces of words
Precision = Literal["fp32", "bf16"]  # of the logits from which pre-gen scores are computed
Idf = Literal["dataset", "subset"]  # CIDEr counts in the whole split, or in images with a caption
WebhookFormat = Literal["standard", "slack"]  # signed JSON, or a line of text for Slack
IfNoBaseline = Literal["pass", "fail", "undecided"]
Until = Literal["done", "verdict"]  # the last task, or the verdict of all gates
