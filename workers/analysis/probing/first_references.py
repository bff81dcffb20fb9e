"""Probes that replace words in people's first references, and score these against the other
references.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from workers.analysis.probing import variants
from workers.analysis.probing.asking import Asked, Options, left_out, no_rest, row
from workers.analysis.probing.material import count, split
from workers.analysis.probing.table import Row
from workers.analysis.probing.variants import Variant

UNCHANGED = "R1 unchanged"


@dataclass(frozen=True)
class _Change:
    """A change of the captions. The scores of several variants are averaged; if there is a
    `reason`, there are no variants.
    """

    name: str
    variants: Sequence[Variant] = ()
    note: str = ""
    reason: str | None = None


_Changes = Callable[[Asked, Sequence[str]], Iterator[_Change]]


def threshold(fewer: int) -> str:
    """The name of the row in which words become unknown that occur fewer times than this."""
    return f"T = {fewer}"


def frequent(asked: Asked) -> list[Row]:
    """One word at a time becomes unknown."""
    return _rows("frequent", asked, _frequent)


def rare(asked: Asked) -> list[Row]:
    """All words that training captions hold too few times become unknown."""
    if not asked.material.training:
        return [Row("rare", UNCHANGED, reason="no training captions to count words in")]
    return _rows("rare", asked, _rare)


def swap(asked: Asked) -> list[Row]:
    """One word replaces another."""
    return _rows("swap", asked, _swapped)


def random(asked: Asked) -> list[Row]:
    """Words outside the stop list become unknown, as many as a frequent word has occurrences."""
    return _rows("random", asked, _random)


def _frequent(asked: Asked, first: Sequence[str]) -> Iterator[_Change]:
    words, unknown = asked.options.frequent, variants.unknown(asked.material)
    if isinstance(words, int):
        words = [word for word, _ in asked.material.counts.most_common(words)]
    for word in words:
        yield _whole(word, word, variants.replaced(first, {word: unknown}))


def _rare(asked: Asked, first: Sequence[str]) -> Iterator[_Change]:
    counts, unknown = count(asked.material.training or ()), variants.unknown(asked.material)
    for fewer in asked.options.thresholds:
        found = variants.rare(first, counts, fewer, unknown)
        none = (
            f"no first reference holds a word that training captions hold fewer than {fewer} times"
        )
        yield _Change(threshold(fewer), [found], "" if found.share else none)


def _swapped(asked: Asked, first: Sequence[str]) -> Iterator[_Change]:
    for word, other in asked.options.swaps:
        yield _whole(f"{word} -> {other}", word, variants.replaced(first, {word: other}))


def _whole(name: str, word: str, found: Variant) -> _Change:
    if found.share:
        return _Change(name, [found])
    return _Change(name, reason=f"no first reference holds the token {word!r}")


def _random(asked: Asked, first: Sequence[str]) -> Iterator[_Change]:
    options, tokens = asked.options, [token for caption in first for token in split(caption)]
    places = [place for place, token in enumerate(tokens) if token not in options.stop_list]
    many = tokens.count(options.like)
    if options.share is not None:
        many = round(options.share * len(tokens))
    if reason := _not_random(options, many, len(places)):
        yield _Change("random", reason=reason)
        return
    unknown = variants.unknown(asked.material)
    found = [variants.at_random(first, places, many, unknown, seed) for seed in options.seeds]
    note = f"seeds {list(options.seeds)}; stop list of {len(options.stop_list)} words"
    yield _Change("random", found, note)


def _not_random(options: Options, many: int, places: int) -> str | None:
    if not options.seeds:
        return "expected at least one seed, found none"
    if many <= 0 and options.share is None:
        return f"no share to replace: no first reference holds the token {options.like!r}"
    if not 0 < many <= places:
        return f"expected 1 to {places} tokens, all outside the stop list, found {many}"
    return None


def _rows(probe: str, asked: Asked, changes: _Changes) -> list[Row]:
    material = asked.material
    if reason := no_rest(material):
        return [Row(probe, UNCHANGED, reason=reason)]
    first = material.column(0)
    changed = [_Change(UNCHANGED, [Variant(first, 0.0)], left_out(material))]
    changed += changes(asked, first)
    found = iter(
        asked.scores([(each.captions, 0) for change in changed for each in change.variants])
    )
    rows: list[Row] = []
    for change in changed:
        if change.reason:
            rows.append(Row(probe, change.name, share=0.0, reason=change.reason))
            continue
        scored = [next(found) for _ in change.variants]
        share = change.variants[0].share
        unchanged = rows[0] if rows else None
        rows.append(row(probe, change.name, scored, unchanged, share=share, note=change.note))
    return rows
