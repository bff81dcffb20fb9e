"""Writes an ONNX bundle of a captioner, and checks it against the captioner's own modules."""

import json
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from service.contract.errors import RequestRefused
from service.contract.formats import onnx_bundles, packages
from service.contract.formats.checkpoint_header import FeatureEncoder
from service.contract.formats.onnx_bundles import OnnxBundle
from workers.export import manifests, modules
from workers.export.captioner import ExportedCaptioner
from workers.export.modules import CaptionerModules, ExampleInputs, Tensors, copy_tensors
from workers.inference import pieces

_NEEDED = ("onnx", "onnxscript", "onnxruntime")
_BATCH = torch.export.Dim.DYNAMIC


def check_packages() -> None:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise RequestRefused(
            f"this needs {', '.join(missing)}, not installed here; from a clone of Prescore: "
            "pip install -c deploy/constraints.txt '.[workers,export]'"
        )


def write_bundle(
    folder: Path,
    given: ExportedCaptioner,
    encoder: FeatureEncoder | None = None,
    begin: Callable[[str], object] = lambda _: None,
) -> OnnxBundle:
    """`folder` does not exist yet, or is empty. Nothing is written where anything is wrong: raises
    RequestRefused (also: InvalidCheckpoint), which says of which module. `begin` is told each step.
    """
    check_packages()
    if folder.exists() and any(folder.iterdir()):
        raise RequestRefused(f"expected a new or empty folder, found files in {folder}")
    found = modules.wrap_modules(given)
    examples = modules.make_examples(found)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".prescore-", dir=folder.resolve().parent) as above:
        made = Path(above) / "bundle"
        made.mkdir(mode=0o755)
        _write_files(made, given, found, examples, encoder, begin)
        begin("the bundle beside the modules")
        bundle = _judged(made)
        check_bundle(made, bundle, found)
        if folder.exists():
            folder.rmdir()
        made.rename(folder)
    return bundle


def _write_files(
    made: Path,
    given: ExportedCaptioner,
    found: CaptionerModules,
    examples: ExampleInputs,
    encoder: FeatureEncoder | None,
    begin: Callable[[str], object],
) -> None:
    tokens = manifests.describe_tokens(given, found.size)
    manifest = manifests.build_manifest(given, found.images, found.states, tokens, encoder)
    images = [each["look"] for each in manifest["images"]]
    first = [each["first"] for each in manifest["state"]]
    before = [each["before"] for each in manifest["state"]]
    after = [each["after"] for each in manifest["state"]]
    begin(manifests.LOOK)
    _export(
        made / manifests.LOOK,
        found.look,
        (examples.inputs,),
        ({0: _BATCH},),
        ([next(name for name in manifest["look"] if name != "file")], [*images, *first]),
    )
    begin(manifests.STEP)
    _export(
        made / manifests.STEP,
        found.step,
        (examples.words, *examples.given),
        ({0: _BATCH}, tuple(dict.fromkeys((0, *axes), _BATCH) for axes in examples.growing)),
        (["words", *images, *before], ["logits", *after]),
    )
    if found.score is not None:
        begin(manifests.SCORE)
        _export(
            made / manifests.SCORE,
            found.score,
            (examples.captions, *examples.first),
            ({0: _BATCH, 1: _BATCH}, tuple({0: _BATCH} for _ in examples.first)),
            (["words", *images, *before], ["logits"]),
        )
    (made / tokens.file).write_text(tokens.content, "utf-8")
    (made / onnx_bundles.MANIFEST_FILE).write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")


def _judged(made: Path) -> OnnxBundle:
    with packages.open_package(made) as package:
        bundle = onnx_bundles.validate_onnx_bundle(package)
        if bundle.manifest.pieces is not None:
            pieces.read_bundle_pieces(package, bundle.manifest.pieces, pieces.parse_tokenizer)
    return bundle


