"""A captioner's modules as functions of flat tuples of tensors, and example inputs for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from service.contract.errors import RequestRefused
from workers.export import manifests
from workers.export.captioner import ExportedCaptioner

Tensors = tuple[Tensor, ...]
_ROWS = 3  # torch.export takes sizes of 0 and 1 for constants
_LENGTH = 4


class LookModule(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, seen: Tensor) -> Tensors:
        images, state = self.inner(seen)
        return (*flatten_tensors(images, "look"), *flatten_tensors(state, "look"))


class StepModule(nn.Module):
    def __init__(self, inner: nn.Module, images: int, *, is_one: bool, is_image: bool) -> None:
        super().__init__()
        self.inner = inner
        self.images = images
        self.is_one = is_one  # whether the module's state is a tensor, and no tuple
        self.is_image = is_image  # the same of its images

    def forward(self, words: Tensor, *given: Tensor) -> Tensors:
        logits, state = self.inner(words, *self.parts(given))
        return (logits, *flatten_tensors(state, "step"))

    def parts(self, given: Tensors) -> tuple[Any, Any]:
        images, state = given[: self.images], given[self.images :]
        return (images[0] if self.is_image else images), (state[0] if self.is_one else state)


class ScoreModule(StepModule):
    def forward(self, words: Tensor, *given: Tensor) -> Tensor:  # type: ignore[override]
        logits: Tensor = self.inner(words, *self.parts(given))
        return logits


@dataclass(frozen=True)
class CaptionerModules:
    """`look`: features or pixels -> images and states; `step`: words, images and states -> logits
    and states; `score`: words (n, L), images and states -> logits. `images` and `states`: how many;
    `image`: the shape of one that is looked at; `size`: of logits.
    """

    look: LookModule
    step: StepModule
    score: ScoreModule | None
    images: int
    states: int
    image: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class ExampleInputs:
    """Example inputs: no two are one tensor. `growing`: the axes of each tensor that `step` takes,
    of images and states, whose size is not always this one.
    """

    inputs: Tensor
    words: Tensor
    given: Tensors
    captions: Tensor
    first: Tensors
    growing: tuple[tuple[int, ...], ...]


def flatten_tensors(found: Any, name: str) -> Tensors:
    many = (found,) if isinstance(found, Tensor) else found
    if not isinstance(many, tuple | list) or not all(isinstance(each, Tensor) for each in many):
        raise RequestRefused(
            f"{name}: expected images and states to be tensors or tuples of tensors, "
            f"found {type(found).__name__}"
        )
    return tuple(many)


@torch.no_grad()
def wrap_modules(given: ExportedCaptioner) -> CaptionerModules:
    """Raises RequestRefused where a module is not what `Captioner` says."""
    for name, module in (("look", given.look), ("step", given.step), ("score", given.score)):
        if module is not None and module.training:
            raise RequestRefused(f"{name}: expected a module in evaluation mode; call .eval()")
    image = manifests.read_image_shape(given)
    found = given.look(torch.randn(_ROWS, *image))
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise RequestRefused("look: expected two results, images and state; give () for none")
    images, state = (flatten_tensors(each, "look") for each in found)
    if not images and not state:
        raise RequestRefused("look: expected a tensor of images or of the state, found none")
    kinds = {"is_one": isinstance(found[1], Tensor), "is_image": isinstance(found[0], Tensor)}
    score = None if given.score is None else ScoreModule(given.score, len(images), **kinds).eval()
    step = StepModule(given.step, len(images), **kinds).eval()
    logits = step(torch.arange(_ROWS) % 2, *images, *state)[0]
    if logits.dim() != 2 or len(logits) != _ROWS:
        raise RequestRefused(
            f"step: expected logits for {_ROWS} rows, found shape {list(logits.shape)}"
        )
    size = logits.shape[1]
    return CaptionerModules(
        LookModule(given.look).eval(), step, score, len(images), len(state), image, size
    )


@torch.no_grad()
def make_examples(modules: CaptionerModules) -> ExampleInputs:
    inputs = torch.randn(_ROWS, *modules.image)
    first = copy_tensors(modules.look(inputs))
    images = first[: modules.images]
    states, words = [first[modules.images :]], torch.arange(_ROWS) % modules.size
    for _ in range(3):
        found = modules.step(words, *images, *states[-1])
        _check_step(found, modules)
        states.append(copy_tensors(found[1:]))
    growing = [
        tuple(axis for axis in range(1, one.dim()) if one.shape[axis] != other.shape[axis])
        for one, other in zip(states[-2], states[-1], strict=True)
    ]
    return ExampleInputs(
        inputs=inputs,
        words=words,
        given=copy_tensors((*images, *states[-1])),
        captions=(torch.arange(_ROWS * _LENGTH) % modules.size).reshape(_ROWS, _LENGTH),
        first=first,
        growing=(*(() for _ in images), *growing),
    )


def copy_tensors(found: Sequence[Tensor]) -> Tensors:
    """Copies: torch's export takes two inputs that are one tensor for one input, in silence, and
    the graph would read the first where the module reads the second.
    """
    return tuple(each.detach().clone(memory_format=torch.contiguous_format) for each in found)


def _check_step(found: Tensors, modules: CaptionerModules) -> None:
    logits, *states = found
    if logits.shape != (_ROWS, modules.size):
        raise RequestRefused(
            f"step: expected logits for {_ROWS} rows and {modules.size} words, found shape "
            f"{list(logits.shape)}"
        )
    if len(states) != modules.states:
        raise RequestRefused(
            f"step: expected as many tensors of state as look gives, {modules.states}, "
            f"found {len(states)}"
        )
    for each in states:
        if each.dim() == 0 or len(each) != _ROWS:
            raise RequestRefused(
                f"step: expected {_ROWS} rows in every tensor of state, found shape "
                f"{list(each.shape)}; torch's LSTM and GRU have rows second: give h[0]"
            )
