"""Files that run code when they are unpickled, each by another trick; made opcode by opcode.

What they run is `canary`: it writes to a file, connects to a socket, and remembers that it ran.
`bombs` run nothing: they take memory or time, or lie about their own structure.
"""

import gzip
import io
import pickle
import struct
import zipfile

from helpers.tars import packed

MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001  # of PyTorch's older format
STOP, MARK, REDUCE, TUPLE1 = b".", b"(", b"R", b"\x85"


def _text(text: str) -> bytes:
    data = text.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def _short(text: str) -> bytes:
    data = text.encode()
    return b"\x8c" + bytes([len(data)]) + data


def _global(dotted: str) -> bytes:
    module, _, name = dotted.rpartition(".")
    return f"c{module}\n{name}\n".encode()


def _call(dotted: str, argument: str) -> bytes:
    return _global(dotted) + _text(argument) + TUPLE1 + REDUCE


def _by_opcode(code: str) -> dict[str, bytes]:
    """exec(code), by each opcode that calls or leads to a call."""
    module, name, given = "builtins", "exec", _text(code)
    function, call = _global("builtins.exec"), given + TUPLE1 + REDUCE
    later = _short(module) + _short(name) + b"\x93"
    remembered = _short(module) + b"\x94" + _short(name) + b"\x940"
    done = function + call
    return {
        "GLOBAL": done,
        "STACK_GLOBAL": later + call,
        "STACK_GLOBAL of memo": remembered + b"0h\x00h\x01\x93" + call,
        "STACK_GLOBAL of long texts": _text(module) + _text(name) + b"\x93" + call,
        "STACK_GLOBAL of unicode lines": b"Vbuiltins\nVexec\n\x93" + call,
        "GLOBAL MARK TUPLE": function + MARK + given + b"t" + REDUCE,
        "GLOBAL from the memo": function + b"q\x070h\x07" + call,
        "GLOBAL from the long memo": function + b"r\x00\x01\x00\x000j\x00\x01\x00\x00" + call,
        "GLOBAL by PUT and GET": function + b"p9\n0g9\n" + call,
        "GLOBAL by MEMOIZE": function + b"\x940h\x00" + call,
        "OBJ": MARK + function + given + b"o",
        "OBJ STACK_GLOBAL": MARK + later + given + b"o",
        "INST": MARK + given + b"ibuiltins\nexec\n",
        "twice": done + b"0" + done,
        "popped": done + b"0N",
        "popped to a mark": MARK + done + b"1N",
        "a key of a dict": b"}" + done + b"Ns",
        "a value of a dict": b"}" + _text("weight") + done + b"s",
        "values of a dict": b"}(" + _text("weight") + done + b"u",
        "in a list": b"](" + done + b"e",
        "in a set": b"\x8f(" + done + b"\x90",
        "in a frozen set": MARK + done + b"\x91",
        "a duplicate": done + b"2\x86",
        "a state of BUILD": _global("collections.OrderedDict") + b")R" + done + b"b",
        "framed": b"\x80\x04\x95" + struct.pack("<Q", len(done) + 1) + done,
        "a wrong frame": b"\x80\x04\x95" + struct.pack("<Q", 3) + done,
        "partial": _global("functools.partial") + function + given + b"\x86R)R",
        "map": _global("builtins.list")
        + _global("builtins.map")
        + function
        + b"]"
        + given
        + b"a\x86R\x85R",
    }


def _by_name(code: str, path: str) -> dict[str, bytes]:
    """Through functions that call others."""
    inner = b"\x80\x02" + _call("builtins.exec", code) + STOP
    nested = b"B" + struct.pack("<I", len(inner)) + inner
    return {
        "eval": _call("builtins.eval", f"exec({code!r})"),
        "Python 2's eval": _call("__builtin__.eval", f"exec({code!r})"),
        "os.system": _call("os.system", f"touch {path}"),
        "posix.system": _call("posix.system", f"touch {path}"),
        "os.popen": _call("os.popen", f"touch {path}"),
        "os.mkdir": _call("os.mkdir", path),
        "subprocess.getoutput": _call("subprocess.getoutput", f"touch {path}"),
        "cProfile": _call("cProfile.run", code),
        "ctypes": _call("ctypes.CDLL", path),
        "importlib": _call("importlib.import_module", "this"),
        "logging": _call("logging.FileHandler", path),
        "pathlib": _call("pathlib.Path.touch", path),
        "sqlite3": _call("sqlite3.connect", path),
        "tempfile": _call("tempfile.NamedTemporaryFile", "w+b"),
        "pickle in a pickle": _global("pickle.loads") + nested + TUPLE1 + REDUCE,
        "torch.load": _call("torch.load", path),
        "torch's own exec": _call("torch.fx.graph_module._exec_with_source", code),
    }


