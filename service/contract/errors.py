"""Every error of Prescore, in two branches: nothing was started, or a run failed.

    PrescoreError
    ├── RequestRefused               nothing was started; the caller must change the request
    │   ├── InvalidCheckpoint        header, metadata, config or vocabulary are wrong:
    │   │   ├── ForeignFormat        a file of another program: says of which, and what to do
    │   │   ├── InvalidPackage       a model of several files, one of which is wrong or absent
    │   │   ├── GraphInvalid         an ONNX graph that is damaged, or has what is not accepted
    │   │   ├── HeaderTruncated      the file ends before its header does
    │   │   ├── HeaderTooLarge       a length, count or text above a limit
    │   │   ├── HeaderMalformed      not the JSON that a safetensors header must be
    │   │   ├── TensorLayout         holes, overlaps, sizes that do not add up
    │   │   ├── TensorMismatch       a tensor missing, unknown or of another shape
    │   │   ├── MetadataInvalid      a metadata entry missing or of an unknown value
    │   │   ├── ConfigInvalid        `config` or `encoder` does not follow its schema
    │   │   └── VocabularyInvalid    the list of words is wrong
    │   ├── InvalidBundle            a dataset bundle, with line and field
    │   ├── ColumnsRefused           columns that somebody brings: header, values or split
    │   ├── CaptionsRefused          a file of captions that cannot be read, or submitted
    │   ├── UnknownMetric            no such metric; suggests the nearest names
    │   ├── AssetRefused             a metric's asset: unknown, missing, or another file
    │   ├── InvalidRequest           beyond the schema: images unknown, missing or twice
    │   ├── NotFound                 no such evaluation, checkpoint, dataset, version or split
    │   ├── Conflict                 an Idempotency-Key in flight, an upload that another has:
    │   │   ├── OffsetMismatch       bytes for another place of an upload than its end
    │   │   └── UploadComplete       bytes for an upload that has all of them
    │   ├── UploadRefused            an upload that was refused before, and is deleted
    │   ├── UnsupportedVersion       a version of a protocol that is not spoken here
    │   ├── PreconditionFailed       it has changed since what If-Match names
    │   ├── DigestMismatch           the bytes do not have the digest in the URL
    │   ├── BodyTooLarge             a body above its limit
    │   ├── MalformedJson            a body that is not JSON, or is ambiguous JSON
    │   ├── UnsupportedMedia         a body of another media type or character set
    │   ├── InvalidCursor            a cursor that this service did not give
    │   ├── Overloaded               more than the service can do now: come back later
    │   │   ├── QueueFull            as many runs are unfinished as may be
    │   │   ├── LimitReached         as much as a key or a team may ask for
    │   │   └── TooManyUploads       as many uploads are unfinished as may be
    │   ├── ServiceUnavailable       the database or Redis does not answer: come back later
    │   ├── DiskFull                 no space left for what was sent
    │   ├── UrlRefused               a URL that the service may not ask:
    │   │   └── UrlFailed            it may, and got no answer that it could use
    │   ├── InvalidSetting           an environment variable or a flag
    │   ├── InvalidBackup            a file to restore that is none, cut off, damaged, or later
    │   ├── UnknownHost              a request to a name that may be anybody's
    │   ├── Unauthorized             no key, or none that is valid
    │   ├── Forbidden                a key without the scope that is needed
    │   ├── ForeignOrigin            a change that a page of another site asks for
    │   ├── SlowRequest              a request that does not arrive in time
    │   └── LongHeader               a request whose header is too long
    └── RunFailed                    a run began and could not end; stored as data
        ├── UnusableCheckpoint       the tensors' values (not finite, cut off)
        ├── PluginUnavailable        a plug-in that this worker lacks, or has another version of
        ├── PluginFailed             a plug-in that raised, hung or gave what is no answer
        ├── SandboxUnavailable       a file is opened in a sandbox alone, and this machine has none
        ├── ConverterUnavailable     the process that opens files in a worker's place is away
        ├── UnusableDataset          features that are missing, not finite or of another size
        ├── CheckpointMismatch       checkpoint and dataset do not belong together
        ├── InvalidColumns           columns that contradict themselves
        ├── MetricFailed             a post-gen metric cannot be computed from what it was given
        │   ├── JavaFailed           Java died, hung or answered nonsense; with its last output
        │   └── MetricUnavailable    an asset is not on this machine; says how to add it
        ├── BlobUnreadable           an object that cannot be read:
        │   ├── BlobMissing          it is no longer stored
        │   └── BlobDamaged          its bytes are not those of its digest
        ├── StoreUnavailable         the object store does not answer, or refuses
        ├── WorkerLost               the process that ran the task died
        ├── TaskTimedOut             the task's deadline passed
        ├── OutOfMemory              the task's process grew beyond its limit
        └── RunCanceled              somebody canceled the run

Errors carry no HTTP status, since workers raise them too.
"""

from collections.abc import Sequence
from typing import ClassVar

from prescore import plain_text
from service.contract import limits


