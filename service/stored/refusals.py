"""By which error a file is refused whose judging takes too much time or memory."""

from collections.abc import Mapping

from service.contract.errors import ColumnsRefused, HeaderTooLarge, RequestRefused

TOO_MUCH: Mapping[str, type[RequestRefused]] = {  # by question; of all others, InvalidBundle
    "checkpoint": HeaderTooLarge,
    "columns header": ColumnsRefused,
    "columns": ColumnsRefused,
    "columns of a split": ColumnsRefused,
}
