"""One row for every metric that Prescore knows: name, direction, range, definition, needs."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product

from prescore.models.metrics import Stage
from service.contract import wording
from service.contract.errors import UnknownMetric
from service.contract.metrics.derived_tables import DerivedTable
from service.contract.metrics.families import (
    FAMILIES,
    INFINITY,
    MetricFamily,
    MetricRow,
    find_family_name,
    list_learned_families,
)

FILTERS: Mapping[str, str] = {
    "none": "all tokens of a caption",
    "filter0": "its tokens of rank 0 (the model's own first choice)",
    "prefix0": "its longest prefix whose tokens all have rank 0",
    "miss0": "its tokens of rank other than 0",
}
CAPTION_SCORES: Mapping[str, str] = {
    "prob": "the product of the probabilities",
    "pplx": "the perplexity 2^(-mean log2 p)",
    "count": "the number",
    "normcount": "the number, divided by the caption's length with END,",
}
AGGREGATES: Mapping[str, str] = {
    "sum": "sum",
    "mean": "mean",
    "median": "median",
    "geomean": "geometric mean",
    "max": "maximum",
    "min": "minimum",
}
JOIN = "join"
ALIASES: Mapping[str, str] = {"perplexity": "geomean_join_pplx_none"}
PERPLEXITY = "exp(-mean over captions of (sum of log p / number of tokens of the caption))"
CORPUS, BITS = "corpus_perplexity", "bits_per_byte"
GROUPS: Mapping[str, tuple[str, ...]] = DerivedTable(  # families that one name requests
    lambda: {name: row.names for name, row in FAMILIES.items() if row.is_group}, FAMILIES
)
LEARNED = tuple(list_learned_families())  # families whose models may be named
_DIGITS = "(?:sha256:)?([0-9a-f]{12,64})"
MODEL = f"(?:{'|'.join(LEARNED)})@{_DIGITS}"  # the metric of a certain model
SUMMED = ("sum", "mean", "geomean")  # aggregates that are sums over images: comparisons need one
HEADLINE = ("mean_max_normcount_prefix0", "perplexity", "mean_join_normcount_filter0")


@dataclass(frozen=True)
class MetricSpec:
    name: str
    family: Stage
    higher_is_better: bool | None  # None: neither (a caption's length, a product of all hits)
    range: tuple[float, float]
    definition: str
    needs: tuple[str, ...]

    @property
    def sign(self) -> int:
        """1 where higher is better, -1 where lower is, 0 where neither is."""
        return {True: 1, False: -1, None: 0}[self.higher_is_better]


def find_metric(name: str) -> MetricSpec:
    """The row of a metric or an alias; UnknownMetric suggests the nearest names."""
    digits = read_model_digits(name)
    if digits is not None:
        family = find_family_name(name)
        return replace(POSTGEN[family], name=name_learned_metric(family, digits))
    try:
        return METRICS[ALIASES.get(name, name)]
    except KeyError:
        raise UnknownMetric(_unknown(name), name=name) from None


def _unknown(name: str) -> str:
    if name in GROUPS:
        return f"{name} is several metrics: {', '.join(GROUPS[name])}"
    known = [*METRICS, *ALIASES, *GROUPS]
    question = wording.suggest_names(name, known) or wording.suggest_longer_names(
        name, [*HEADLINE, *ALIASES.values(), *known]
    )
    return f"no metric is called {name!r:.100}{question}"


def read_model_digits(name: str) -> str | None:
    """The first digits of a model's SHA-256, which follow the `@` in a learned metric's name; None
    for other names.
    """
    family, at, digits = name.partition("@")
    if not at or family not in LEARNED:
        return None
    found = re.fullmatch(_DIGITS, digits)
    if found is None:
        raise UnknownMetric(
            f"expected {family}@ and the first 12 or more hex digits of a model's SHA-256, found "
            f"{name!r:.100}",
            name=name,
        )
    return found[1]


def name_learned_metric(family: str, digest: str) -> str:
    """The name of a model's metric, from its family and the SHA-256 of the model's file."""
    return f"{family}@{digest.removeprefix('sha256:')[:12]}"


def list_metric_names(name: str) -> list[str]:
    """The name of a metric and its aliases."""
    full = find_metric(name).name
    return [full, *(alias for alias, of in ALIASES.items() if of == full)]


def find_shown_name(name: str) -> str:
    """A metric's alias, by which answers call it; its own name where it has none."""
    return next((alias for alias, of in ALIASES.items() if of == name), name)


def is_summed(name: str) -> bool:
    """Tell whether the metric is a sum over images, by which evaluations can be compared."""
    full = find_metric(name).name
    return full not in PREGEN or full.split("_")[0] in SUMMED


def expand_groups(names: Iterable[str]) -> list[str]:
    """Each name once, in order, a group (`bleu`) as its metrics; aliases keep their own name."""
    found = dict.fromkeys(full for name in names for full in GROUPS.get(name, (name,)))
    for name in found:
        find_metric(name)
    return list(found)