def _export(
    path: Path,
    module: nn.Module,
    inputs: tuple[torch.Tensor, ...],
    dynamic: tuple[Any, ...],
    names: tuple[list[str], list[str]],
) -> None:
    try:
        with _quiet():
            program = torch.onnx.export(
                module,
                inputs,
                dynamo=True,
                dynamic_shapes=dynamic,
                input_names=names[0],
                output_names=names[1],
                verbose=False,
            )
        assert program is not None
        program.save(path, external_data=False)
    except Exception as error:  # torch and onnx raise many, without a base of their own
        why = str(error.__cause__ or error).split("\n\n")[0]
        raise RequestRefused(
            f"{path.stem}: torch.onnx.export does not take the module: {why:.500}"
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence warnings of torch about its own code, and about torchvision's absence."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


ROWS = (1, 7, 64)
LENGTHS = (1, 5, 12)
_STEPS = 6
MOST_DIFFERENCE = 1e-4  # of log-probabilities, and of states beside their size
_NOISE = 0.1


@torch.no_grad()
def check_bundle(folder: Path, bundle: OnnxBundle, modules: CaptionerModules) -> None:
    """Raises RequestRefused with the module, and where it differs most."""
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    found = bundle.manifest
    parts = {"look": found.look, "step": found.step, "score": found.score}
    sessions = {
        name: onnxruntime.InferenceSession(
            (folder / part.file).read_bytes(), providers=["CPUExecutionProvider"]
        )
        for name, part in parts.items()
        if part is not None
    }
    generator = torch.Generator().manual_seed(0)
    for rows in ROWS:
        _BundleCheck(sessions, bundle, modules, generator).rows(rows)


class _BundleCheck:
    def __init__(
        self,
        sessions: dict[str, Any],
        bundle: OnnxBundle,
        modules: CaptionerModules,
        generator: torch.Generator,
    ) -> None:
        self._sessions = sessions
        self._manifest = bundle.manifest
        self._words = bundle.size
        self._modules = modules
        self._generator = generator
        pieces = bundle.manifest.pieces
        self._most = max(LENGTHS) if pieces is None else pieces.longest  # that may be read

    def rows(self, rows: int) -> None:
        images = torch.randn(rows, *self._modules.image, generator=self._generator)
        looked = self._modules.look(images)
        graphs = self._run("look", self._manifest.looked, {self._manifest.seen: images})
        for name, one, other in zip(self._manifest.looked, looked, graphs, strict=True):
            _compare(f"look, {name}, {rows} rows", one, other)
        first = copy_tensors(looked)
        self._steps(first)
        self._steps(self._noisy(first))
        if self._modules.score is not None:
            for length in sorted({min(length, self._most) for length in LENGTHS}):
                self._score(first, self._random(rows, length))

    def _steps(self, first: Tensors) -> None:
        """Both go their own way from the same beginning."""
        images = first[: self._modules.images]
        ours: Sequence[Tensor] = first[self._modules.images :]
        theirs, rows = ours, len(first[0])
        after = [each.after for each in self._manifest.state]
        for step in range(min(_STEPS, self._most)):
            words = self._random(rows)
            logits, *ours = self._modules.step(words, *images, *ours)
            asked = [self._manifest.step.logits, *after]
            graph, *theirs = self._run("step", asked, self._fed(words, (*images, *theirs)))
            where = f"step {step + 1}, {rows} rows"
            _compare(f"{where}, logits", logits.log_softmax(1), graph.log_softmax(1))
            for name, one, other in zip(after, ours, theirs, strict=True):
                _compare(f"{where}, {name}", one, other)

    def _score(self, first: Tensors, words: Tensor) -> None:
        """Held against the module, and against steps: it must not look at later words."""
        assert self._modules.score is not None
        assert self._manifest.score is not None
        where = f"score, {len(words)} rows of {words.shape[1]} words"
        logits = self._modules.score(words, *first).log_softmax(2)
        fed = self._fed(words, first, self._manifest.score.words)
        there = {each.name for each in self._sessions["score"].get_inputs()}
        fed = {name: each for name, each in fed.items() if name in there}
        (graph,) = self._run("score", [self._manifest.score.logits], fed)
        _compare(where, logits, graph.log_softmax(2))
        images = first[: self._modules.images]
        state: Sequence[Tensor] = first[self._modules.images :]
        for at, column in enumerate(words.T):
            stepped, *state = self._modules.step(column, *images, *state)
            _compare(f"{where}, beside step {at + 1}", stepped.log_softmax(1), logits[:, at])

    def _fed(
        self, words: Tensor, given: Sequence[Tensor], name: str | None = None
    ) -> dict[str, Tensor]:
        names = [name or self._manifest.step.words, *self._manifest.fed]
        return dict(zip(names, (words, *given), strict=True))

    def _run(self, name: str, asked: list[str], fed: dict[str, Tensor]) -> list[Tensor]:
        feeds = {each: np.ascontiguousarray(tensor.numpy()) for each, tensor in fed.items()}
        try:
            found = self._sessions[name].run(asked, feeds)
        except Exception as error:  # onnxruntime raises many, without a base of their own
            sizes = ", ".join(f"{each} {list(tensor.shape)}" for each, tensor in fed.items())
            raise RequestRefused(
                f"{name}: onnxruntime does not run its graph on {sizes:.300}: {error!s:.300}"
            ) from error
        return [torch.from_numpy(each) for each in found]

    def _random(self, *shape: int) -> Tensor:
        return torch.randint(self._words, shape, generator=self._generator)

    def _noisy(self, given: Tensors) -> Tensors:
        return tuple(
            each + _NOISE * torch.randn(each.shape, generator=self._generator)
            if each.is_floating_point()
            else each
            for each in given
        )


def _compare(where: str, module: Tensor, graph: Tensor) -> None:
    if module.shape != graph.shape:
        raise RequestRefused(
            f"{where}: the module gives shape {list(module.shape)}, its graph {list(graph.shape)}"
        )
    if not module.is_floating_point():
        different = float((module != graph).sum())
    else:
        scale = module.abs().clamp(min=1)
        apart = ((module - graph).abs() / scale)[module.isfinite() | graph.isfinite()]
        different = float(apart.max()) if apart.numel() else 0.0
    if not different <= MOST_DIFFERENCE:
        raise RequestRefused(
            f"{where}: the module and its graph differ by {different:.3g}, at most "
            f"{MOST_DIFFERENCE:g} is accepted. Does it draw random numbers, or branch on values?"
        )
