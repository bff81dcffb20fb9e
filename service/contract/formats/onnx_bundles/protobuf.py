"""Protobuf of ONNX files, from strangers: which fields are where, by ONNX's messages. Stricter than
other readers, so that what is accepted here is read by them in the same way.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_FIXED = {FIXED64: 8, FIXED32: 4}
_LONGEST_VARINT = 10  # bytes of a number of 64 bits
_WINDOW = 1 << 16  # bytes that are read at once
MOST_FIELDS = 1_000_000  # 2 µs each; a graph of 1,000 nodes has 20,000
MOST_TEXT = 1_000  # bytes of a name


class MalformedProtobuf(ValueError):
    """Malformed protobuf; the text names the fault and its byte."""


@dataclass(frozen=True)
class FieldRule:
    """A field that a message may have: its name and wire type. `refused`: why it may not be."""

    name: str
    kind: int = BYTES
    many: bool = False
    refused: str | None = None


Message = Mapping[int, FieldRule]


@dataclass(frozen=True)
class ProtobufField:
    """`start` … `end`: where its bytes are in the file. `number`: the value of a varint."""

    rule: FieldRule
    start: int
    end: int
    number: int = 0


@dataclass
class ProtobufReader:
    """`fields_left`: how many fields may still come, in all messages together."""

    stream: IO[bytes]
    fields_left: int = MOST_FIELDS
    _at: int = 0
    _window: bytes = b""

    def fields(self, message: Message, start: int, end: int) -> Iterator[ProtobufField]:
        """The fields of the message that these bytes are. Raises Malformed on one that it does not
        have, of another wire type, or twice where it has one.
        """
        seen = set()
        at = start
        while at < end:
            tag, after = self._varint(at, end)
            rule = message.get(tag >> 3)
            if rule is None:
                raise MalformedProtobuf(
                    f"field {tag >> 3} at byte {at} is of no ONNX model that we know"
                )
            if rule.refused:
                raise MalformedProtobuf(rule.refused)
            if rule.name in seen and not rule.many:
                raise MalformedProtobuf(f"{rule.name} is there twice (byte {at})")
            seen.add(rule.name)
            field = self._field(rule, tag & 7, after, end)
            yield field
            at = field.end
        if at != end:
            raise MalformedProtobuf(f"a field ends at byte {at}, and what holds it at {end}")

    def text(self, field: ProtobufField) -> str:
        if field.end - field.start > MOST_TEXT:
            raise MalformedProtobuf(f"{field.rule.name} at byte {field.start} is too long")
        try:
            return self._bytes(field.start, field.end).decode()
        except UnicodeDecodeError:
            raise MalformedProtobuf(
                f"{field.rule.name} at byte {field.start} is not UTF-8"
            ) from None

    def numbers(self, field: ProtobufField) -> Iterator[int]:
        """Yield the numbers of a repeated varint, packed or not."""
        at = field.start
        while at < field.end:
            number, at = self._varint(at, field.end)
            self._count()
            yield number

    def _field(self, rule: FieldRule, kind: int, at: int, end: int) -> ProtobufField:
        self._count()
        packed = kind == BYTES and rule.many and rule.kind != BYTES
        if kind != rule.kind and not packed:
            raise MalformedProtobuf(
                f"{rule.name} at byte {at} has wire type {kind}, not {rule.kind}"
            )
        if kind == VARINT:
            number, after = self._varint(at, end)
            return ProtobufField(rule, at, after, number)
        if kind == BYTES:
            size, at = self._varint(at, end)
        else:
            size = _FIXED[kind]
        if at + size > end:
            raise MalformedProtobuf(
                f"{rule.name} at byte {at} claims {size} bytes, {end - at} are left"
            )
        return ProtobufField(rule, at, at + size)

    def _count(self) -> None:
        self.fields_left -= 1
        if self.fields_left < 0:
            raise MalformedProtobuf(f"more than {MOST_FIELDS:,} fields")

    def _varint(self, at: int, end: int) -> tuple[int, int]:
        number = 0
        last = min(end, at + _LONGEST_VARINT)
        for place in range(at, last):
            byte = self._byte(place)
            number |= (byte & 0x7F) << (7 * (place - at))
            if byte < 0x80:
                if number >= 1 << 64:
                    break
                return number, place + 1
        raise MalformedProtobuf(f"the number at byte {at} is cut off or has more than 64 bits")

    def _byte(self, at: int) -> int:
        offset = at - self._at
        if not 0 <= offset < len(self._window):
            self._window, self._at, offset = self._bytes(at, at + _WINDOW), at, 0
            if not self._window:
                raise MalformedProtobuf(f"the file ends at byte {at}")
        return self._window[offset]

    def _bytes(self, start: int, end: int) -> bytes:
        self.stream.seek(start)
        return self.stream.read(end - start)


# By ONNX's numbers: the fewest bits of an element, as it is stored.
BITS: Mapping[int, int] = {
    **dict.fromkeys((1, 6, 12), 32),
    **dict.fromkeys((2, 3, 9), 8),
    **dict.fromkeys((4, 5, 10, 16), 16),
    **dict.fromkeys((7, 11, 13), 64),
}
FLOAT, INT64 = 1, 7
REALS = (1, 10, 11, 16)  # numbers with a fraction: what weights are, and sizes and places are not
TYPES: Mapping[int, str] = {FLOAT: "float32", INT64: "int64"}

ELSEWHERE = "has values in another file; save the model with all values inside"
SPARSE = "sparse tensors are not accepted; make them dense"
OURS_ALONE = "functions are not accepted; inline them"
TRAINING = "training is not accepted; save the model for inference"
DEVICES = "placement on devices is not accepted"


def _texts(*names: tuple[int, str]) -> dict[int, FieldRule]:
    return {number: FieldRule(name) for number, name in names}


def _lists(*names: tuple[int, str]) -> dict[int, FieldRule]:
    return {number: FieldRule(name, many=True) for number, name in names}


MODEL: Message = {
    1: FieldRule("ir_version", VARINT),
    **_texts((2, "producer_name"), (3, "producer_version"), (4, "domain"), (6, "doc_string")),
    5: FieldRule("model_version", VARINT),
    7: FieldRule("graph"),
    **_lists((8, "opset_import"), (14, "metadata_props")),
    20: FieldRule("training_info", refused=TRAINING),
    25: FieldRule("functions", refused=OURS_ALONE),
    26: FieldRule("configuration", refused=DEVICES),
}
OPSET: Message = {1: FieldRule("domain"), 2: FieldRule("version", VARINT)}
GRAPH: Message = {
    **_lists((1, "node"), (5, "initializer"), (11, "input"), (12, "output"), (13, "value_info")),
    **_lists((14, "quantization_annotation"), (16, "metadata_props")),
    **_texts((2, "name"), (10, "doc_string")),
    15: FieldRule("sparse_initializer", refused=SPARSE),
}
NODE: Message = {
    **_lists((1, "input"), (2, "output"), (5, "attribute"), (9, "metadata_props")),
    **_texts((3, "name"), (4, "op_type"), (6, "doc_string"), (7, "domain")),
    8: FieldRule("overload", refused=OURS_ALONE),
    10: FieldRule("device_configurations", refused=DEVICES),
}
ATTRIBUTE: Message = {
    **_texts((1, "name"), (4, "s"), (5, "t"), (6, "g"), (13, "doc_string"), (14, "tp")),
    2: FieldRule("f", FIXED32),
    3: FieldRule("i", VARINT),
    7: FieldRule("floats", FIXED32, many=True),
    8: FieldRule("ints", VARINT, many=True),
    **_lists((9, "strings"), (10, "tensors"), (11, "graphs"), (15, "type_protos")),
    20: FieldRule("type", VARINT),
    21: FieldRule("ref_attr_name", refused=OURS_ALONE),
    22: FieldRule("sparse_tensor", refused=SPARSE),
    23: FieldRule("sparse_tensors", refused=SPARSE),
}
TENSOR: Message = {
    1: FieldRule("dims", VARINT, many=True),
    2: FieldRule("data_type", VARINT),
    3: FieldRule("segment", refused="is cut into segments; save it whole"),
    4: FieldRule("float_data", FIXED32, many=True),
    5: FieldRule("int32_data", VARINT, many=True),
    6: FieldRule("string_data", refused="texts in tensors are not accepted"),
    7: FieldRule("int64_data", VARINT, many=True),
    **_texts((8, "name"), (9, "raw_data"), (12, "doc_string")),
    10: FieldRule("double_data", FIXED64, many=True),
    11: FieldRule("uint64_data", VARINT, many=True),
    13: FieldRule("external_data", refused=ELSEWHERE),
    14: FieldRule("data_location", VARINT),
    16: FieldRule("metadata_props", many=True),
}
VALUE: Message = {
    **_texts((1, "name"), (2, "type"), (3, "doc_string")),
    4: FieldRule("metadata_props", many=True),
}
NO_TENSOR = "is no tensor"
TYPE: Message = {
    1: FieldRule("tensor_type"),
    6: FieldRule("denotation"),
    **{number: FieldRule("other", refused=NO_TENSOR) for number in (4, 5, 7, 8, 9)},
}
TENSOR_TYPE: Message = {1: FieldRule("elem_type", VARINT), 2: FieldRule("shape")}
SHAPE: Message = {1: FieldRule("dim", many=True)}
DIMENSION: Message = {
    1: FieldRule("dim_value", VARINT),
    2: FieldRule("dim_param"),
    3: FieldRule("denotation"),
}
