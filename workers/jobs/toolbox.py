"""Models, references and processes that are kept for the next tasks."""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from service.contract import assets
from service.contract.errors import MetricUnavailable
from service.contract.formats.digests import MeasuredFile
from service.contract.metrics import families
from service.contract.metrics.families import Need
from service.contract.settings import Sandbox, Settings
from workers.progress import Progress, ignore_progress

if TYPE_CHECKING:
    from workers.conversion.foreign_files import ConversionLimits
    from workers.inference.captioners import Captioner
    from workers.inference.mobilenet_v2 import MobileNetV2
    from workers.metrics.java.jvm import Jvm
    from workers.metrics.learned.soundness import LearnedScorer
    from workers.metrics.object_lists import ObjectList
    from workers.metrics.references import PreparedReferences
    from workers.metrics.spice_tuples import TupleParser
    from workers.metrics.tokens import Tokenizer
    from workers.metrics.vectors.text_encoder import TextEncoder
    from workers.metrics.vectors.word_vectors import WordVectors

Kept = TypeVar("Kept")


@dataclass
class Toolbox:
    """Models, files and processes of tasks: of each kind the last one is kept."""

    device: str
    places: assets.AssetFolders
    memory: int | None = None  # bytes that a task may take
    sandbox: Sandbox = "required"
    remember: bool = True  # store the parsed tuples of captions in PRESCORE_HOME
    open_jvm: "Callable[[str], Jvm] | None" = None  # of a kind, where another process runs it
    _jvm: "Jvm | None" = None
    _parser: "TupleParser | None" = None
    _kept: dict[str, tuple[object, Any]] = field(default_factory=dict)  # by kind: key, value

    @classmethod
    def of(cls, chosen: Settings) -> "Toolbox":
        return cls(
            chosen.device, assets.AssetFolders.of(chosen), chosen.task_memory, chosen.sandbox
        )

    @classmethod
    def of_warm_child(cls, open_jvm: "Callable[[str], Jvm]") -> "Toolbox":
        """The toolbox of a worker's child, from the variables that the worker gives to it."""
        places = assets.AssetFolders.from_environment(os.environ)
        memory = int(os.environ["PRESCORE_TASK_MEMORY"])
        sandbox: Sandbox = "off" if os.environ.get("PRESCORE_SANDBOX") == "off" else "required"
        return cls(os.environ["PRESCORE_DEVICE"], places, memory, sandbox, open_jvm=open_jvm)

    @property
    def box(self) -> "ConversionLimits":
        """Limits under which files are opened that may run code."""
        from workers.conversion.foreign_files import ConversionLimits

        return (
            ConversionLimits(sandbox=self.sandbox)
            if self.memory is None
            else ConversionLimits(self.memory, self.sandbox)
        )

    def model(self, digest: str, path: Path) -> "Captioner":
        from workers.inference import checkpoints, devices

        found = devices.resolve_devices(self.device)
        return self._keep_last(
            "model",
            digest,
            lambda: checkpoints.open_captioner(path, found, self.memory, self.sandbox),
        )

    def adapted_model(self, digest: str, path: Path, base: str) -> "Captioner":
        """The captioner of a base model with this adapter; the base stays for the next adapter."""
        from workers.inference import devices
        from workers.inference.huggingface import adapters, loader

        place = assets.find_base_by_digest(base.removeprefix("sha256:"), self.places).path
        found = devices.resolve_devices(self.device)
        adapted = self._keep_last(
            "model",
            ("base", base),
            lambda: adapters.AdaptedBase(
                loader.read_captioner(place, found, self.memory, self.sandbox)
            ),
        )
        return adapted.adapt(digest, path)

    def forget_model(self) -> None:
        self._kept.pop("model", None)

    def _keep_last(self, kind: str, key: object, read: Callable[[], Kept]) -> Kept:
        """The last value of a kind if it has this key, else a new one."""
        if kind not in self._kept or self._kept[kind][0] != key:
            self._kept.pop(kind, None)  # free the old one first: two models may not fit
            self._kept[kind] = key, read()
        value: Kept = self._kept[kind][1]
        return value

    def jvm(self, deadline: float | None = None) -> "Jvm":
        """A warm JVM; `deadline` (seconds for a call) is used only if one is started now."""
        from workers.metrics.java.jvm import Jvm

        if self._jvm is None and self.open_jvm is not None:
            self._jvm = self.open_jvm("coco")
        elif self._jvm is None:
            self._jvm = Jvm() if deadline is None else Jvm(deadline=deadline)
        return self._jvm

    def references(self, digest: str, path: Path) -> "PreparedReferences":
        """Prepared references; the tasks of an evaluation read the same ones in turn."""
        from workers.metrics import references

        return self._keep_last("references", digest, lambda: references.read_references(path))

    def tokens(
        self, digest: str, path: Path, tokenizer: "Tokenizer"
    ) -> tuple[list[int], list[str]]:
        """Read captions and tokenise them: places in the split, and captions."""
        from workers.metrics.tokens import tokenize

        def read() -> tuple[list[int], list[str]]:
            pairs = json.loads(path.read_text("utf-8"))
            captions = tokenize([caption for _, caption in pairs], tokenizer, self.jvm())
            return [place for place, _ in pairs], captions

        return self._keep_last("tokens", (digest, tokenizer), read)

    def parser(self) -> "TupleParser":
        """SPICE's parser. Raises MetricUnavailable if its files are not on this machine."""
        from workers.metrics import spice_tuples

        if self._parser is None and self.open_jvm is not None:
            spice_tuples.find_jars(self.places)
            self._parser = spice_tuples.TupleParser(self.open_jvm(spice_tuples.JAVA))
        elif self._parser is None:
            self._parser = spice_tuples.open_parser(self.places, remember=self.remember)
        return self._parser

    def vectors(self, sha256: str | None) -> "WordVectors":
        """The word vectors with this SHA-256. Raises MetricUnavailable if others are registered."""
        from workers.metrics.vectors import word_vectors

        found = assets.locate_asset("word-vectors", self.places)
        _check_same(found, sha256, "word vectors")
        return self._keep_last(
            "vectors", found.sha256, lambda: word_vectors.read_word_vectors(found.path)
        )

    def bring(
        self,
        family: str,
        parameters: Mapping[str, Any],
        progress: Progress = ignore_progress,
    ) -> dict[str, Any]:
        """The `tools` of a family's Task: what it needs besides captions and references.

        `parameters` are the task's. Raises MetricUnavailable if an asset is missing or is another
        one.
        """
        found: dict[str, Any] = {}
        for need in families.list_needs(family):
            found |= self.need(family, need, parameters, progress)
        return found

    def need(
        self,
        family: str,
        need: Need,
        parameters: Mapping[str, Any],
        progress: Progress = ignore_progress,
    ) -> dict[str, Any]:
        """The `tools` of one need of a family; empty if it has none on this machine."""
        match need:
            case "tuples":
                return {"parse": partial(self.parser().parse, progress=progress)}
            case "vectors" if "vectors" in parameters:
                return {"vectors": self.vectors(parameters["vectors"])}
            case "encoder" if "encoder" in parameters:
                return {"encoder": self.encoder(parameters["encoder"], parameters["layer"])}
            case "objects" if "objects" in parameters:
                return {"objects": self.objects(parameters["objects"])}
            case "model" if "model" in parameters:
                model = self.learned(family, parameters["model"])
                return {"model": model, **self._of_features(model, parameters, progress)}
        return {}

    def features(
        self,
        names: Iterable[str],
        vectors: str | None,
        progress: Progress = ignore_progress,
    ) -> dict[str, Any]:
        """The `tools` of the families of a learned metric's features."""
        found: dict[str, Any] = {}
        for family in families.list_feature_families(names):
            found |= self.bring(family, {"vectors": vectors}, progress)
        return found

    def learned(self, family: str, sha256: str | None) -> "LearnedScorer":
        """The user's own model of a learned metric with this SHA-256; if None, the shipped one."""
        from workers.metrics.learned.kinds import KINDS

        if sha256 is None:
            return KINDS[family].shipped()
        found = assets.locate_asset(assets.find_model_asset(family).name, self.places)
        _check_same(found, sha256, f"model of {family}")
        return self._sound(family, sha256, found.path)

    def named(
        self,
        family: str,
        digest: str,
        path: Path,
        parameters: Mapping[str, Any],
        progress: Progress = ignore_progress,
    ) -> dict[str, Any]:
        """The `tools` of a learned metric whose model a task has as an input."""
        model = self._sound(family, digest, path)
        needs = self._of_features(model, parameters, progress)
        return {"model": model, "name": model.name, **needs}

    def _of_features(
        self, model: "LearnedScorer", parameters: Mapping[str, Any], progress: Progress
    ) -> dict[str, Any]:
        return self.features(model.features, parameters.get("vectors"), progress)

    def _sound(self, family: str, digest: str, path: Path) -> "LearnedScorer":
        """A model from its file; of each family the last one is kept. Raises MetricFailed if it
        says nothing of captions.
        """
        from workers.metrics import postgen
        from workers.metrics.learned import kinds

        return self._keep_last(
            f"model of {family}",
            digest,
            lambda: kinds.read_sound_model(family, path, postgen.score_family),
        )

    def encoder(self, sha256: str | None, layer: int | None) -> "TextEncoder":
        """The language model with this SHA-256. Raises MetricUnavailable if it is not here."""
        from workers.inference import devices
        from workers.metrics.vectors import text_encoder

        found = assets.find_encoder_by_digest(sha256, self.places)
        _check_same(found, sha256, "model")
        device = devices.resolve_device(self.device)
        return self._keep_last(
            "encoder",
            (found.sha256, layer),
            lambda: text_encoder.read_encoder(found.path, layer, device),
        )

    def image_encoder(self, sha256: str) -> "MobileNetV2":
        """The encoder of pictures with this SHA-256. Raises MetricUnavailable if it is not here."""
        from workers.inference import devices, mobilenet_v2

        found = assets.find_image_encoder(sha256, self.places)
        device = devices.resolve_device(self.device)
        return self._keep_last(
            "image encoder", sha256, lambda: mobilenet_v2.read_image_encoder(found.path, device)
        )

    def objects(self, sha256: str | None) -> "ObjectList":
        """The list of objects. Raises MetricUnavailable if another one is registered."""
        from workers.metrics import object_lists

        found = assets.locate_asset("objects", self.places)
        _check_same(found, sha256, "list of objects")
        return self._keep_last(
            "objects", found.sha256, lambda: object_lists.read_object_list(found.path)
        )

    def close(self) -> None:
        """End the warm processes; those that run a captioner's graphs end with it."""
        for each in (self._jvm, self._parser):
            if each is not None:
                each.close()
        self._jvm = self._parser = None
        self.forget_model()


def _check_same(found: MeasuredFile, sha256: str | None, what: str) -> None:
    if found.sha256 != sha256:
        planned = "none" if sha256 is None else f"{sha256:.12}…"
        raise MetricUnavailable(
            f"the {what} of this worker has SHA-256 {found.sha256:.12}…, the service was given "
            f"{planned}: add the same one to both with `prescore assets`"
        )