def explain_unknown_name(name: str) -> str | None:
    """Why this is the name of neither a metric nor a group; None where it is."""
    try:
        expand_groups([name])
    except UnknownMetric as error:
        return error.detail
    return None


def sort_metric_names(names: Iterable[str]) -> list[str]:
    """Names of metrics as the catalogue lists them, those of learned models by their digits."""
    places = {name: at for at, name in enumerate(METRICS)}
    return sorted(names, key=lambda name: (places.get(find_family_name(name), len(places)), name))


def find_metric_task(name: str) -> str:
    full = find_metric(name).name
    return "pregen" if full in PREGEN else _FAMILY_OF.get(full, full)


def list_metric_tasks(names: Iterable[str]) -> list[str]:
    """The names of the tasks that compute these metrics, each once."""
    return list(dict.fromkeys(map(find_metric_task, names)))


def build_pregen_name(dataset: str, image: str, caption: str, chosen: str) -> str:
    """The name of a pre-gen metric, such as mean_max_normcount_prefix0."""
    return f"{dataset}_{image}_{caption}_{chosen}"


def _higher_is_better(caption: str, chosen: str) -> bool | None:
    if caption == "pplx":
        return False
    if caption == "prob":  # more hits mean more factors below 1, so the product has no direction
        return None if chosen in ("filter0", "prefix0") else True
    return {"none": None, "filter0": True, "prefix0": True, "miss0": False}[chosen]


def _range(dataset: str, image: str, caption: str) -> tuple[float, float]:
    low = 1.0 if caption == "pplx" else 0.0
    bounded = caption in ("prob", "normcount") and "sum" not in (dataset, image)
    return low, 1.0 if bounded else INFINITY


def _definition(dataset: str, image: str, caption: str, chosen: str) -> str:
    over = (
        f"{AGGREGATES[dataset]} over all captions"
        if image == JOIN
        else f"{AGGREGATES[dataset]} over images of the {AGGREGATES[image]} over their captions"
    )
    definition = f"The {over} of {CAPTION_SCORES[caption]} of {FILTERS[chosen]}."
    if build_pregen_name(dataset, image, caption, chosen) == ALIASES["perplexity"]:
        return f"{definition} It is called perplexity: {PERPLEXITY}."
    return definition


def _pregen() -> Iterable[MetricSpec]:
    tiers = product(AGGREGATES, (*AGGREGATES, JOIN), CAPTION_SCORES, FILTERS)
    for dataset, image, caption, chosen in tiers:
        instant = chosen == "prefix0" and caption in ("count", "normcount")
        yield MetricSpec(
            name=build_pregen_name(dataset, image, caption, chosen),
            family="pregen",
            higher_is_better=_higher_is_better(caption, chosen),
            range=_range(dataset, image, caption),
            definition=_definition(dataset, image, caption, chosen),
            needs=("prefix",) if instant else ("columns",),
        )


def _of_captions(metric: MetricRow, family: MetricFamily) -> MetricSpec:
    return MetricSpec(
        name=metric.name,
        family="postgen",
        higher_is_better=metric.higher_is_better,
        range=(metric.lowest, metric.highest),
        definition=metric.definition,
        needs=("captions", "references") if family.compares else ("captions",),
    )


def _postgen() -> dict[str, MetricSpec]:
    rows = ((metric, row) for row in FAMILIES.values() for metric in row.metrics)
    return {metric.name: _of_captions(metric, row) for metric, row in rows}


PREGEN: Mapping[str, MetricSpec] = {spec.name: spec for spec in _pregen()}
TOKEN_METRICS: Mapping[str, MetricSpec] = {  # pre-gen metrics whose names have no tiers
    CORPUS: MetricSpec(
        name=CORPUS,
        family="pregen",
        higher_is_better=False,
        range=(1.0, INFINITY),
        definition="The perplexity of all tokens of all captions together, END included: "
        "exp(-sum of log p / number of tokens).",
        needs=("columns",),
    ),
    BITS: MetricSpec(
        name=BITS,
        family="pregen",
        higher_is_better=False,
        range=(0.0, INFINITY),
        definition="The bits of all tokens of all captions together, END included, per byte of the "
        "captions as the dataset has them, in UTF-8: -sum of log2 p / number of bytes.",
        needs=("columns", "references"),
    ),
}
POSTGEN: Mapping[str, MetricSpec] = DerivedTable(_postgen, FAMILIES)
_FAMILY_OF: Mapping[str, str] = DerivedTable(
    lambda: {name: family for family, row in FAMILIES.items() for name in row.names}, FAMILIES
)
METRICS: Mapping[str, MetricSpec] = DerivedTable(
    lambda: {**PREGEN, **TOKEN_METRICS, **POSTGEN}, FAMILIES
)