def _older(body: bytes, magic: int = MAGIC) -> bytes:
    """PyTorch's format before zips: pickles one after the other."""
    heads = (magic, PROTOCOL, {"protocol_version": PROTOCOL, "little_endian": True})
    return b"".join(pickle.dumps(each, 2) for each in heads) + body + pickle.dumps([], 2)


def _zip(members: dict[str, bytes], *, deflated: bool = False) -> bytes:
    stream = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
    with zipfile.ZipFile(stream, "w", kind) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def _by_container(code: str) -> dict[str, bytes]:
    """One pickle in every file that a reader may take for PyTorch's."""
    body = b"\x80\x02" + _call("builtins.exec", code) + STOP
    good = pickle.dumps({}, 2)
    one = {"m/data.pkl": body, "m/version": b"3\n", "m/byteorder": b"little"}
    central = bytearray(_zip({"m/data.pkl": good, "m/evil.pkl": body, "m/version": b"3\n"}))
    at = central.rindex(b"m/data.pkl"), central.rindex(b"m/evil.pkl")
    central[at[0] : at[0] + 10], central[at[1] : at[1] + 10] = b"m/evil.pkl", b"m/data.pkl"
    return {
        "the older format": _older(body),
        "the older format, of another magic": _older(body, MAGIC + 1),
        "in place of the older format's head": body + _older(good),
        "after the older format": _older(good) + body,
        "protocol 0": _call("builtins.exec", code) + STOP,
        "protocol 5": b"\x80\x05" + _call("builtins.exec", code) + STOP,
        "protocol 200": b"\x80\xc8" + _call("builtins.exec", code) + STOP,
        "no STOP": b"\x80\x02" + _call("builtins.exec", code),
        "a zip": _zip(one),
        "a zip, deflated": _zip(one, deflated=True),
        "a zip behind other bytes": b"\x80\x02N." + _zip(one),
        "a zip with two such members": _zip({"m/data.pkl": good}) + _zip(one),
        "a zip whose names disagree": bytes(central),
        "a zip in a zip": _zip({"m/data.pkl": _zip(one), "m/version": b"3\n"}),
        "TorchScript": _zip({**one, "m/constants.pkl": body, "m/code/__torch__.py": b"x"}),
        "torch.export": _zip({**one, "archive_format": b"pt2", "models/model.json": b"{}"}),
        "an older tar": packed(dict.fromkeys(("pickle", "sys_info", "storages", "tensors"), body)),
        "compressed": gzip.compress(body),
    }


def malicious(code: str, path: str) -> dict[str, bytes]:
    """By name. `code` is Python, `path` a file that what cannot run Python makes."""
    opcodes, names = _by_opcode(code), _by_name(code, path)
    found = {f"by opcode: {name}": _zip_of(b"\x80\x02" + each) for name, each in opcodes.items()}
    found |= {f"by name: {name}": _zip_of(b"\x80\x02" + each) for name, each in names.items()}
    return found | {f"in {name}": each for name, each in _by_container(code).items()}


def _zip_of(pickled: bytes) -> bytes:
    return _zip({"m/data.pkl": pickled + STOP, "m/version": b"3\n", "m/byteorder": b"little"})


def bombs() -> dict[str, bytes]:
    found = {
        "a tuple of 2^60": _doubled(60),
        "many marks": MARK * 100_000,
        "lists in lists": b"]" * 100_000 + b"a" * 99_999,
        "an index of 2^31": b"]r\xff\xff\xff\x7f",
        "a text of 2^62 bytes": b"\x8d" + struct.pack("<Q", 1 << 62),
        "bytes of 2^62": b"\x8e" + struct.pack("<Q", 1 << 62),
        "a number of 2^31 bytes": b"\x8b\xff\xff\xff\x7f",
        "digits without end": b"I" + b"9" * 100_000 + b"\n",
    }
    zips = {name: _zip_of(b"\x80\x02" + each) for name, each in found.items()}
    large = b"\x80\x02X" + struct.pack("<I", 64 << 20) + b"\x00" * (64 << 20) + STOP
    members = {"m/data.pkl": large, "m/version": b"3\n", "m/byteorder": b"little"}
    return zips | {"a deflated text of 64 MB": _zip(members, deflated=True)}


def endless() -> bytes:
    """A key of a dict whose hash takes 2^60 steps."""
    return _zip_of(b"\x80\x02" + _doubled(60) + b"}h\x00Ns")


def _doubled(times: int) -> bytes:
    """A tuple of twice the same tuple, so many times."""
    return b")q\x00" + b"h\x00h\x00\x86q\x00" * times
