import io
import stat
import warnings
import zipfile

import pytest

from fuzz import edits
from service.contract import limits
from service.contract.errors import InvalidPackage
from service.contract.formats import model_formats, packages

FILES = {"config.json": b'{"a": 1}', "model.safetensors": bytes(range(256)) * 4}


TAR, ZIP, DEFLATED, FOLDER = FORMS = ["tar", "zip", "deflated zip", "folder"]


def _pack(path, how=ZIP, files=FILES, folder=""):
    named = {folder + name: data for name, data in files.items()}
    if how != FOLDER:
        path.write_bytes(edits.packed([*named.items()], how))
        return path
    for name, data in named.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def _refused(path, match=None, name=None):
    """Opening the package, or reading a file of it, says what is wrong."""

    def read():
        with packages.open_package(path) as package:
            if name is not None:
                package.read(name, 5000)

    with pytest.raises(InvalidPackage, match=match):
        read()


@pytest.mark.parametrize("folder", ["", "run-7/"])
@pytest.mark.parametrize("how", FORMS)
def test_the_same_files_are_found_however_they_are_packed(how, folder, tmp_path):
    with packages.open_package(_pack(tmp_path / "packed", how, folder=folder)) as package:
        assert {name: package.read(name, 2000) for name in package.files} == FILES
        assert package.text("config.json", 100) == '{"a": 1}'


@pytest.mark.parametrize("how", FORMS)
def test_a_place_is_where_the_bytes_lie(how, tmp_path):
    with packages.open_package(_pack(tmp_path / "packed", how)) as package:
        for name, data in FILES.items():
            place = package.file(name).place
            if how == DEFLATED:
                assert place is None
                continue
            with place.path.open("rb") as stream:
                stream.seek(place.start)
                assert stream.read(place.size) == data


def test_what_a_system_adds_when_it_packs_is_no_file_of_the_model(tmp_path):
    added = {"__MACOSX/._config.json": b"x", "run-7/.DS_Store": b"x", "run-7/._model": b"x"}
    files = {f"run-7/{name}": data for name, data in FILES.items()} | added
    with packages.open_package(_pack(tmp_path / "packed.zip", files=files)) as package:
        assert set(package.files) == set(FILES)


def test_a_folder_may_hold_links_to_files_as_those_of_caches_do(tmp_path):
    real = _pack(tmp_path / "blobs", FOLDER)
    (tmp_path / "snapshot").mkdir()
    for name in FILES:
        (tmp_path / "snapshot" / name).symlink_to(real / name)
    with packages.open_package(tmp_path / "snapshot") as package:
        assert package.read("config.json", 100) == FILES["config.json"]


@pytest.mark.parametrize("how", [TAR, ZIP])
@pytest.mark.parametrize("name", ["../config.json", "/etc/config.json", "a\\b", "a\x1bb"])
def test_a_name_that_leads_elsewhere_is_refused(how, name, tmp_path):
    _refused(_pack(tmp_path / "packed", how, {name: b"1", "b": b"2"}), "is not a name inside")


@pytest.mark.parametrize("how", FORMS)
def test_more_files_than_a_model_has_are_refused(how, tmp_path):
    files = {f"{number}.json": b"" for number in range(limits.PACKAGE_FILES + 1)}
    _refused(_pack(tmp_path / "packed", how, files), f"at most {limits.PACKAGE_FILES} files")


@pytest.mark.parametrize("how", [TAR, ZIP])
def test_no_file_is_a_sentence(how, tmp_path):
    _refused(_pack(tmp_path / "packed", how, {}), "expected the files of a model, found none")


@pytest.mark.parametrize("how", FORMS)
def test_a_file_is_read_up_to_a_limit_and_an_absent_one_is_told(how, tmp_path):
    with packages.open_package(_pack(tmp_path / "packed", how)) as package:
        with pytest.raises(InvalidPackage, match="1,024 bytes, at most 1,023 are accepted"):
            package.read("model.safetensors", 1023)
        with pytest.raises(InvalidPackage, match=r"expected a file map.toml, found config.json"):
            package.read("map.toml", 1023)
        with pytest.raises(InvalidPackage, match="expected UTF-8, found byte 128"):
            package.text("model.safetensors", 2000)


