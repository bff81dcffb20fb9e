"""What a study's task writes."""

import json
from pathlib import Path

import numpy as np
import pytest

from service.contract.formats.digests import compute_digest
from workers.bench.study import rows
from workers.bench.study.rows import StratumRows
from workers.jobs import bench
from workers.jobs.request import JobRequest


def _rows(seed, postgen):
    rng = np.random.default_rng(seed)
    strata = [(count, at) for count in range(1, 6) for at in range(count)]
    return StratumRows(
        datasets=[""] * 15,
        models=[""] * 15,
        strata=[count for count, _ in strata],
        stratum=[at for _, at in strata],
        pregen={name: rng.normal(size=15) for name in ("mean_pplx_none", "perplexity")},
        postgen={name: rng.normal(size=15) for name in postgen},
        idf="dataset",
    )


@pytest.fixture
def models(tmp_path):
    """Files of rows; not all have all scores."""
    files = []
    for seed, postgen in enumerate([("cider_d",), ("cider_d", "rouge_l"), ("cider_d", "bleu_1")]):
        files.append(tmp_path / f"{seed}.safetensors")
        rows.write_rows_file(files[-1], _rows(seed, postgen))
    return files


def _correlated(models, names, path: Path):
    inputs = dict(zip(names, models, strict=True))
    digests = {name: compute_digest(file) for name, file in inputs.items()}
    request = JobRequest(inputs, digests, (), {"dataset": "tiny@v1/test"})
    bench.correlate_strata(request, None, None).write(path)
    return path.read_bytes()


def test_metrics_stand_in_the_catalogues_order_whatever_runs_are_called(models, tmp_path):
    """Their ids are drawn; all else is content."""
    orders = [("a", "b", "c"), ("c", "b", "a"), ("b", "c", "a")]
    (written,) = {_correlated(models, names, tmp_path / "out") for names in orders}
    assert list(json.loads(written)["metrics"]) == ["bleu_1", "rouge_l", "cider_d"]
