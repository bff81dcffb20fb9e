"""What is asked of files that come in, beyond what their readers need.

Files that came in before there was such a rule are still read.
"""

from service.contract.errors import ConfigInvalid, InvalidBundle
from service.contract.formats import bundles
from service.contract.formats.bundles import FeaturesHeader
from service.contract.formats.checkpoint_header import CheckpointHeader, Encoder
from service.contract.plain_text import is_plain


def check_checkpoint(header: CheckpointHeader) -> None:
    """Raises an InvalidCheckpoint."""
    oddity = _oddity(header.description.encoder)
    if oddity is not None:
        raise ConfigInvalid(oddity, pointer="/__metadata__/encoder")


def check_features(header: FeaturesHeader) -> None:
    """Raises InvalidBundle."""
    oddity = _oddity(header.encoder)
    if oddity is not None:
        raise InvalidBundle(f"{bundles.FEATURES}: {oddity}")


def _oddity(encoder: Encoder) -> str | None:
    """Its name is shown to others, in logs and on terminals."""
    odd = next((text for text in (encoder.name, encoder.digest) if not is_plain(text)), None)
    return None if odd is None else f"encoder: expected no control characters, found {odd!r:.60}"
