"""Probes that replace words in people's first references."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from workers.bench.probing.inputs import (
    ProbeArguments,
    ProbeContext,
    ProbeMaterial,
    count_tokens,
    describe_left_out,
    explain_single_references,
    make_probe_row,
    split_tokens,
)
from workers.bench.probing.scoring import ProbeTableRow


@dataclass(frozen=True)
class CaptionVariant:
    captions: Sequence[str]
    share: float  # of tokens replaced


def invent_unknown_word(material: ProbeMaterial) -> str:
    """A word that no caption holds, for metrics that have no UNK."""
    words = {word.lower() for word in material.counts}
    found = "unk"
    while found in words:
        found += "k"
    return found


def replace_words(captions: Sequence[str], words: Mapping[str, str]) -> CaptionVariant:
    """Replace every word in `words` by its new word, wherever it occurs."""
    tokens = [split_tokens(caption) for caption in captions]
    many = sum(token in words for found in tokens for token in found)
    total = sum(map(len, tokens))
    changed = [" ".join(words.get(token, token) for token in found) for found in tokens]
    return CaptionVariant(changed, many / max(1, total))


def replace_rare_words(
    captions: Sequence[str], training: Mapping[str, int], fewer: int, word: str
) -> CaptionVariant:
    """Replace words that training captions hold fewer times than `fewer`, or not at all."""
    known = count_tokens(captions)
    return replace_words(
        captions, {token: word for token in known if training.get(token, 0) < fewer}
    )


def replace_random_words(
    captions: Sequence[str], places: Sequence[int], many: int, word: str, seed: int
) -> CaptionVariant:
    """Replace the tokens at `many` of the places, which are drawn with equal probability."""
    tokens = [token for caption in captions for token in split_tokens(caption)]
    chosen = np.random.default_rng(seed).choice(places, many, replace=False)
    for place in chosen.tolist():
        tokens[place] = word
    left = iter(tokens)
    changed = [" ".join(islice(left, len(split_tokens(caption)))) for caption in captions]
    return CaptionVariant(changed, many / max(1, len(tokens)))


UNCHANGED = "R1 unchanged"


@dataclass(frozen=True)
class _CaptionChange:
    """A change of the captions, whose variants' scores are averaged; or why there are none."""

    name: str
    variants: Sequence[CaptionVariant] = ()
    note: str = ""
    reason: str | None = None


_Changes = Callable[[ProbeContext, Sequence[str]], Iterator[_CaptionChange]]


def name_threshold_row(fewer: int) -> str:
    """The name of the row in which words become unknown that occur fewer times than this."""
    return f"T = {fewer}"


def _frequent(asked: ProbeContext, first: Sequence[str]) -> Iterator[_CaptionChange]:
    """One word at a time becomes unknown."""
    words, unknown = asked.options.frequent, invent_unknown_word(asked.material)
    if isinstance(words, int):
        words = [word for word, _ in asked.material.counts.most_common(words)]
    for word in words:
        yield _whole(word, word, replace_words(first, {word: unknown}))


def _rare(asked: ProbeContext, first: Sequence[str]) -> Iterator[_CaptionChange]:
    """All words that training captions hold too few times become unknown."""
    counts = count_tokens(asked.material.training or ())
    unknown = invent_unknown_word(asked.material)
    for fewer in asked.options.thresholds:
        found = replace_rare_words(first, counts, fewer, unknown)
        none = f"no first caption has a word that training captions have fewer than {fewer} times"
        yield _CaptionChange(name_threshold_row(fewer), [found], "" if found.share else none)


def _swapped(asked: ProbeContext, first: Sequence[str]) -> Iterator[_CaptionChange]:
    """One word replaces another."""
    for word, other in asked.options.swaps:
        yield _whole(f"{word} -> {other}", word, replace_words(first, {word: other}))


def _whole(name: str, word: str, found: CaptionVariant) -> _CaptionChange:
    if found.share:
        return _CaptionChange(name, [found])
    return _CaptionChange(name, reason=f"no first caption has the word {word!r}")


def _random(asked: ProbeContext, first: Sequence[str]) -> Iterator[_CaptionChange]:
    """Words outside the stop list become unknown, as many as a frequent word has occurrences."""
    options, tokens = asked.options, [token for caption in first for token in split_tokens(caption)]
    places = [place for place, token in enumerate(tokens) if token not in options.stop_list]
    many = tokens.count(options.like)
    if options.share is not None:
        many = round(options.share * len(tokens))
    if reason := _not_random(options, many, len(places)):
        yield _CaptionChange("random", reason=reason)
        return
    unknown = invent_unknown_word(asked.material)
    found = [replace_random_words(first, places, many, unknown, seed) for seed in options.seeds]
    note = f"seeds {list(options.seeds)}; stop list of {len(options.stop_list)} words"
    yield _CaptionChange("random", found, note)


def _not_random(options: ProbeArguments, many: int, places: int) -> str | None:
    if not options.seeds:
        return "expected at least one seed, found none"
    if many <= 0 and options.share is None:
        return f"no share to replace: no first caption has the word {options.like!r}"
    if not 0 < many <= places:
        return f"expected 1 to {places} tokens, all outside the stop list, found {many}"
    return None


WORD_PROBES: Mapping[str, _Changes] = {
    "frequent": _frequent,
    "rare": _rare,
    "swap": _swapped,
    "random": _random,
}


def probe_words(probe: str, asked: ProbeContext) -> list[ProbeTableRow]:
    """Score the first references, then each change of their words, against the others."""
    material = asked.material
    reason = explain_single_references(material)
    if probe == "rare" and not material.training:
        reason = "no training captions to count words in"
    if reason:
        return [ProbeTableRow(probe, UNCHANGED, reason=reason)]
    first = material.column(0)
    changed = [_CaptionChange(UNCHANGED, [CaptionVariant(first, 0.0)], describe_left_out(material))]
    changed += WORD_PROBES[probe](asked, first)
    found = iter(
        asked.scores([(each.captions, 0) for change in changed for each in change.variants])
    )
    rows: list[ProbeTableRow] = []
    for change in changed:
        if change.reason:
            rows.append(ProbeTableRow(probe, change.name, share=0.0, reason=change.reason))
            continue
        scored = [next(found) for _ in change.variants]
        share = change.variants[0].share
        unchanged = rows[0] if rows else None
        rows.append(
            make_probe_row(probe, change.name, scored, unchanged, share=share, note=change.note)
        )
    return rows
