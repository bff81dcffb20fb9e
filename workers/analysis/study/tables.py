"""A study for people to read: as text, and as rows for a spreadsheet."""

from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any

from prescore.plain_text import quoted, write_table
from service.contract.metrics import catalogue

Found = Mapping[str, Any]
_HEADLINE = [catalogue.metric(name).name for name in catalogue.HEADLINE]
_COLUMNS = ("postgen", "place", "pregen", "dataset", "r", "r2", "p")
_RANKS = ("spearman", "spearman_p", "models")
_IDF = {
    "dataset": "CIDEr counts documents in the whole set",
    "stratum": "CIDEr counts documents in each stratum",
    None: "where CIDEr counts documents is not said",
}
_NARROW = 45  # characters: the longest name of a metric, and a little


def text(found: Found, top: int) -> str:
    """A text with the `top` best of each metric, and the headline ones wherever they are."""
    pregen = found["pregen"]
    head = (
        f"{found['rows']:,} rows of {found['models']:,} models; {_IDF[found['idf']]}\n"
        f"{pregen['remain']} of {pregen['of']} pre-gen metrics remain: {pregen['infinite']} are "
        f"infinite (or wanting) in a row, {pregen['constant']} constant in a dataset"
    )
    blocks = [_block(name, metric, top) for name, metric in found["metrics"].items()]
    return "\n\n".join([head, *blocks])


def _block(name: str, metric: Found, top: int) -> str:
    if metric["reason"] is not None:
        return quoted(f"{name}: {metric['reason']}")
    correlations = metric["correlations"]
    datasets = list(correlations[0]["datasets"]) if correlations else []
    titles = "".join(f"  {quoted(dataset):>20.20}" for dataset in datasets)
    lines = [f"{name}{_share(metric)}", f"{'':>5}{'':{_NARROW}}{'R²':>7}{titles}"]
    lines += [
        _line(place, each)
        for place, each in enumerate(correlations, 1)
        if place <= top or each["metric"] in _HEADLINE
    ]
    return "\n".join(lines)


def _share(metric: Found) -> str:
    share = metric["of_images"]
    if share is None:
        return ""
    return f": {share:.2%} of its variance lies between strata of images, not between models"


def _line(place: int, each: Found) -> str:
    own = "".join(f"  {_of_dataset(found):>20}" for found in each["datasets"].values())
    return f"{place:>4} {each['metric']:{_NARROW}}{_number(each['r2'], 4):>7}{own}"


def _of_dataset(found: Found) -> str:
    return f"{_number(found['r2'], 4)} rank {_number(found['spearman'], 2, '+')}"


def _number(value: float | None, digits: int, sign: str = "") -> str:
    return "none" if value is None else f"{value:{sign}.{digits}f}"


def csv_text(found: Found) -> str:
    """CSV with every correlation, over all rows (no dataset) and within each dataset."""
    stream = StringIO()
    columns = (*_COLUMNS, *_RANKS)
    rows = ([row.get(name, "") for name in columns] for row in _rows(found))
    write_table(stream, [columns, *rows], line_end="\n")
    return stream.getvalue()


def _rows(found: Found) -> Iterator[dict[str, Any]]:
    for name, metric in found["metrics"].items():
        for place, each in enumerate(metric["correlations"], 1):
            own = {"postgen": name, "place": place, "pregen": each["metric"]}
            yield own | {key: each[key] for key in ("r", "r2", "p")}
            for dataset, values in each["datasets"].items():
                yield own | {"dataset": dataset, **values}
