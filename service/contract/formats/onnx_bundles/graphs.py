"""ONNX graphs that are accepted: plain ones of ONNX's own operators, with all values inside.

Only the structure is read, and no value. Refused: values in other files wherever a tensor can
stand, operators of other domains, functions, training, sparse tensors, names that are used before
they are made (so there is no circle), graphs that are too large or too deep, tensors that claim
more than their bytes.
"""

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import IO, Never

from service.contract.errors import GraphInvalid
from service.contract.formats.onnx_bundles import protobuf
from service.contract.formats.onnx_bundles.protobuf import (
    MalformedProtobuf,
    ProtobufField,
    ProtobufReader,
)

MOST_BYTES = 2_000_000_000  # protobuf counts a message's bytes in 31 bits
MOST_NODES = 20_000
DEEPEST = 4  # graphs inside of nodes of graphs
MOST_DIMENSIONS = 16
DOMAINS = ("", "ai.onnx")

Scopes = tuple[AbstractSet[str], ...]  # the names of a graph and of those around it


@dataclass(frozen=True)
class OnnxTensor:
    """An input or output: its type, by ONNX's numbers, and its sizes; None: any. `shape` is None
    where not even their number is said.
    """

    type: int
    shape: tuple[int | None, ...] | None

    def __str__(self) -> str:
        kind = protobuf.TYPES.get(self.type, f"type {self.type}")
        if self.shape is None:
            return kind
        return f"{kind} [{', '.join('?' if each is None else str(each) for each in self.shape)}]"


@dataclass(frozen=True)
class OnnxGraph:
    inputs: Mapping[str, OnnxTensor]
    outputs: Mapping[str, OnnxTensor]
    nodes: int
    parameters: int


def validate_onnx_graph(stream: IO[bytes], size: int, file: str) -> OnnxGraph:
    """`stream` can go back. Raises GraphInvalid, which names `file` and the place in it."""
    if size > MOST_BYTES:
        raise GraphInvalid(f"{file}: {size:,} bytes, at most {MOST_BYTES:,} are accepted")
    return _GraphValidator(ProtobufReader(stream), file).model(size)


