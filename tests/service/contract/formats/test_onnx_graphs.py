"""T44, what is judged without running anything: the structure of ONNX files. onnx's own classes and
its description of the format are what we are held against.
"""

import io
import random
import re
from functools import partial

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

from helpers import onnx_bundle_files as files
from helpers.onnx_bundle_files import STATE, node, tensor, values
from service.contract.errors import GraphInvalid
from service.contract.formats.onnx_bundles import graphs, protobuf

TABLES = {
    "ModelProto": protobuf.MODEL,
    "OperatorSetIdProto": protobuf.OPSET,
    "GraphProto": protobuf.GRAPH,
    "NodeProto": protobuf.NODE,
    "AttributeProto": protobuf.ATTRIBUTE,
    "TensorProto": protobuf.TENSOR,
    "ValueInfoProto": protobuf.VALUE,
    "TypeProto.Tensor": protobuf.TENSOR_TYPE,
    "TensorShapeProto": protobuf.SHAPE,
    "TensorShapeProto.Dimension": protobuf.DIMENSION,
}
KINDS = {1: 1, 2: 5, 3: 0, 4: 0, 5: 0, 9: 2, 11: 2, 12: 2, 13: 0, 14: 0}  # protobuf's types


def judge(made):
    data = made if isinstance(made, bytes) else made.SerializeToString()
    return graphs.validate_onnx_graph(io.BytesIO(data), len(data), "x.onnx")


@pytest.mark.parametrize("name", TABLES)
def test_we_know_every_field_that_onnx_has(name):
    outer, _, inner = name.partition(".")
    message = getattr(onnx, outer).DESCRIPTOR
    message = message.nested_types_by_name[inner] if inner else message
    for number, field in message.fields_by_number.items():
        rule = TABLES[name][number]
        assert rule.name == field.name
        if rule.refused is None:
            assert rule.kind == KINDS[field.type]
            assert rule.many == field.is_repeated


def test_a_type_is_a_tensor_or_refused():
    for number in onnx.TypeProto.DESCRIPTOR.fields_by_number:
        rule = protobuf.TYPE[number]
        assert rule.name in ("tensor_type", "denotation") or rule.refused


def test_inputs_outputs_and_numbers_are_read_as_onnx_reads_them():
    made = files.step(files.arrays())
    found = judge(made)
    assert {name: str(each) for name, each in found.inputs.items()} == {
        "ids": "int64 [?]",
        "picture": f"float32 [?, {STATE}]",
        "h": f"float32 [?, {STATE}]",
    }
    assert list(found.outputs) == ["scores", "h1"]
    assert found.nodes == len(made.graph.node)
    assert found.parameters == sum(
        onnx.numpy_helper.to_array(each).size for each in made.graph.initializer
    )


# Every way from a model to a tensor, through one graph and through two, and how it is refused.
_IN_A_NODE = ("graph", "node", "attribute")
PLACES = {
    ("graph", "initializer"): protobuf.ELSEWHERE,
    **{
        (*inside, *last): protobuf.ELSEWHERE
        for inside in (
            _IN_A_NODE,
            (*_IN_A_NODE, "g", "node", "attribute"),
            (*_IN_A_NODE, "graphs", "node", "attribute"),
        )
        for last in (("t",), ("tensors",))
    },
    (*_IN_A_NODE, "g", "initializer"): protobuf.ELSEWHERE,
    (*_IN_A_NODE, "graphs", "initializer"): protobuf.ELSEWHERE,
    ("training_info", "algorithm", "initializer"): protobuf.TRAINING,
    ("functions", "node", "attribute", "t"): protobuf.OURS_ALONE,
    ("graph", "sparse_initializer", "indices"): protobuf.SPARSE,
    (*_IN_A_NODE, "sparse_tensor", "values"): protobuf.SPARSE,
    (*_IN_A_NODE, "sparse_tensors", "values"): protobuf.SPARSE,
}


def _at(message, path):
    """A message in this place, which is made; the last of them where there are many."""
    for name in path:
        found = getattr(message, name)
        if message.DESCRIPTOR.fields_by_name[name].is_repeated:
            message = found.add()
        else:
            found.SetInParent()
            message = found
        if message.DESCRIPTOR.name == "NodeProto":
            message.op_type, message.name = "Constant", "n"
        if message.DESCRIPTOR.name == "AttributeProto":
            message.name = "value"
    return message


