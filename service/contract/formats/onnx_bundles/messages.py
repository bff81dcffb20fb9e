"""The messages of ONNX's files, by the numbers of their fields, and what no field may be."""

from collections.abc import Mapping

from service.contract.formats.onnx_bundles.protobuf import (
    FIXED32,
    FIXED64,
    VARINT,
    Message,
    Rule,
)

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


def _texts(*names: tuple[int, str]) -> dict[int, Rule]:
    return {number: Rule(name) for number, name in names}


def _lists(*names: tuple[int, str]) -> dict[int, Rule]:
    return {number: Rule(name, many=True) for number, name in names}


MODEL: Message = {
    1: Rule("ir_version", VARINT),
    **_texts((2, "producer_name"), (3, "producer_version"), (4, "domain"), (6, "doc_string")),
    5: Rule("model_version", VARINT),
    7: Rule("graph"),
    **_lists((8, "opset_import"), (14, "metadata_props")),
    20: Rule("training_info", refused=TRAINING),
    25: Rule("functions", refused=OURS_ALONE),
    26: Rule("configuration", refused=DEVICES),
}
OPSET: Message = {1: Rule("domain"), 2: Rule("version", VARINT)}
GRAPH: Message = {
    **_lists((1, "node"), (5, "initializer"), (11, "input"), (12, "output"), (13, "value_info")),
    **_lists((14, "quantization_annotation"), (16, "metadata_props")),
    **_texts((2, "name"), (10, "doc_string")),
    15: Rule("sparse_initializer", refused=SPARSE),
}
NODE: Message = {
    **_lists((1, "input"), (2, "output"), (5, "attribute"), (9, "metadata_props")),
    **_texts((3, "name"), (4, "op_type"), (6, "doc_string"), (7, "domain")),
    8: Rule("overload", refused=OURS_ALONE),
    10: Rule("device_configurations", refused=DEVICES),
}
ATTRIBUTE: Message = {
    **_texts((1, "name"), (4, "s"), (5, "t"), (6, "g"), (13, "doc_string"), (14, "tp")),
    2: Rule("f", FIXED32),
    3: Rule("i", VARINT),
    7: Rule("floats", FIXED32, many=True),
    8: Rule("ints", VARINT, many=True),
    **_lists((9, "strings"), (10, "tensors"), (11, "graphs"), (15, "type_protos")),
    20: Rule("type", VARINT),
    21: Rule("ref_attr_name", refused=OURS_ALONE),
    22: Rule("sparse_tensor", refused=SPARSE),
    23: Rule("sparse_tensors", refused=SPARSE),
}
TENSOR: Message = {
    1: Rule("dims", VARINT, many=True),
    2: Rule("data_type", VARINT),
    3: Rule("segment", refused="is cut into segments; save it whole"),
    4: Rule("float_data", FIXED32, many=True),
    5: Rule("int32_data", VARINT, many=True),
    6: Rule("string_data", refused="texts in tensors are not accepted"),
    7: Rule("int64_data", VARINT, many=True),
    **_texts((8, "name"), (9, "raw_data"), (12, "doc_string")),
    10: Rule("double_data", FIXED64, many=True),
    11: Rule("uint64_data", VARINT, many=True),
    13: Rule("external_data", refused=ELSEWHERE),
    14: Rule("data_location", VARINT),
    16: Rule("metadata_props", many=True),
}
VALUE: Message = {
    **_texts((1, "name"), (2, "type"), (3, "doc_string")),
    4: Rule("metadata_props", many=True),
}
NO_TENSOR = "is no tensor"
TYPE: Message = {
    1: Rule("tensor_type"),
    6: Rule("denotation"),
    **{number: Rule("other", refused=NO_TENSOR) for number in (4, 5, 7, 8, 9)},
}
TENSOR_TYPE: Message = {1: Rule("elem_type", VARINT), 2: Rule("shape")}
SHAPE: Message = {1: Rule("dim", many=True)}
DIMENSION: Message = {1: Rule("dim_value", VARINT), 2: Rule("dim_param"), 3: Rule("denotation")}
