"""Keys of tasks: what was computed before stays known. `keys.json` was written down when the facts
of a metric still stood in a dozen places.

A key changes where the version of a kind does, and nowhere else: then, and only for the tasks that
depend on it, `PYTHONPATH=tests python tests/service/contract/plan/test_keys.py` writes them again.
"""

import hashlib
import json
from pathlib import Path

from helpers.estimated_plans import checkpoint_plan, with_estimate
from service.contract.assets import AssetFolders
from service.contract.metrics import catalogue
from service.contract.plan import metric_requests, planning
from service.contract.plan.planning import ProbeInputs, StudiedModel, TrainingCaptioner
from service.contract.plan.postgen import PostgenRequest
from service.contract.plan.tasks import Blob

KEPT = Path(__file__).with_name("keys.json")
FAMILIES = catalogue.list_metric_tasks(catalogue.POSTGEN)
NOWHERE = AssetFolders(Path("/nowhere"))
MODEL = "nneval@0123456789ab"
OWN = {
    "wmd": {"vectors": "v"},
    "wmd_unit": {"vectors": "v"},
    "bertscore": {"encoder": "e", "layer": 3, "idf": True, "baseline": 0.5},
    "chair": {"objects": "o"},
    "refscore": {"encoder": "e", "layer": 3},
    "accord_large": {"encoder": "e", "layer": 3},
    "nneval": {"model": "m", "vectors": "v"},
    MODEL: {"vectors": "v"},
}
PROBES = ("human", "frequent", "rare", "swap", "random", "single")
PROBED = [name for name in catalogue.POSTGEN if catalogue.find_metric_task(name) != "variety"]
PEOPLE = planning.ReferenceSource("sha256:d", "test")
OPTIONS = {"single": {"objective": "cider_d"}, "frequent": {"frequent": 5}}


def _captions(families, images=9, tokenizer="ptb", **how):
    wanted = PostgenRequest(families, tokenizer, **how)
    return planning.plan_captions("sha256:o", "sha256:d", "test", images, wanted)


def _checkpoint(families, images=9, own=None, **how):
    wanted = PostgenRequest(families, "ptb", own=own or {})
    return checkpoint_plan(wanted, images, **how)


def _asked(tokenizer="ptb", idf="dataset"):
    """As a request is understood where no asset is."""
    return metric_requests.gather_postgen(
        FAMILIES,
        NOWHERE,
        tokenizer=tokenizer,
        idf=idf,
        bertscore={"idf": False, "baseline": None},
        splits=["train", "test"],
        split="test",
    )


def _probes(**how):
    asked_for = ProbeInputs(PROBES, PROBED, **{"tokenizer": "ptb", "options": OPTIONS} | how)
    return planning.plan_probes("sha256:d", "test", asked_for)


def _studied(idf):
    plan = _checkpoint(FAMILIES).named
    scores = {name: plan[name] for name in FAMILIES if name in planning.STUDIED_FAMILIES}
    one = planning.plan_strata(
        StudiedModel(plan["columns"], scores, plan["captions"], plan["references"]), idf
    )
    return planning.Plan({"strata": one, "study": planning.plan_study({"m": one}, "sha256:d")})


def _plans():
    everything = [*FAMILIES, MODEL]
    backwards = list(reversed(everything))
    models = {MODEL: "sha256:m"}
    yield from ((f"{name} alone", _captions([name])) for name in FAMILIES)
    yield "one of many images", _captions(["spice", "bertscore"], images=2000, own=OWN)
    for tokenizer in ("ptb", "none"):
        yield f"all, {tokenizer}", _captions(everything, tokenizer=tokenizer, models=models)
    how = {"own": OWN, "models": models, "training": "train"}
    yield "all, with their own", _captions(everything, **how)
    yield "all, backwards", _captions(backwards, idf="subset", **how)
    yield "SPIDEr behind its half", _captions(["cider_d", "spider", "wmd"])
    yield "a checkpoint", _checkpoint(FAMILIES, own=OWN)
    yield "a checkpoint, in its order", _checkpoint(FAMILIES, images=3000, own=OWN)
    yield "a checkpoint, without pre-gen", _checkpoint(["bleu"], pregen=False)
    yield "a checkpoint, pre-gen alone", _checkpoint([])
    slow = {"beam": 20, "max_words": 200}
    ordered = _checkpoint(FAMILIES, images=3000, decoding=slow)
    past = {name: f"sha256:{name}" for name in FAMILIES}
    yield "estimates", with_estimate(ordered)
    yield "estimates beside a baseline", with_estimate(ordered, past)
    yield "a forecast", _checkpoint(["bleu"], history="sha256:h")
    for tokenizer in ("ptb", "none"):
        for idf in ("dataset", "subset"):
            wanted = _asked(tokenizer, idf)
            plan = planning.plan_captions("sha256:o", "sha256:d", "test", 9, wanted)
            yield f"asked for, {tokenizer}, {idf}", plan
    for tokenizer in ("ptb", "none", "character", "regex"):
        yield f"probes, {tokenizer}", _probes(tokenizer=tokenizer)
    yield "probes with more", _probes(own=OWN, training="train", captions=Blob("sha256:o"))
    understood, _ = metric_requests.gather_probes(
        PROBES,
        PROBED,
        NOWHERE,
        tokenizer="regex",
        options=OPTIONS,
        splits=["train", "test"],
        split="test",
        captions="sha256:o",
    )
    yield "probes, understood", planning.plan_probes("sha256:d", "test", understood)
    yield "a study", _studied("dataset")
    yield "a study by strata", _studied("stratum")
    captioners = [
        TrainingCaptioner("a", Blob("a"), (Blob("t"), "train")),
        TrainingCaptioner("b", Blob("b")),
    ]
    recipe = {"features": ["bleu_1", "wmd"], "tokenizer": "ptb", "vectors": "v"}
    learned = planning.plan_learned("sha256:d", "test", captioners, Blob("r"), recipe)
    yield "a training", learned
    scored = _captions(["bleu"]).named["bleu"]
    compared = [
        planning.plan_comparison(scored, Blob("b"), PEOPLE),
        planning.plan_comparison(Blob("a"), Blob("b"), PEOPLE),
        planning.plan_comparison(Blob("a"), Blob("b"), PEOPLE, ["perplexity"]),
    ]
    yield "comparisons", planning.Plan({str(at): task for at, task in enumerate(compared)})
    yield "pre-gen of all tokens", _checkpoint([], token_metrics=[*catalogue.TOKEN_METRICS])
    counted = planning.plan_comparison(Blob("a"), Blob("b"), PEOPLE, [catalogue.BITS])
    yield "a comparison by bytes", planning.Plan({"columns": counted})


def _keys():
    """Of each plan its tasks, in their order, and one digest of all that they need."""
    found = {}
    for name, plan in _plans():
        named = [f"{each} {task.kind} {task.key[:8]}" for each, task in plan.named.items()]
        needed = "".join(task.key for task in plan.everything())
        found[name] = [*named, hashlib.sha256(needed.encode()).hexdigest()[:8]]
    return found


def test_every_task_is_known_by_the_key_that_it_always_had():
    assert _keys() == json.loads(KEPT.read_text("utf-8"))


if __name__ == "__main__":
    lines = (f"{json.dumps(name)}: {json.dumps(tasks)}" for name, tasks in _keys().items())
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