@pytest.mark.parametrize("path", PLACES, ids=".".join)
def test_values_in_other_files_are_refused_wherever_onnx_allows_them(path):
    made = files.step(files.arrays())
    held = _at(made, path)
    held.CopyFrom(tensor("values", np.float32([1, 2, 3, 4])))
    if PLACES[path] == protobuf.ELSEWHERE:
        judge(made)  # it is nothing else that is refused
    held.ClearField("raw_data")
    held.data_location = TensorProto.EXTERNAL
    held.external_data.add(key="location", value="../../../etc/passwd")
    with pytest.raises(GraphInvalid, match=re.escape(PLACES[path])):
        judge(made)


def _node(**fields):
    def change(one):
        for name, value in fields.items():
            setattr(one.graph.node[0], name, value)

    return change


def _nested(depth):
    def change(one):
        inner = helper.make_graph([], "deepest", [], [])
        for _ in range(depth + 1):
            branch = helper.make_node("If", ["h"], ["x"], then_branch=inner)
            branch.name = "if"
            inner = helper.make_graph([branch], "deep", [], [])
        one.graph.node.append(branch)

    return change


def _tensor(**fields):
    def change(one):
        held = one.graph.initializer[0]
        for name, value in fields.items():
            held.ClearField(name)
            if isinstance(value, list):
                getattr(held, name).extend(value)
            else:
                setattr(held, name, value)

    return change