class _GraphValidator:
    def __init__(self, reader: ProtobufReader, file: str) -> None:
        self._reader = reader
        self._where = [file]
        self._nodes = 0
        self._parameters = 0

    def model(self, size: int) -> OnnxGraph:
        try:
            graph, opsets = None, 0
            for field in self._reader.fields(protobuf.MODEL, 0, size):
                match field.rule.name:
                    case "graph":
                        graph = field
                    case "opset_import":
                        opsets += 1
                        self._opset(field)
            if graph is None or not opsets:
                raise MalformedProtobuf("expected an ONNX model with a graph and its version")  # noqa: TRY301
            inputs, outputs = self._graph(graph, (), 0)
            return OnnxGraph(inputs, outputs, self._nodes, self._parameters)
        except MalformedProtobuf as error:
            self._refuse(str(error))

    def _refuse(self, why: str) -> Never:
        raise GraphInvalid(f"{', '.join(self._where)}: {why}"[:500], pointer=f"/{self._where[0]}")

    def _opset(self, field: ProtobufField) -> None:
        for part in self._reader.fields(protobuf.OPSET, field.start, field.end):
            if part.rule.name == "domain":
                self._domain(self._reader.text(part))

    def _domain(self, domain: str) -> None:
        if domain not in DOMAINS:
            self._refuse(
                f"operators of {domain!r:.100} are not accepted; those of ONNX itself are "
                "(domain ai.onnx)"
            )

    def _graph(
        self, graph: ProtobufField, outer: Scopes, depth: int
    ) -> tuple[dict[str, OnnxTensor], dict[str, OnnxTensor]]:
        """Its inputs and outputs. `outer`: the names of graphs around it, which it may read."""
        if depth > DEEPEST:
            self._refuse(f"graphs lie in graphs deeper than {DEEPEST}")
        parts = list(self._reader.fields(protobuf.GRAPH, graph.start, graph.end))
        inputs = self._values(parts, "input", depth)
        names = set(inputs)
        for part in parts:
            if part.rule.name == "initializer":
                self._new(names, self._tensor(part, "initializer", count=True))
        for part in parts:
            if part.rule.name == "node":
                self._node(part, names, outer, depth)
        outputs = self._values(parts, "output", depth)
        for name in outputs:
            if not any(name in scope for scope in (names, *outer)):
                self._refuse(f"the output {name!r:.100} is made by no node")
        return inputs, outputs

    def _values(self, parts: list[ProtobufField], kind: str, depth: int) -> dict[str, OnnxTensor]:
        found: dict[str, OnnxTensor] = {}
        for part in parts:
            if part.rule.name == kind:
                name, tensor = self._value(part, kind, is_typed=depth == 0)
                if name in found and kind == "input":
                    self._refuse(f"the name {name!r:.100} is given twice")
                found[name] = tensor
        return found

    def _new(self, names: set[str], name: str) -> None:
        if name in names:
            self._refuse(f"the name {name!r:.100} is given twice")
        names.add(name)

    def _node(self, node: ProtobufField, names: set[str], outer: Scopes, depth: int) -> None:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            self._refuse(f"more than {MOST_NODES:,} nodes")
        parts = list(self._reader.fields(protobuf.NODE, node.start, node.end))
        said = {each: self._one(parts, each) for each in ("name", "op_type", "domain")}
        self._where.append(f"node {said['name']!r:.60} ({said['op_type']:.60})")
        self._domain(said["domain"])
        for part in parts:
            if part.rule.name == "input":
                name = self._reader.text(part)
                if name and not any(name in scope for scope in (names, *outer)):
                    self._refuse(
                        f"reads {name!r:.100} before anything makes it: a circle, or nodes in the "
                        "wrong order"
                    )
        for part in parts:
            if part.rule.name == "attribute":
                self._attribute(part, (*outer, names), depth)
        for part in parts:
            if part.rule.name == "output" and (name := self._reader.text(part)):
                self._new(names, name)
        self._where.pop()

    def _one(self, parts: list[ProtobufField], name: str) -> str:
        return next((self._reader.text(each) for each in parts if each.rule.name == name), "")

    def _attribute(self, attribute: ProtobufField, outer: Scopes, depth: int) -> None:
        for part in self._reader.fields(protobuf.ATTRIBUTE, attribute.start, attribute.end):
            match part.rule.name:
                case "g" | "graphs":
                    self._graph(part, outer, depth + 1)
                case "t" | "tensors":
                    self._tensor(part, "a constant")

    def _tensor(self, tensor: ProtobufField, kind: str, *, count: bool = False) -> str:
        self._where.append(kind)
        parts = list(self._reader.fields(protobuf.TENSOR, tensor.start, tensor.end))
        name = self._one(parts, "name")
        self._where[-1] = f"{kind} {name!r:.60}" if name else kind
        numbers = {each.rule.name: each.number for each in parts}
        if numbers.get("data_location"):
            self._refuse(protobuf.ELSEWHERE)
        bits = protobuf.BITS.get(numbers.get("data_type", 0))
        if bits is None:
            self._refuse(f"its type {numbers.get('data_type', 0)} is not accepted")
        elements = self._elements(parts)
        self._check_size(parts, elements, bits)
        if count and elements > 1 and numbers["data_type"] in protobuf.REALS:
            self._parameters += elements
        self._where.pop()
        return name

    def _elements(self, parts: list[ProtobufField]) -> int:
        sizes: list[int] = []
        for part in parts:
            if part.rule.name == "dims":
                sizes += self._reader.numbers(part)
            if len(sizes) > MOST_DIMENSIONS:
                self._refuse(f"has more than {MOST_DIMENSIONS} dimensions")
        return math.prod(sizes)

    def _check_size(self, parts: list[ProtobufField], elements: int, bits: int) -> None:
        """Every element has bytes in the file: as they are, or as numbers of a byte at least."""
        held = 0
        for part in parts:
            size = part.end - part.start
            if part.rule.name == "raw_data":
                held += size * 8 // bits
                if size * 8 != elements * bits:
                    self._refuse(f"has {size:,} bytes for {elements:,} values of {bits // 8} bytes")
            elif part.rule.name.endswith("_data"):
                held += size
        if held < elements:
            self._refuse(f"claims {elements:,} values, and the file has {held:,}")

    def _value(self, value: ProtobufField, kind: str, *, is_typed: bool) -> tuple[str, OnnxTensor]:
        parts = list(self._reader.fields(protobuf.VALUE, value.start, value.end))
        name = self._one(parts, "name")
        self._where.append(f"{kind} {name!r:.60}")
        if not name:
            self._refuse("expected a name, found none")
        types = [each for each in parts if each.rule.name == "type"]
        if is_typed and not types:
            self._refuse("expected a type, found none")
        tensor = self._type(types[0]) if is_typed else OnnxTensor(0, None)
        self._where.pop()
        return name, tensor

    def _type(self, field: ProtobufField) -> OnnxTensor:
        of_tensor = None
        for part in self._reader.fields(protobuf.TYPE, field.start, field.end):
            of_tensor = part if part.rule.name == "tensor_type" else of_tensor
        if of_tensor is None:
            raise MalformedProtobuf(protobuf.NO_TENSOR)
        kind, shape = 0, None
        for part in self._reader.fields(protobuf.TENSOR_TYPE, of_tensor.start, of_tensor.end):
            if part.rule.name == "elem_type":
                kind = part.number
            else:
                shape = self._shape(part)
        return OnnxTensor(kind, shape)

    def _shape(self, field: ProtobufField) -> tuple[int | None, ...]:
        sizes: list[int | None] = []
        for dimension in self._reader.fields(protobuf.SHAPE, field.start, field.end):
            size = None
            for part in self._reader.fields(protobuf.DIMENSION, dimension.start, dimension.end):
                if part.rule.name == "dim_value":
                    size = part.number
            sizes.append(size)
            if len(sizes) > MOST_DIMENSIONS:
                self._refuse(f"has more than {MOST_DIMENSIONS} dimensions")
        return tuple(sizes)
