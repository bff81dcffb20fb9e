"""SPICE's scene graphs: tuples joined by synonyms, and how many of one graph are in another.

Where several places are equally good, a word takes the first, in the order of the tuples; SPICE's
own Java takes the order of identity hashes, which is any. On 3,000 images all counts are the same.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from workers.metrics.scenes.synonyms import Synonyms

Tuple = Sequence[str]  # an object; an object and its attribute; two objects and their relation
Tuples = Sequence[Tuple]
Parse = Callable[[Sequence[str]], Mapping[str, Tuples]]  # captions as tokens -> tuples of each
Concept = frozenset[str | int]  # words and the numbers of their synonym sets


@dataclass(eq=False)
class _Node:
    sets: frozenset[int]
    concept: Concept
    attributes: list[Concept] = field(default_factory=list)


class SceneGraph:
    """A graph of the tuples of one caption, or of all references of an image."""

    def __init__(self, tuples: Iterable[Tuple], synonyms: Synonyms) -> None:
        self._synonyms = synonyms
        self.nodes: list[_Node] = []
        self._by_word: dict[str, _Node] = {}
        self.relations: dict[tuple[_Node, _Node], list[Concept]] = {}
        for words in tuples:
            self._add(*words)

    def __len__(self) -> int:
        attributes = sum(len(node.attributes) for node in self.nodes)
        return len(self.nodes) + attributes + sum(map(len, self.relations.values()))

    def known_to(self, other: "SceneGraph") -> int:
        """How many of these tuples are similar to a tuple of the other graph: each concept shares a
        word or a synonym set with that tuple's.
        """
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

    def _node(self, word: str) -> _Node:
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
            closest = _Node(sets, concept)
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
