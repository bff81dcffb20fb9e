"""Recordings: columns and captions of a model that stays on this machine, in the forms that a
service takes. They are computed by the service's own jobs in parts of images; a part that is done
is not computed again.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prescore.files import bodies, models
from prescore.plain_text import quoted
from service.contract.column_options import ColumnOptions
from service.contract.errors import RequestRefused
from service.contract.formats import columns_header, model_formats, outputs
from service.contract.formats.bundles import files as bundle_files
from service.contract.plan.tasks import BLOCK_IMAGES, Blob, Task
from workers import files, tensor_files
from workers.jobs import checkpoints, inference
from workers.jobs.request import Job, JobRequest, read_pairs, write_json
from workers.jobs.toolbox import Toolbox
from workers.offline.sources import DatasetSource
from workers.progress import Progress, ignore_progress

if TYPE_CHECKING:
    from workers.inference.captioners import Captioner
    from workers.inference.vocabulary import CaptionerTokens, EncodedCaptions

_JOBS: Mapping[str, Job] = {
    "columns": inference.compute_columns,
    "captions": inference.decode_captions,
}


def find_model(text: str) -> Path:
    """Find a model: a path, or a name that the cache of Hugging Face on this machine has."""
    if Path(text).exists():
        return Path(text)
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(text, local_files_only=True))
    except (OSError, ValueError):  # it is not there, or no such name can be
        raise RequestRefused(
            f"found no model at {text!r:.200}, and none of this name in the cache of Hugging Face: "
            "download it first, by `hf download NAME`"
        ) from None


def check_search(decoding: Mapping[str, Any]) -> None:
    """Raise RequestRefused for a search that a service would refuse."""
    from workers.inference.decoding import DecodingOptions

    try:
        DecodingOptions(**decoding)
    except ValueError as error:
        raise RequestRefused(f"wrong options of the search: {error}") from None


@dataclass(frozen=True)
class ModelRecording:
    """Columns and captions of a model on a split. `parts`: the folder of what is done, named by the
    keys of tasks: another model, dataset or option finds nothing there.
    """

    name: str
    model: Path
    source: DatasetSource
    options: ColumnOptions
    parts: Path
    toolbox: Toolbox

    @cached_property
    def digests(self) -> Mapping[str, str]:
        """Digests of model and dataset, as a service has them."""
        return {
            "checkpoint": bodies.compute_digest(models.build_body(self.model)),
            "dataset": bundle_files.compute_content_digests(self.source.path).whole,
        }

    @cached_property
    def checkpoint(self) -> Path:
        """The model in a form that is evaluated; a state dict is converted first."""
        if model_formats.detect_format(self.model) != "pytorch":
            return self.model
        path = self.parts / self.digests["checkpoint"].replace(":", "-")
        if not path.exists():
            given = JobRequest({"package": self.model}, {}, (), {})
            result = checkpoints.prepare_checkpoint(given, self.toolbox, ignore_progress)
            self.parts.mkdir(exist_ok=True)
            files.write_atomically(path, result.write)
        return path

    def list_parts(self) -> list[Path]:
        """The parts that are done."""
        return [path for path in self.parts.glob("*") if path.suffix in (".columns", ".captions")]

    def record_columns(self, path: Path, progress: Progress = ignore_progress) -> str | None:
        """Write columns of all references as a service takes them: where tokens are pieces, with
        the words that these make. Returns a warning, if most references have unknown words.
        """
        from workers.inference import columns as columns_file

        of_tokens = self.options.model_copy(update={"units": "pieces"})
        paths = self._compute_parts("columns", of_tokens.for_columns(), progress)
        found = columns_file.concatenate_columns([columns_file.read_columns(at)[0] for at in paths])
        captioner = self._open()
        encoded = captioner.tokens.encode([item.references for item in self.source.items])
        metadata, tensors = self._describe(captioner.tokens, encoded)
        tensors |= {name: each for name, each in vars(found).items() if each is not None}
        if "ids" not in tensors:  # top_ids have no vocabulary either
            del tensors["top_ids"], tensors["top_logp"]
        tensor_files.write_tensors(path, tensors, metadata)
        return _warn_of_unknown(captioner.tokens, encoded)

    def record_captions(
        self, path: Path, decoding: Mapping[str, Any], progress: Progress = ignore_progress
    ) -> None:
        """Write a caption for each image, by its search with what `decoding` changes."""
        parameters = {"decoding": dict(decoding), **self.options.for_captions()}
        paths = self._compute_parts("captions", parameters, progress)
        pairs = [pair for at in paths for pair in zip(*read_pairs(at), strict=True)]
        found = [
            {"image": self.source.items[at].image, "caption": caption} for at, caption in pairs
        ]
        files.write_atomically(path, lambda partial: write_json(partial, found))

    def _compute_parts(
        self, kind: str, options: Mapping[str, Any], progress: Progress
    ) -> list[Path]:
        """Compute the parts that are not there, of whole blocks: the results are those of a
        service to the last bit.
        """
        images = len(self.source.items)
        inputs = {name: Blob(digest) for name, digest in self.digests.items()}
        paths = []
        for start in range(0, images, BLOCK_IMAGES):
            stop = min(start + BLOCK_IMAGES, images)
            parameters = {"split": self.source.split, "images": (start, stop), **options}
            path = self.parts / f"{Task(kind, inputs, parameters).key}.{kind}"
            if not path.exists():
                shown = _shift_progress(progress, start, images)
                result = _JOBS[kind](self._request(parameters), self.toolbox, shown)
                self.parts.mkdir(exist_ok=True)
                files.write_atomically(path, result.write)
            progress(stop, images)
            paths.append(path)
        return paths

    def _request(self, parameters: Mapping[str, Any]) -> JobRequest:
        inputs = {"checkpoint": self.checkpoint, "dataset": self.source.path}
        return JobRequest(inputs, self.digests, (), parameters)

    def _open(self) -> "Captioner":
        return checkpoints.open_captioner(self._request(self.options.for_columns()), self.toolbox)

    def _describe(
        self, tokens: "CaptionerTokens", encoded: "EncodedCaptions"
    ) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
        """Metadata of columns, and the tensors that say of which tokens and words they are."""
        from prescore.recording.recorder import show_token
        from workers.inference.columns import choose_index_type
        from workers.inference.vocabulary import WordTokens

        items = self.source.items
        metadata = {
            "prescore_columns": columns_header.FORMAT,
            "images": json.dumps([item.image for item in items], ensure_ascii=False),
            "model": quoted(f"{self.name[-500:]} ({self.options.describe()})"),
        }
        if isinstance(tokens, WordTokens):
            words = [show_token(word) for word in tokens.vocabulary]
            metadata |= {
                "tokenizer": tokens.tokenizer,
                "vocabulary": json.dumps(words, ensure_ascii=False),
            }
            return metadata, {"ids": encoded.tokens.astype(choose_index_type(tokens.size))}
        assert encoded.word_offsets is not None
        words_and_ends = sum(len(text.split()) + 1 for item in items for text in item.references)
        is_whole = (
            len(encoded.word_offsets) - 1 == words_and_ends
        )  # words without pieces are left out
        metadata |= {
            "tokenizer": "blanks" if is_whole else "own",
            "pieces": f"ids:{hashlib.sha256(encoded.tokens.tobytes()).hexdigest()[:16]}",
        }
        return metadata, {"word_offsets": encoded.word_offsets}


def _shift_progress(progress: Progress, start: int, images: int) -> Progress:
    """The progress of a part, as one of all images."""
    return lambda done, _: progress(start + done, images)


def _warn_of_unknown(tokens: "CaptionerTokens", encoded: "EncodedCaptions") -> str | None:
    """The warning of a service where most references have words that the model does not know."""
    unknown = _list_unknown(tokens, np.unique(encoded.tokens))
    odd = np.add.reduceat(np.isin(encoded.tokens, unknown), encoded.caption_offsets[:-1])
    warning = outputs.warn_of_unknown_words(int((odd > 0).sum()), len(odd))
    return None if warning is None else str(warning["detail"])


def _list_unknown(tokens: "CaptionerTokens", ids: NDArray[np.int64]) -> Sequence[int]:
    """List the ids that stand for unknown words."""
    from workers.inference.pieces import PieceTokens
    from workers.inference.vocabulary import WordTokens

    if isinstance(tokens, WordTokens):
        return [tokens.unknown]
    assert isinstance(tokens, PieceTokens)
    each = ids.tolist()
    texts = tokens.tokenizer.decode_batch([[at] for at in each], skip_special_tokens=False)
    told = zip(each, texts, strict=True)
    return [at for at, text in told if text.strip().casefold() in outputs.UNKNOWN]
