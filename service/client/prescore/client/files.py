"""Calls about files that the service stores: checkpoints, columns and datasets."""

from pathlib import Path

from prescore.client.lists import Listing
from prescore.client.requests import Calls
from prescore.http import uploads
from prescore.http.downloads import fetch_picture
from prescore.http.transport import HttpRequest, quote_segment
from prescore.http.uploads import Progress, build_dataset_path
from prescore.models import Checkpoint, Columns, Dataset, References
from prescore.names import check_dataset_name

_FETCH_SECONDS = 1500  # 10 minutes to fetch, 10 to judge, and time to store


class FileCalls(Calls):
    # Checkpoints

    def upload_checkpoint(self, path: str | Path, progress: Progress | None = None) -> str:
        """Send a file unless the service has it; returns its digest."""
        return uploads.upload_checkpoint(self._transport, Path(path), progress)

    def has_checkpoint(self, digest: str) -> bool:
        return uploads.is_stored(self._transport, _build_checkpoint_path(digest))

    def checkpoint(self, digest: str) -> Checkpoint:
        return self._get(Checkpoint, _build_checkpoint_path(digest))

    def delete_checkpoint(self, digest: str) -> None:
        """Delete a checkpoint; the scores of evaluations that have ended stay."""
        self._delete(_build_checkpoint_path(digest))

    # Columns

    def upload_columns(self, path: str | Path, progress: Progress | None = None) -> str:
        """Send what `prescore.Recorder` wrote, unless the service has it; returns its digest."""
        return uploads.upload_columns(self._transport, Path(path), progress)

    def has_columns(self, digest: str) -> bool:
        return uploads.is_stored(self._transport, _build_columns_path(digest))

    def columns(self, digest: str) -> Columns:
        """Facts about stored columns."""
        return self._get(Columns, _build_columns_path(digest))

    def delete_columns(self, digest: str) -> None:
        """Delete columns; the scores of evaluations that have ended stay."""
        self._delete(_build_columns_path(digest))

    # Datasets

    def add_dataset(
        self, name: str, bundle: str | Path, progress: Progress | None = None
    ) -> Dataset:
        """Add a version, or find the one with the same content; a folder is sent as a tar.

        Nothing is sent if one of the latest versions has the same content.
        """
        return uploads.add_dataset(self._transport, name, Path(bundle), progress)

    def add_pictures(
        self, name: str, folder: str | Path, progress: Progress | None = None
    ) -> Dataset:
        """Add a version with the latest one's captions and the pictures in a folder, each under its
        image's name; or find the one that has them. Features stay with the versions that have them.
        """
        return uploads.add_pictures(self._transport, name, Path(folder), progress)

    def fetch_dataset(self, name: str, url: str, digest: str) -> Dataset:
        """Let the service fetch a dataset's tar from a URL, as a new version of `name`; `digest`
        is the tar's SHA-256. Refused unless its operator allows that.
        """
        check_dataset_name(name)
        path, fields = f"{build_dataset_path(name)}/fetch", {"url": url, "digest": digest}
        return self._change(Dataset, "POST", path, fields, hold=_FETCH_SECONDS)

    def show_pictures(self, name: str, *, shown: bool = True) -> Dataset:
        """Let everybody who reaches the service look at a version's pictures, or nobody any more:
        of the latest one, or of `name@version`.
        """
        return self._change(Dataset, "PATCH", build_dataset_path(name), {"pictures_shown": shown})

    def image(self, name: str, image: str, size: int = 320) -> bytes:
        """An image's picture as WebP, whose longer side has at most `size` pixels (320 or 960). The
        first time that somebody asks it is made, which takes some seconds.
        """
        params = {"size": str(size)}
        return fetch_picture(
            self._transport, HttpRequest("GET", _build_image_path(name, image), params)
        )

    def references(self, dataset: str, image: str) -> References:
        """People's captions of an image of `name` or `name@version`."""
        return self._get(References, f"{_build_image_path(dataset, image)}/references")

    def datasets(self) -> Listing[Dataset]:
        return self._list(Dataset, "datasets", "/v1/datasets")

    def dataset(self, name: str) -> Dataset:
        """A dataset by `name` (its latest version) or `name@version`."""
        return self._get(Dataset, build_dataset_path(name))

    def fetch_captions(self, name: str, path: str | Path) -> None:
        """Download the captions.jsonl of a dataset, `name` or `name@version`, to `path`. It is kept
        only if it has the digest that the service tells.
        """
        uploads.fetch_captions(self._transport, name, Path(path))

    def delete_dataset(self, name: str) -> None:
        """Delete `name@version`, or all versions of `name`, on which there are no runs."""
        self._delete(build_dataset_path(name))


def _build_checkpoint_path(digest: str) -> str:
    return f"/v1/checkpoints/{quote_segment(digest)}"


def _build_columns_path(digest: str) -> str:
    return f"/v1/columns/{quote_segment(digest)}"


def _build_image_path(dataset: str, image: str) -> str:
    return f"{build_dataset_path(dataset)}/images/{quote_segment(image)}"
