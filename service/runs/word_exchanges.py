"""Words that one of two compared evaluations says in the place of words of the other."""

import math
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from prescore.models.comparisons import WordExchange, WordExchanges
from service.contract.errors import NotFound
from service.contract.metrics import catalogue
from service.contract.results import StoredComparison
from service.engine.service_parts import ServiceParts
from service.runs import caption_words, comparisons, run_store, scored_captions
from service.runs.scored_captions import ScoredCaptions

MOST_IMAGES = 10_000  # of a comparison, in the dataset's order
_FEWEST = 2  # images


def find_word_exchanges(
    parts: ServiceParts, identity: str, metric: str | None, limit: int
) -> WordExchanges:
    """The content words that `a` says in the place of words of `b` more often than the reverse, the
    largest excess first.
    """
    with parts.records.reading() as connection:
        view = run_store.load_run(connection, identity, comparisons.KIND)
    request = view.request(StoredComparison)
    names = [catalogue.find_metric(name).name for name in request.metrics]
    wanted = None if metric is None else comparisons.find_asked_metric(metric, names)
    a, b = (scored_captions.find_scored_captions(parts, side) for side in (request.a, request.b))
    if a.index.places != b.index.places:
        raise NotFound(f"the captions that {identity} compares are not of the same images")
    counts: Counter[tuple[str, str]] = Counter()
    images = 0
    for one, other in _read_captions(a, b, wanted, identity):
        images += 1
        if one != other:
            counts.update(caption_words.find_exchanges(one, other))
    items = [
        WordExchange(a=word, b=instead, images=many, reverse=counts[instead, word], excess=excess)
        for (word, instead), many in [*counts.items()]
        if many >= _FEWEST and (excess := many - counts[instead, word]) > 0
    ]
    items.sort(key=lambda item: (-item.excess, -item.images, item.a, item.b))
    return WordExchanges(items=items[:limit], images=images)


def _read_captions(
    a: ScoredCaptions, b: ScoredCaptions, metric: str | None, identity: str
) -> Iterator[tuple[str, str]]:
    """Both captions of each image, of which both have a score by the metric if one is asked for."""
    pairs = zip(a.captions(), b.captions(), strict=True)
    if metric is None:
        yield from islice(pairs, MOST_IMAGES)
        return
    comparisons.choose_caption_metric(identity, [*a.scores.keys() & b.scores.keys()], metric)
    scores = zip(a.column(metric), b.column(metric), strict=True)
    for captions, values in islice(zip(pairs, scores, strict=True), MOST_IMAGES):
        if all(map(math.isfinite, values)):
            yield captions
