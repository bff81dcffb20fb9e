"""The tasks of the metrics of captions, with all that they need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from service.contract.metrics import families
from service.contract.metrics.families import FAMILIES, Need, find_family_name
from service.contract.plan.tasks import Blob, Task, shard_task

# Parsing takes 30 to 50 ms a caption on two cores, so a shard takes at most 20 s. An image has one
# caption, which may have been parsed before, and usually five different references.
PARSED_IMAGES, PARSED_REFERENCES_IMAGES = 500, 75
EMBEDDED_IMAGES = 200  # a thousand references: a few seconds with a small model


@dataclass(frozen=True)
class PostgenRequest:
    """The post-gen metrics of a request. `own`: parameters by family; `idf`: matters where only a
    part of the split has captions; `training`: the split that captioners were trained on;
    `models`: digests of the models of learned metrics, by family.
    """

    families: Sequence[str]
    tokenizer: str
    idf: str = "dataset"
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    training: str | None = None
    models: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PostgenPlanner:
    captions: Blob | Task
    dataset: Blob
    split: str
    images: int
    wanted: PostgenRequest

    def named(self) -> dict[str, Task]:
        """The tasks by name: references first, families that need a parser last."""
        wanted = self.wanted.families
        named: dict[str, Task] = {}
        if any("references" in families.list_needs(family) for family in wanted):
            named |= self._prepared("references", "")
        for family in sorted(wanted, key=lambda family: "tuples" in families.list_needs(family)):
            self._add(family, named)
        return named

    def _add(self, family: str, named: dict[str, Task]) -> None:
        """Add a family's task to `named`, after all that it needs."""
        if family in named:
            return
        row = FAMILIES[find_family_name(family)]
        for part in row.made_of:
            self._add(part, named)
        inputs: dict[str, Blob | Task] = {} if row.made_of else {"captions": self.captions}
        for need in row.needs:
            for name, task in self._prepared(need, family).items():
                inputs[name] = _named(name, task, family, named)
        inputs |= {part: named[part] for part in row.made_of}
        if family in self.wanted.models:
            inputs["model"] = Blob(self.wanted.models[family])
        named[family] = Task(find_family_name(family), inputs, self._parameters(family))

    def _parameters(self, family: str) -> dict[str, Any]:
        row = FAMILIES[find_family_name(family)]
        own = dict(self.wanted.own.get(family, {}))
        if row.is_weighted and self.wanted.idf != "dataset":
            own["idf"] = self.wanted.idf
        if row.reads == "tokens" and "references" not in row.needs:  # references have the tokeniser
            own["tokenizer"] = self.wanted.tokenizer
        return own

    def _prepared(self, need: Need, family: str) -> dict[str, Task]:
        """The tasks that compute a need of a family; empty where the machine has it as an asset."""
        match need:
            case "references":
                asked = self._tokens(self.split)
                return {"references": Task("references", {"dataset": self.dataset}, asked)}
            case "tuples":
                return self._parsed()
            case "embedded":
                return {"embedded_references": self._embedded("embedded_references", family)}
            case "sentences":
                return {"reference_sentences": self._embedded("reference_sentences", family)}
            case "training" if self.wanted.training is not None:
                asked = self._tokens(self.wanted.training)
                return {"training": Task("training", {"dataset": self.dataset}, asked)}
        return {}

    def _tokens(self, split: str) -> dict[str, Any]:
        return {"split": split, "tokenizer": self.wanted.tokenizer}

    def _parsed(self) -> dict[str, Task]:
        people, tokenizer = self._prepared("references", ""), {"tokenizer": self.wanted.tokenizer}
        of_people = self.images, 1, PARSED_REFERENCES_IMAGES
        of_captions = self.images, 1, PARSED_IMAGES
        return {
            "reference_tuples": shard_task("tuples", people, {}, *of_people),
            "tuples": shard_task("tuples", {"captions": self.captions}, tokenizer, *of_captions),
        }

    def _embedded(self, kind: str, family: str) -> Task:
        own = self.wanted.own.get(family, {})
        asked = {"split": self.split, **{name: own.get(name) for name in ("encoder", "layer")}}
        sizes = self.images, 1, EMBEDDED_IMAGES
        return shard_task(kind, {"dataset": self.dataset}, asked, *sizes)


def _named(name: str, task: Task, family: str, named: dict[str, Task]) -> Task:
    """The task of that name, if it is the same; else this one, under a name with its family's: the
    references of two encoders are two tasks.
    """
    found = named.setdefault(name, task)
    return found if found.key == task.key else named.setdefault(f"{name}:{family}", task)