HOSTILE = {
    "com.microsoft": (
        lambda one: one.opset_import.append(helper.make_opsetid("com.microsoft", 1)),
        "operators of 'com.microsoft' are not accepted",
    ),
    "a custom operator": (_node(op_type="Mine", domain="mine"), "node '' (Mine): operators of"),
    "an overload": (_node(overload="x"), protobuf.OURS_ALONE),
    "a long name": (_node(name="x" * (protobuf.MOST_TEXT + 1)), "is too long"),
    "a function": (lambda one: one.functions.add(name="f", domain="mine"), protobuf.OURS_ALONE),
    "an attribute of a function": (
        lambda one: one.graph.node[0].attribute.add(name="a", ref_attr_name="b"),
        protobuf.OURS_ALONE,
    ),
    "a circle": (
        lambda one: one.graph.node.extend([node("Add", "p q", "q"), node("Add", "q q", "p")]),
        "reads 'p' before anything makes it: a circle",
    ),
    "a name that is made twice": (
        lambda one: one.graph.node.append(node("Neg", "h", "h1")),
        "the name 'h1' is given twice",
    ),
    "an initializer that is an input": (
        lambda one: one.graph.initializer.append(tensor("h", np.float32([1]))),
        "the name 'h' is given twice",
    ),
    "an output that nothing makes": (
        lambda one: one.graph.output.extend(values(more=(1,))),
        "the output 'more' is made by no node",
    ),
    "many nodes": (
        lambda one: one.graph.node.extend(
            node("Identity", "h", f"x{at}") for at in range(graphs.MOST_NODES)
        ),
        "more than 20,000 nodes",
    ),
    "deep graphs": (_nested(4), "graphs lie in graphs deeper than 4"),
    "a tensor of 10^18 values": (_tensor(dims=[10**9, 10**9]), "bytes for 1,000,000,000,000,000,0"),
    "a tensor of fewer values than bytes": (_tensor(dims=[2, 2]), "has 180 bytes for 4 values"),
    "a negative size": (_tensor(dims=[-1]), "bytes for 18,446,744,073,709,551,615 values"),
    "17 dimensions": (_tensor(dims=[1] * 17), "more than 16 dimensions"),
    "values that are not there": (_tensor(raw_data=b""), "has 0 bytes for 45 values"),
    "values of no bytes": (
        lambda one: one.graph.initializer[0].ClearField("raw_data"),
        "claims 45 values, and the file has 0",
    ),
    "values elsewhere, and no path": (
        _tensor(data_location=TensorProto.EXTERNAL),
        protobuf.ELSEWHERE,
    ),
    "a path, and values here": (
        lambda one: one.graph.initializer[0].external_data.add(key="location", value="/x"),
        protobuf.ELSEWHERE,
    ),
    "texts": (_tensor(string_data=[b"x"]), "texts in tensors are not accepted"),
    "a type that is none": (_tensor(data_type=99), "its type 99 is not accepted"),
    "a tensor in segments": (
        lambda one: setattr(one.graph.initializer[0].segment, "begin", 1),
        "is cut into segments",
    ),
    "a sequence": (
        lambda one: one.graph.input.append(
            helper.make_tensor_sequence_value_info("many", TensorProto.FLOAT, None)
        ),
        "is no tensor",
    ),
    "no graph": (ModelProto.Clear, "expected an ONNX model with a graph"),
    "no version": (
        lambda one: one.ClearField("opset_import"),
        "expected an ONNX model with a graph and its version",
    ),
    "an input without a name": (
        lambda one: one.graph.input.extend(values(**{"": (1,)})),
        "expected a name, found none",
    ),
    "an input without a type": (
        lambda one: one.graph.input.add(name="untyped"),
        "expected a type, found none",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_not_accepted_is_refused_with_a_sentence(name):
    change, said = HOSTILE[name]
    one = files.step(files.arrays())
    change(one)
    with pytest.raises(GraphInvalid, match=re.escape(said)) as told:
        judge(one)
    assert told.value.detail.startswith("x.onnx")
    assert len(told.value.detail) <= 500


def test_four_graphs_in_graphs_are_accepted():
    one = files.step(files.arrays())
    _nested(3)(one)
    judge(one)


VALID = files.step(files.arrays()).SerializeToString()
BROKEN = {
    "nothing": (b"", "expected an ONNX model"),
    "cut off": (VALID[:-1], "claims"),
    "cut off in a number": (b"\x08\xff", "is cut off or has more than 64 bits"),
    "a number of 65 bits": (b"\x08" + b"\xff" * 9 + b"\x02", "more than 64 bits"),
    "a number for the graph": (b"\x38\x01", "graph at byte 1 has wire type 0, not 2"),
    "two graphs": (VALID + VALID, "is there twice"),
    "an unknown field": (VALID + b"\xf8\x07\x01", "field 127 at byte"),
    "a length beyond the end": (b"\x3a\xff\xff\xff\xff\x0f", "claims 4294967295 bytes"),
    "a text file": (b"hello, world", "field 13 at byte 0"),
    "a name that is not UTF-8": (VALID.replace(b"scores", b"\xff" * 6), "not UTF-8"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_with_a_sentence(name):
    data, said = BROKEN[name]
    with pytest.raises(GraphInvalid, match=re.escape(said)):
        judge(data)


def test_fields_have_a_bound(monkeypatch):
    """An attack by structure alone: a million empty attributes take 2 MB."""
    few = partial(protobuf.ProtobufReader, fields_left=20)
    monkeypatch.setattr(graphs, "ProtobufReader", few)
    with pytest.raises(GraphInvalid, match="more than 1,000,000 fields"):
        judge(VALID)


def test_whatever_the_bytes_the_answer_is_a_graph_as_onnx_reads_it_or_a_sentence():
    accepted = 0
    for seed in range(600):
        rng = random.Random(seed)
        data = bytearray(VALID)
        for _ in range(rng.choice([1, 1, 2, 5])):
            at = rng.randrange(len(data))
            kind = rng.randrange(3)
            if kind == 0:
                data[at] = rng.randrange(256)
            elif kind == 1:
                del data[at : at + rng.randrange(1, 9)]
            else:
                data[at:at] = rng.randbytes(rng.randrange(1, 9))
        try:
            found = judge(bytes(data))
        except GraphInvalid:
            continue
        theirs = ModelProto.FromString(bytes(data))
        assert [each.name for each in theirs.graph.input] == list(found.inputs)
        assert len(theirs.graph.node) == found.nodes
        assert not any(each.external_data for each in theirs.graph.initializer)
        accepted += 1
    assert 50 < accepted < 500  # bytes of values, above all
