import pytest

from helpers.contract_files import tar, tar_entry


@pytest.fixture(params=["folder", "tar"])
def bundle(request, tmp_path):
    """`bundle({"captions.jsonl": b"…"})` makes a bundle of these files and answers its path."""

    def folder(files):
        for name, content in files.items():
            path = tmp_path / "bundle" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return tmp_path / "bundle"

    def packed(files):
        path = tmp_path / "bundle.tar"
        path.write_bytes(tar(*(tar_entry(name.encode(), files[name]) for name in files)))
        return path

    return folder if request.param == "folder" else packed