def test_a_zip_that_unpacks_to_far_more_than_it_is_is_refused(tmp_path):
    bomb = _pack(tmp_path / "bomb.zip", DEFLATED, {"vocabulary.json": bytes(3_000_000)})
    _refused(bomb, "too many for it")


def _zipped(*members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, warnings.catch_warnings(action="ignore"):
        for info, data in members:
            archive.writestr(info, data)
    return buffer.getvalue()


def _link():
    link = zipfile.ZipInfo("model.pt")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    return link


PLAIN = edits.packed([("\xe9", bytes(400))], ZIP)
IN_THE_LIST, AT_THE_END = b"PK\x01\x02", b"PK\x05\x06"


def _other(mark, place, value):
    """The same zip with another number of two bytes behind this mark."""
    at = PLAIN.index(mark) + place
    return PLAIN[:at] + value.to_bytes(2, "little") + PLAIN[at + 2 :]


ODD_ZIPS = {
    "a link": (_zipped((_link(), b"/etc/passwd")), "is a link or a device"),
    "a name twice": (_zipped(("a", b"1"), ("a", b"2")), "'a' is in the zip twice"),
    "a name of dots": (_zipped((".", b"1")), None),
    "a password": (_other(IN_THE_LIST, 8, 0x801), "is encrypted"),
    "another size": (_other(IN_THE_LIST, 24, 3), r"names two sizes|disagree"),
    "another place": (_other(IN_THE_LIST, 42, 5), r"names two sizes|disagree"),
    "another name before the content": (
        PLAIN.replace(b"\xc3\xa9", b"\xc3\xaa", 1),
        "cannot be unpacked",
    ),
    "a later version": (_other(IN_THE_LIST, 6, 99), None),
    "patched content": (_other(IN_THE_LIST, 8, 0x20), None),
    "a list before the file": (_other(AT_THE_END, 16, len(PLAIN)), None),
    "a name of no length": (_other(IN_THE_LIST, 28, 0), None),
    "names that are no UTF-8": (PLAIN.replace(b"\xc3\xa9", b"\xff\xff"), None),
    "one name that is no UTF-8": (PLAIN.replace(b"\xc3\xa9", b"\xc3\xff", 1), None),
}


@pytest.mark.parametrize("what", ODD_ZIPS)
def test_a_zip_that_some_program_would_read_otherwise_is_refused(what, tmp_path):
    content, said = ODD_ZIPS[what]
    (tmp_path / "packed.zip").write_bytes(content)
    _refused(tmp_path / "packed.zip", said, "\xe9")


def test_damaged_content_of_a_zip_is_refused_when_it_is_read(tmp_path):
    path = _pack(tmp_path / "packed.zip", DEFLATED, {"a": bytes(range(256)) * 8})
    data = bytearray(path.read_bytes())
    data[100:120] = bytes(20)
    path.write_bytes(data)
    _refused(path, "a: cannot be", "a")
    with (
        packages.open_package(path) as package,
        package.file("a").open() as stream,
        pytest.raises(InvalidPackage, match="a: cannot be unpacked"),
    ):
        stream.read(5000)  # as readers of a part do


@pytest.mark.parametrize("data", [b"PK", b"PK\x05\x06" + bytes(18), b"no tar" * 100, b""])
def test_what_is_no_package_is_refused(data, tmp_path):
    (tmp_path / "packed").write_bytes(data)
    _refused(tmp_path / "packed")


@pytest.mark.parametrize("first", [".gitattributes", "README.md", "LICENSE", "a picture.png"])
def test_a_zip_of_a_snapshot_is_a_package_whatever_stands_first(tmp_path, first):
    path = _pack(tmp_path / "snapshot.zip", ZIP, {first: b"beside", ".cache/x": b"", **FILES})
    with path.open("rb") as stream:
        assert model_formats.may_be_package(stream)
    with packages.open_package(path) as package:
        assert package.files.keys() - {"README.md", "LICENSE", "a picture.png"} == FILES.keys()


@pytest.mark.parametrize("first", ["m/data.pkl", "a.npy", "archive_format", "m/archive_format"])
def test_a_zip_of_another_program_is_known_at_its_beginning(tmp_path, first):
    path = _pack(tmp_path / "other.zip", ZIP, {first: b"x", **FILES})
    with path.open("rb") as stream:
        assert not model_formats.may_be_package(stream)
