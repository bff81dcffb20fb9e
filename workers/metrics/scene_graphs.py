"""Scene graphs of SPICE, whose synonyms are METEOR's WordNet. It is read in Python,
so that scoring starts no Java.
"""

import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

_CONTROLS = "".join(map(chr, range(33)))  # characters that Java trims

# WordNet's rules of detachment, in its order: nouns, verbs, adjectives. The first rule whose
# result is a known word counts.
_RULES = (
    *(("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh")),
    *(("men", "man"), ("ies", "y")),
    *(("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", "")),
    *(("ing", "e"), ("ing", "")),
    *(("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
)


class Synonyms:
    def __init__(self, jar: Path) -> None:
        self._jar = jar
        self.of = cache(self._of)
        self.concept = cache(self._concept)

    def _of(self, phrase: str) -> frozenset[int]:
        """The sets of a word or phrase and of its base forms."""
        word = phrase.strip(_CONTROLS).lower().replace(" ", "_")
        bases = self._irregular.get(word)
        if bases is None:
            bases = (self._base(word),)
        return frozenset().union(*map(self._sets_of, (word, *bases)))

    def _concept(self, phrase: str) -> frozenset[str | int]:
        """A phrase and its sets. Two concepts that share anything are similar."""
        return frozenset({phrase, *self.of(phrase)})

    def _sets_of(self, word: str) -> frozenset[int]:
        return frozenset(map(int, self._sets.get(word, "").split()))

    def _base(self, word: str) -> str:
        if word.endswith("ss") or len(word) <= 2:
            return word
        for suffix, ending in _RULES:
            if word.endswith(suffix):
                found = word.removesuffix(suffix) + ending
                if found in self._sets:
                    return found
        return ""

    @cached_property
    def _sets(self) -> Mapping[str, str]:
        lines = self._lines("synonym/english.synsets")
        return dict(zip(lines[::2], lines[1::2], strict=True))

    @cached_property
    def _irregular(self) -> Mapping[str, tuple[str, ...]]:
        lines = self._lines("synonym/english.exceptions")
        found: dict[str, tuple[str, ...]] = {}
        for base, forms in zip(lines[::2], lines[1::2], strict=True):
            for form in forms.split():
                found[form] = (*found.get(form, ()), base)
        return found

    def _lines(self, member: str) -> list[str]:
        with zipfile.ZipFile(self._jar) as jar:
            return jar.read(member).decode("utf-8").removesuffix("\n").split("\n")


Tuple = Sequence[str]  # an object; an object and its attribute; two objects and their relation
Tuples = Sequence[Tuple]
Parse = Callable[[Sequence[str]], Mapping[str, Tuples]]  # captions as tokens -> tuples of each
Concept = frozenset[str | int]  # words and the numbers of their synonym sets


@dataclass(eq=False)
class _GraphNode:
    sets: frozenset[int]
    concept: Concept
    attributes: list[Concept] = field(default_factory=list)


class SceneGraph:
    """A graph of the tuples of one caption, or of all references of an image."""

    def __init__(self, tuples: Iterable[Tuple], synonyms: Synonyms) -> None:
        self._synonyms = synonyms
        self.nodes: list[_GraphNode] = []
        self._by_word: dict[str, _GraphNode] = {}
        self.relations: dict[tuple[_GraphNode, _GraphNode], list[Concept]] = {}
        for words in tuples:
            self._add(*words)

    def __len__(self) -> int:
        attributes = sum(len(node.attributes) for node in self.nodes)
        return len(self.nodes) + attributes + sum(map(len, self.relations.values()))

    def known_to(self, other: "SceneGraph") -> int:
        """Count the tuples that are similar to one of the other graph, by a word or synonym set."""
        alike = {
            node: [its for its in other.nodes if not node.concept.isdisjoint(its.concept)]
            for node in self.nodes
        }
        known = sum(bool(others) for others in alike.values())
        for node, others in alike.items():
            attributes = [attribute for its in others for attribute in its.attributes]
            known += sum(_is_among(attribute, attributes) for attribute in node.attributes)
        for (source, target), relations in self.relations.items():
            theirs = [
                relation
                for its in alike[source]
                for aim in alike[target]
                for relation in other.relations.get((its, aim), ())
            ]
            known += sum(_is_among(relation, theirs) for relation in relations)
        return known

    def _add(self, word: str, second: str | None = None, relation: str | None = None) -> None:
        node = self._node(word)
        if second is None:
            return
        if relation is None:
            _join(node.attributes, self._synonyms.concept(second))
        else:
            relations = self.relations.setdefault((node, self._node(second)), [])
            _join(relations, self._synonyms.concept(relation.removeprefix("be ")))

    def _node(self, word: str) -> _GraphNode:
        """The node that has the word, or else the one with most of its synonyms, or a new one."""
        if word in self._by_word:
            return self._by_word[word]
        sets = self._synonyms.of(word)
        closest, closeness = None, 0.0
        for node in self.nodes:
            if sets.isdisjoint(node.sets):
                continue
            share = len(sets & node.sets) / len(sets | node.sets)
            if share > closeness:
                closest, closeness = node, share
        concept = self._synonyms.concept(word)
        if closest is None:
            closest = _GraphNode(sets, concept)
            self.nodes.append(closest)
        else:
            closest.sets |= sets
            closest.concept |= concept
        self._by_word[word] = closest
        return closest


def _join(concepts: list[Concept], new: Concept) -> None:
    """Join a concept to the first similar one or append it, unless an equal one is there."""
    if new in concepts:
        return
    for place, concept in enumerate(concepts):
        if not concept.isdisjoint(new):
            concepts[place] = concept | new
            return
    concepts.append(new)


def _is_among(concept: Concept, others: Iterable[Concept]) -> bool:
    return any(not concept.isdisjoint(its) for its in others)