class PrescoreError(Exception):
    """Error. `detail` says what was expected, what was found and what to do; `pointer` says
    where.
    """

    code: ClassVar[str]

    def __init__(self, detail: str, *, pointer: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.pointer = pointer


class RequestRefused(PrescoreError):
    """Told in plain text, whatever names and values of a stranger's file it repeats."""

    code = "refused"

    def __init__(self, detail: str, *, pointer: str | None = None) -> None:
        super().__init__(plain_text.quoted(detail), pointer=pointer)


class InvalidCheckpoint(RequestRefused):
    code = "invalid_checkpoint"


class ForeignFormat(InvalidCheckpoint):
    pass


class InvalidPackage(InvalidCheckpoint):
    pass


class GraphInvalid(InvalidCheckpoint):
    pass


class HeaderTruncated(InvalidCheckpoint):
    pass


class HeaderTooLarge(InvalidCheckpoint):
    pass


class HeaderMalformed(InvalidCheckpoint):
    pass


class TensorLayout(InvalidCheckpoint):
    pass


class TensorMismatch(InvalidCheckpoint):
    pass


class MetadataInvalid(InvalidCheckpoint):
    pass


class ConfigInvalid(InvalidCheckpoint):
    pass


class VocabularyInvalid(InvalidCheckpoint):
    pass


class InvalidBundle(RequestRefused):
    code = "invalid_dataset"


class ColumnsRefused(RequestRefused):
    code = "invalid_columns"


class CaptionsRefused(RequestRefused):
    code = "invalid_captions"


class UnknownMetric(RequestRefused):
    """Unknown metric in a request, whose place is found by `name`, the name as requested.
    `problems`: as InvalidRequest's, where several are unknown.
    """

    code = "unknown_metric"

    def __init__(self, detail: str, *, pointer: str | None = None, name: str = "") -> None:
        super().__init__(detail, pointer=pointer)
        self.name = name
        self.problems: tuple[tuple[str, str], ...] = ()


class AssetRefused(RequestRefused):
    code = "asset_refused"


class InvalidRequest(RequestRefused):
    """Invalid request. `problems`: the first wrong places, (JSON pointer, what is wrong there)."""

    code = "invalid_request"

    def __init__(self, detail: str, problems: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(detail, pointer=problems[0][0] if problems else None)
        first = problems[: limits.PROBLEMS]
        self.problems = tuple((where, plain_text.quoted(what)) for where, what in first)


class NotFound(RequestRefused):
    """Missing object. `name`: the requested one; it leads to its place in a request's body."""

    code = "not_found"

    def __init__(self, detail: str, *, pointer: str | None = None, name: str = "") -> None:
        super().__init__(detail, pointer=pointer)
        self.name = name


class Conflict(RequestRefused):
    code = "conflict"


class OffsetMismatch(Conflict):
    """Wrong offset of an upload's bytes. `offset`: where the next byte belongs."""

    code = "upload_offset"

    def __init__(self, detail: str, *, offset: int) -> None:
        super().__init__(detail)
        self.offset = offset


class UploadComplete(Conflict):
    code = "upload_complete"


class UploadRefused(RequestRefused):
    code = "upload_refused"


class UnsupportedVersion(RequestRefused):
    code = "other_version"


class PreconditionFailed(RequestRefused):
    code = "precondition_failed"


class DigestMismatch(RequestRefused):
    code = "digest_mismatch"


class BodyTooLarge(RequestRefused):
    code = "too_large"


class MalformedJson(RequestRefused):
    code = "malformed_json"


class UnsupportedMedia(RequestRefused):
    code = "unsupported_media_type"


class InvalidCursor(RequestRefused):
    code = "invalid_cursor"


class Overloaded(RequestRefused):
    """Overload. `retry_after`: seconds until there may be room, where that is known."""

    code = "overloaded"

    def __init__(self, detail: str, *, retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class QueueFull(Overloaded):
    code = "queue_full"


class LimitReached(Overloaded):
    code = "limit_reached"


class TooManyUploads(Overloaded):
    code = "too_many_uploads"


class ServiceUnavailable(RequestRefused):
    code = "unavailable"


class DiskFull(RequestRefused):
    code = "disk_full"


class UrlRefused(RequestRefused):
    code = "url_refused"


class UrlFailed(UrlRefused):
    code = "url_failed"


class InvalidSetting(RequestRefused):
    code = "invalid_setting"


class InvalidBackup(RequestRefused):
    code = "invalid_backup"


class UnknownHost(RequestRefused):
    code = "unknown_host"


class Unauthorized(RequestRefused):
    code = "unauthorized"


class Forbidden(RequestRefused):
    code = "forbidden"


class ForeignOrigin(RequestRefused):
    code = "foreign_origin"


class SlowRequest(RequestRefused):
    code = "request_timeout"


class LongHeader(RequestRefused):
    code = "header_too_long"


class RunFailed(PrescoreError):
    code = "run_failed"


class UnusableCheckpoint(RunFailed):
    code = "invalid_checkpoint"


class PluginUnavailable(RunFailed):
    code = "plugin_unavailable"


class PluginFailed(RunFailed):
    code = "plugin_failed"


class SandboxUnavailable(RunFailed):
    code = "sandbox_unavailable"


class ConverterUnavailable(RunFailed):
    code = "converter_unavailable"


class UnusableDataset(RunFailed):
    code = "invalid_dataset"


class CheckpointMismatch(RunFailed):
    code = "checkpoint_mismatch"


class InvalidColumns(RunFailed):
    code = "invalid_columns"


class MetricFailed(RunFailed):
    code = "metric_failed"


class JavaFailed(MetricFailed):
    code = "java_failed"


class MetricUnavailable(MetricFailed):
    code = "unavailable"


class BlobUnreadable(RunFailed):
    """Unreadable object in the store. `digest`: the object that could not be read."""

    code = "blob_unreadable"

    def __init__(self, digest: str, detail: str) -> None:
        super().__init__(detail)
        self.digest = digest


class BlobMissing(BlobUnreadable):
    code = "blob_missing"


class BlobDamaged(BlobUnreadable):
    code = "blob_damaged"


class StoreUnavailable(RunFailed):
    code = "store_unavailable"


class WorkerLost(RunFailed):
    code = "worker_lost"


class TaskTimedOut(RunFailed):
    code = "timeout"


class OutOfMemory(RunFailed):
    code = "out_of_memory"


class RunCanceled(RunFailed):
    code = "canceled"
