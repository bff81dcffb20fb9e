"""The weights of a quantised MobileNetV2 in TensorFlow Lite's format, as a file of Prescore's own.

The reader follows the file's own tables (flatbuffers: schema.fbs of TensorFlow Lite), for the few
fields that are needed.
"""

import struct
from pathlib import Path

import numpy as np

from service.contract.formats import encoder_header
from service.contract.formats.encoder_header import EncoderPreprocessing
from workers import tensor_files

_TYPES = {2: np.dtype("<i4"), 3: np.dtype(np.uint8)}


class _Table:
    def __init__(self, data: bytes, place: int) -> None:
        self._data, self._place = data, place
        self._fields = place - struct.unpack_from("<i", data, place)[0]

    def _at(self, field: int) -> int | None:
        size = struct.unpack_from("<H", self._data, self._fields)[0]
        if 4 + 2 * field >= size:
            return None
        offset = struct.unpack_from("<H", self._data, self._fields + 4 + 2 * field)[0]
        return self._place + offset if offset else None

    def number(self, field: int, form: str) -> int:
        at = self._at(field)
        return 0 if at is None else struct.unpack_from(form, self._data, at)[0]

    def array(self, field: int, dtype: str) -> np.ndarray:
        start, count = self._vector(field)
        return np.frombuffer(self._data, dtype, count, start)

    def table(self, field: int) -> "_Table":
        at = self._at(field)
        return _Table(self._data, at + struct.unpack_from("<I", self._data, at)[0])

    def tables(self, field: int) -> list["_Table"]:
        start, count = self._vector(field)
        places = [start + 4 * each for each in range(count)]
        return [
            _Table(self._data, at + struct.unpack_from("<I", self._data, at)[0]) for at in places
        ]

    def _vector(self, field: int) -> tuple[int, int]:
        at = self._at(field)
        if at is None:
            return 0, 0
        start = at + struct.unpack_from("<I", self._data, at)[0]
        return start + 4, struct.unpack_from("<I", self._data, start)[0]


def convert(source: Path, target: Path) -> None:
    """Values are (q - zero point) * scale; the input is (x - 128) / 128."""
    data = source.read_bytes()
    model = _Table(data, struct.unpack_from("<I", data)[0])
    buffers = [each.array(0, "u1") for each in model.tables(4)]
    graph = model.tables(2)[0]
    tensors, found = graph.tables(0), []
    for operator in graph.tables(3):
        inputs = operator.array(1, "<i4")
        if len(inputs) == 3:  # a layer with weight and bias
            found.append([_values(tensors[place], buffers) for place in inputs[1:]])
    names = [
        name.removesuffix(".weight")
        for name in encoder_header.list_encoder_shapes()
        if "weight" in name
    ]
    arrays = {}
    for name, (weight, bias) in zip(names, found, strict=False):  # the classifier is left out
        depthwise = name.endswith("depthwise")
        order = (3, 0, 1, 2) if depthwise else (0, 3, 1, 2)
        arrays[f"{name}.weight"] = weight.transpose(order).astype(np.float32)
        arrays[f"{name}.bias"] = bias.astype(np.float32)
    given = EncoderPreprocessing(stretched=(224, 224), mean=(128.0,) * 3, deviation=(128.0,) * 3)
    metadata = encoder_header.dump_encoder_metadata("mobilenet_v2_1.0_224", "same", given)
    tensor_files.write_tensors(target, arrays, metadata)


def _values(tensor: _Table, buffers: list[np.ndarray]) -> np.ndarray:
    quantised = tensor.table(4)
    scale, zero = quantised.array(2, "<f4"), quantised.array(3, "<i8")
    raw = buffers[tensor.number(2, "<I")].tobytes()
    values = np.frombuffer(raw, _TYPES[tensor.number(1, "<b")]).reshape(tensor.array(0, "<i4"))
    return (values.astype(np.float64) - zero[0]) * scale[0]
