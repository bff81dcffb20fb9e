"""Image encoders: pooled features of pictures by MobileNetV2 (Sandler et al. 2018), without its
classifier.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import conv2d, hardtanh, pad

from service.contract.errors import UnusableCheckpoint
from service.contract.formats import encoder_header
from service.contract.formats.encoder_header import EncoderHeader
from workers.inference import checkpoint_checks, pictures
from workers.inference.features import ComputedFeatures
from workers.inference.pictures import PictureDecodingFailure, PictureFit, Pixels
from workers.progress import Progress, ignore_progress

_KERNEL = 3
_BATCH = 128  # divides sharding.BLOCK_IMAGES, so that features do not depend on shards


class MobileNetV2:
    def __init__(self, header: EncoderHeader, tensors: Mapping[str, Tensor]) -> None:
        self.header = header
        self._tensors = {
            name: tensor.contiguous(memory_format=torch.channels_last)
            if tensor.ndim == 4
            else tensor
            for name, tensor in tensors.items()
        }
        self._blocks = list(encoder_header.list_mobilenet_blocks())
        values = header.preprocessing
        self._mean = self._constant(values.mean)
        self._deviation = self._constant(values.deviation)

    @property
    def batch(self) -> int:
        """Number of pictures that go through the network at once. One on a CPU, where that is as
        fast: so an image's features depend on no other image.
        """
        return 1 if self.on_cpu else _BATCH

    @property
    def on_cpu(self) -> bool:
        return self._mean.device.type == "cpu"

    @property
    def fit(self) -> PictureFit:
        """Size that pictures must have before `features`."""
        asked = self.header.preprocessing
        return PictureFit(asked.resample, asked.stretched, asked.shorter, asked.cropped)

    @torch.inference_mode()
    def features(self, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features (N, 1280) of pictures (N, height, width, 3) of the right size."""
        whole = torch.from_numpy(pictures).to(self._mean.device)
        x = (whole.float() - self._mean) / self._deviation
        found = self._walk(x.permute(0, 3, 1, 2))  # in memory as they were: channels last
        return found.mean((2, 3)).cpu().numpy()

    def _walk(self, x: Tensor) -> Tensor:
        x = self._relu6(self._square(x, "stem", 2))
        for place, block in enumerate(self._blocks):
            at, before = f"blocks.{place}", x
            if block.inner != block.given:
                x = self._relu6(self._point(x, f"{at}.expand"))
            x = self._relu6(self._square(x, f"{at}.depthwise", block.stride, block.inner))
            x = self._point(x, f"{at}.project")
            if block.stride == 1 and block.given == block.out:
                x = x + before
        return self._relu6(self._point(x, "head"))

    def _point(self, x: Tensor, name: str) -> Tensor:
        return conv2d(x, self._tensors[f"{name}.weight"], self._tensors[f"{name}.bias"])

    def _square(self, x: Tensor, name: str, stride: int, groups: int = 1) -> Tensor:
        weight, bias = self._tensors[f"{name}.weight"], self._tensors[f"{name}.bias"]
        if self.header.padding == "symmetric" or stride == 1:
            return conv2d(x, weight, bias, stride, 1, groups=groups)
        height, width = (_after(side, stride) for side in x.shape[2:])
        return conv2d(pad(x, (*width, *height)), weight, bias, stride, groups=groups)

    @staticmethod
    def _relu6(x: Tensor) -> Tensor:
        return hardtanh(x, 0.0, 6.0)

    def _constant(self, values: tuple[float, ...]) -> Tensor:
        return torch.tensor(values, device=self._tensors["stem.bias"].device)


def read_image_encoder(path: Path, device: torch.device | str = "cpu") -> MobileNetV2:
    """The encoder in a file. Raises AssetRefused for its header, and UnusableCheckpoint where a
    tensor's values are not finite.
    """
    header = encoder_header.read_encoder_header(path)
    try:
        tensors = checkpoint_checks.read_finite_tensors(path, header.tensors, device)
    except UnusableCheckpoint as error:
        raise UnusableCheckpoint(f"encoder, {error.detail}") from None
    return MobileNetV2(header, tensors)


def _after(side: int, stride: int) -> tuple[int, int]:
    """The zeros that TensorFlow adds before and after a side: as many or one more after it."""
    needed = max((-(-side // stride) - 1) * stride + _KERNEL - side, 0)
    return needed // 2, needed - needed // 2


Encode = Callable[[NDArray[np.uint8]], NDArray[np.float32]]

_AHEAD = 128  # pictures that are decoded while as many are encoded: what one child decodes


def encode_pictures(
    encoder: MobileNetV2,
    sha256: str,
    bundle: Path,
    images: Sequence[str],
    sandbox: str = "required",
    progress: Progress = ignore_progress,
) -> ComputedFeatures:
    """Features of the pictures, a row for each image. A picture that cannot be decoded has a row
    without numbers, and is named with the reason.
    """
    width, height = encoder.header.preprocessing.size
    rows = np.full((len(images), encoder.header.size), np.nan, np.float32)
    undecoded: dict[str, str] = {}
    at = 0
    with _in_batches(encoder) as encoded:
        for found in _ahead(
            pictures.read_pictures(bundle, images, fit=encoder.fit, sandbox=sandbox)
        ):
            right = np.zeros((len(found), height, width, 3), np.uint8)
            for place, one in enumerate(found):
                if isinstance(one, PictureDecodingFailure):
                    undecoded[images[at + place]] = one.reason
                elif one.shape != right.shape[1:]:
                    undecoded[images[at + place]] = f"it was decoded to {list(one.shape)}"
                else:
                    right[place] = one
            rows[at : at + len(found)] = encoded(right)
            at += len(found)
            progress(at, len(images))
    for place, image in enumerate(images):
        if image in undecoded:
            rows[place] = np.nan
    return ComputedFeatures(tuple(images), rows, encoder.header.identity(sha256), undecoded)


@contextmanager
def _in_batches(encoder: MobileNetV2) -> Iterator[Encode]:
    """The encoder for any number of pictures. On a CPU each thread has batches of its own: threads
    that share one wait for each other at every layer, and most where pictures are decoded beside.
    """
    size, threads = encoder.batch, torch.get_num_threads()
    many = threads if encoder.on_cpu else 1

    def parts(right: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
        return (right[at : at + size] for at in range(0, len(right), size))

    with ThreadPoolExecutor(many, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        try:
            yield lambda right: np.concatenate([*pool.map(encoder.features, parts(right))])
        finally:
            torch.set_num_threads(threads)


def _ahead(
    found: Iterator[Pixels | PictureDecodingFailure],
) -> Iterator[list[Pixels | PictureDecodingFailure]]:
    with ThreadPoolExecutor(1) as other:
        coming = other.submit(lambda: list(islice(found, _AHEAD)))
        while some := coming.result():
            coming = other.submit(lambda: list(islice(found, _AHEAD)))
            yield some
