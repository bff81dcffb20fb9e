"""A trained model as text."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.contract.metrics import objectives

if TYPE_CHECKING:
    from workers.metrics.learned.kinds import Model

_AGREEMENT = {
    "people": "people's ratings",
    "held-out images": "who wrote it (2 x area under the curve - 1)",
}


def lines(objective: str, written: "Model", out: Path) -> Iterator[str]:
    yield f"{written.name}  {out}"
    card = written.card
    if objective == objectives.PEOPLE:
        yield from _of_people(card)
        return
    training = card["training"]
    stems = "English" if card["stems"] == "english" else "words as they are written"
    of_images = f"the words of {training['images']:,} images; {stems}"
    yield of_images if training["images"] else "the words of the shipped model (English)"
    if objective == objectives.CONTRAST:
        counts = training["contrasts"]
        yield f"learned from {sum(counts.values()):,} contrasts of {len(counts)} kinds"
        yield ""
        yield f"{'right of those learned from':28} {'contrasts':>9} {'right':>7}"
        for kind, share in card["right"].items():
            yield f"{kind:28} {counts[kind]:9,} {share:7.3f}"
        return
    judged = training["judged"]
    yield f"learned from {judged['pairs']:,} preferences of {judged['photos']:,} photos"
    yield from _of_agreement(card["agreement"])


def _of_people(about: dict[str, Any]) -> Iterator[str]:
    how = f"stopped by {about['stopped_by']} at epoch {about['best_epoch']} of {about['epochs']}"
    yield f"trained on {about['training']['captions']} captions, {how}"
    yield ""
    yield f"Kendall's tau c with {_AGREEMENT[about['stopped_by']]}"
    yield f"{'':18} {'stopping':>9} {'test':>9}"
    for what, (stopping, test) in about["kendall_c"].items():
        yield f"{what:18} {stopping:9.4f} {test:9.4f}"


def _of_agreement(found: dict[str, Any]) -> Iterator[str]:
    """With people's judgements of the photos that were not learned from."""
    yield ""
    counts = f"{found['rated']:,} rated captions, {found['pairs']:,} pairs"
    yield f"test: {found['photos']:,} photos that were not learned from ({counts})"
    yield f"{'':12} {'tau c with ratings':>26} {'pairs right':>26}"
    first = sorted(found["metrics"].items(), key=lambda item: item[0] != "this model")
    for name, row in first:
        tau = _figure(row["kendall_c"], row["kendall_c_interval"])
        right = _figure(row["right"], row["right_interval"])
        yield f"{name:12} {tau:>26} {right:>26}"


def _figure(value: float | None, interval: list[float] | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" + (f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else "")
