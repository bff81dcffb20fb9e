import io
import stat
import tarfile
import zipfile

import pytest

from service.contract import limits
from service.contract.errors import InvalidPackage
from service.contract.formats import model_formats, packages

FILES = {"config.json": b'{"a": 1}', "model.safetensors": bytes(range(256)) * 4}


def _tar(path, files=FILES, folder=""):
    with tarfile.open(path, "w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(folder + name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def _zip(path, files=FILES, folder="", kind=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, data in files.items():
            archive.writestr(folder + name, data)
    return path


def _folder(path, files=FILES, folder=""):
    for name, data in files.items():
        file = path / (folder + name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return path


def _deflated(path, files=FILES, folder=""):
    return _zip(path, files, folder, zipfile.ZIP_DEFLATED)


FORMS = [_tar, _zip, _deflated, _folder]


def _refused(path, match=None, name=None):
    """Opening the package, or reading a file of it, says what is wrong."""

    def read():
        with packages.open_package(path) as package:
            if name is not None:
                package.read(name, 5000)

    with pytest.raises(InvalidPackage, match=match):
        read()


@pytest.mark.parametrize("folder", ["", "run-7/"])
@pytest.mark.parametrize("pack", FORMS)
def test_the_same_files_are_found_however_they_are_packed(pack, folder, tmp_path):
    with packages.open_package(pack(tmp_path / "packed", folder=folder)) as package:
        assert {name: package.read(name, 2000) for name in package.files} == FILES
        assert package.text("config.json", 100) == '{"a": 1}'


@pytest.mark.parametrize("pack", FORMS)
def test_a_place_is_where_the_bytes_lie(pack, tmp_path):
    with packages.open_package(pack(tmp_path / "packed")) as package:
        for name, data in FILES.items():
            place = package.file(name).place
            if pack is _deflated:
                assert place is None
                continue
            with place.path.open("rb") as stream:
                stream.seek(place.start)
                assert stream.read(place.size) == data


def test_what_a_system_adds_when_it_packs_is_no_file_of_the_model(tmp_path):
    added = {"__MACOSX/._config.json": b"x", "run-7/.DS_Store": b"x", "run-7/._model": b"x"}
    files = {f"run-7/{name}": data for name, data in FILES.items()} | added
    with packages.open_package(_zip(tmp_path / "packed.zip", files)) as package:
        assert set(package.files) == set(FILES)


def test_a_folder_may_hold_links_to_files_as_those_of_caches_do(tmp_path):
    real = _folder(tmp_path / "blobs")
    (tmp_path / "snapshot").mkdir()
    for name in FILES:
        (tmp_path / "snapshot" / name).symlink_to(real / name)
    with packages.open_package(tmp_path / "snapshot") as package:
        assert package.read("config.json", 100) == FILES["config.json"]


@pytest.mark.parametrize("pack", [_tar, _zip])
@pytest.mark.parametrize("name", ["../config.json", "/etc/config.json", "a\\b", "a\x1bb"])
def test_a_name_that_leads_elsewhere_is_refused(pack, name, tmp_path):
    _refused(pack(tmp_path / "packed", {name: b"1", "b": b"2"}), "is not a name inside")


@pytest.mark.parametrize("pack", FORMS)
def test_more_files_than_a_model_has_are_refused(pack, tmp_path):
    files = {f"{number}.json": b"" for number in range(limits.PACKAGE_FILES + 1)}
    _refused(pack(tmp_path / "packed", files), f"at most {limits.PACKAGE_FILES} files")


@pytest.mark.parametrize("pack", [_tar, _zip])
def test_no_file_is_a_sentence(pack, tmp_path):
    _refused(pack(tmp_path / "packed", {}), "expected the files of a model, found none")


@pytest.mark.parametrize("pack", FORMS)
def test_a_file_is_read_up_to_a_limit_and_an_absent_one_is_told(pack, tmp_path):
    with packages.open_package(pack(tmp_path / "packed")) as package:
        with pytest.raises(InvalidPackage, match="1,024 bytes, at most 1,023 are accepted"):
            package.read("model.safetensors", 1023)
        with pytest.raises(InvalidPackage, match=r"expected a file map.toml, found config.json"):
            package.read("map.toml", 1023)
        with pytest.raises(InvalidPackage, match="expected UTF-8, found byte 128"):
            package.text("model.safetensors", 2000)


def test_a_zip_that_unpacks_to_far_more_than_it_is_is_refused(tmp_path):
    bomb = _deflated(tmp_path / "bomb.zip", {"vocabulary.json": bytes(3_000_000)})
    _refused(bomb, "too many for it")


def test_a_zip_with_links_twice_one_name_or_a_password_is_refused(tmp_path):
    path = tmp_path / "packed.zip"
    link = zipfile.ZipInfo("model.pt")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    _written(path, (link, b"/etc/passwd"))
    _refused(path, "is a link or a device")
    with pytest.warns(UserWarning, match="Duplicate name"):
        _written(path, (zipfile.ZipInfo("a"), b"1"), (zipfile.ZipInfo("a"), b"2"))
    _refused(path, "'a' is in the zip twice")
    _written(path, (zipfile.ZipInfo("a"), b"1"))
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    _refused(path, "is encrypted")


def _written(path, *members):
    with zipfile.ZipFile(path, "w") as archive:
        for info, data in members:
            archive.writestr(info, data)


def test_a_zip_whose_list_and_content_disagree_is_refused(tmp_path):
    path = _zip(tmp_path / "packed.zip", {"a": bytes(400)})
    whole = path.read_bytes()
    central = whole.index(b"PK\x01\x02")
    other_size = bytearray(whole)
    other_size[central + 24 : central + 28] = (3).to_bytes(4, "little")
    elsewhere = bytearray(whole)
    elsewhere[central + 42 : central + 46] = (5).to_bytes(4, "little")
    for data in (bytes(other_size), bytes(elsewhere)):
        path.write_bytes(data)
        _refused(path, r"names two sizes|disagree")
    path.write_bytes(whole.replace(b"a\0\0", b"b\0\0", 1))
    _refused(path, "cannot be unpacked", "a")


def test_a_zip_that_zipfile_does_not_read_as_others_are_is_refused(tmp_path):
    """A later version, patched content, a list before the file, names that are no UTF-8."""
    path = _zip(tmp_path / "packed.zip", {"\xe9": bytes(400)})
    whole = path.read_bytes()
    central, end = whole.index(b"PK\x01\x02"), whole.index(b"PK\x05\x06")
    for place, value in ((central + 6, 99), (central + 8, 0x20), (end + 16, end + 50)):
        changed = bytearray(whole)
        changed[place : place + 2] = value.to_bytes(2, "little")
        path.write_bytes(changed)
        _refused(path, name="\xe9")
    for name in (b"\xff\xe9", b"\xc3"):
        path.write_bytes(whole.replace(b"\xc3\xa9", name[:1] + b"\xff", 1))
        _refused(path, name="\xe9")


def test_damaged_content_of_a_zip_is_refused_when_it_is_read(tmp_path):
    path = _deflated(tmp_path / "packed.zip", {"a": bytes(range(256)) * 8})
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


def test_a_file_of_a_zip_has_a_name(tmp_path):
    path = tmp_path / "packed.zip"
    _written(path, (zipfile.ZipInfo("x"), b"1"))
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 28] = 0  # the length of its name in the list
    path.write_bytes(data)
    for name in ("", "."):
        if name:
            _written(path, (zipfile.ZipInfo(name), b"1"))
        _refused(path)


@pytest.mark.parametrize("data", [b"PK", b"PK\x05\x06" + bytes(18), b"no tar" * 100, b""])
def test_what_is_no_package_is_refused(data, tmp_path):
    (tmp_path / "packed").write_bytes(data)
    _refused(tmp_path / "packed")


@pytest.mark.parametrize("first", [".gitattributes", "README.md", "LICENSE", "a picture.png"])
def test_a_zip_of_a_snapshot_is_a_package_whatever_stands_first(tmp_path, first):
    path = _zip(tmp_path / "snapshot.zip", {first: b"beside", ".cache/x": b"", **FILES})
    with path.open("rb") as stream:
        assert model_formats.may_be_package(stream)
    with packages.open_package(path) as package:
        assert package.files.keys() - {"README.md", "LICENSE", "a picture.png"} == FILES.keys()


@pytest.mark.parametrize("first", ["m/data.pkl", "a.npy", "archive_format", "m/archive_format"])
def test_a_zip_of_another_program_is_known_at_its_beginning(tmp_path, first):
    path = _zip(tmp_path / "other.zip", {first: b"x", **FILES})
    with path.open("rb") as stream:
        assert not model_formats.may_be_package(stream)
