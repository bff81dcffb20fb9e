"""`prescore learned`: train learned metrics on captions and on people's judgements."""

from workers.cli.learned.command import learned

__all__ = ["learned"]
