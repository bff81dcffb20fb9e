"""Every error of ours, in two branches by *when* things go wrong.

    PrescoreError
    ├── RequestRefused               nothing was started; the caller must change the request
    │   ├── InvalidCheckpoint        header, metadata, config or vocabulary are wrong:
    │   │   ├── HeaderTruncated      the file ends before its header does
    │   │   ├── HeaderTooLarge       a length, count or text beyond our caps
    │   │   ├── HeaderMalformed      not the JSON that a safetensors header must be
    │   │   ├── TensorLayout         holes, overlaps, sizes that do not add up
    │   │   ├── TensorMismatch       a tensor missing, unknown or of another shape
    │   │   ├── MetadataInvalid      a metadata entry missing or of an unknown value
    │   │   ├── ConfigInvalid        `config` or `encoder` does not follow its schema
    │   │   └── VocabularyInvalid    the word list is not one
    │   ├── InvalidBundle            a dataset bundle, with line and field
    │   ├── UnknownMetric            with the nearest names
    │   └── InvalidSetting           an environment variable or a flag
    └── RunFailed                    a run began and could not end; stored as data
        ├── UnusableCheckpoint       the tensors' values (not finite, cut off)
        ├── UnusableDataset          features that are missing, not finite or of another size
        ├── CheckpointMismatch       checkpoint and dataset do not belong together
        ├── InvalidColumns           columns that contradict themselves
        └── Canceled                 somebody asked to stop

An error knows nothing of HTTP: workers raise them too.
"""

from typing import ClassVar


class PrescoreError(Exception):
    """`detail` says what was expected, what was found and what to do; `pointer` says where."""

    code: ClassVar[str]

    def __init__(self, detail: str, *, pointer: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.pointer = pointer


class RequestRefused(PrescoreError):
    code = "refused"


class InvalidCheckpoint(RequestRefused):
    code = "invalid_checkpoint"


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


class UnknownMetric(RequestRefused):
    code = "unknown_metric"


class InvalidSetting(RequestRefused):
    code = "invalid_setting"


class RunFailed(PrescoreError):
    code = "run_failed"


class UnusableCheckpoint(RunFailed):
    code = "invalid_checkpoint"


class UnusableDataset(RunFailed):
    code = "invalid_dataset"


class CheckpointMismatch(RunFailed):
    code = "checkpoint_mismatch"


class InvalidColumns(RunFailed):
    code = "invalid_columns"


class Canceled(RunFailed):
    code = "canceled"
