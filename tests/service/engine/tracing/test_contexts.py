"""Which header is taken for a trace's."""

import pytest

from service.engine.tables import task_rows
from service.engine.tracing import contexts

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
GOOD = f"00-{TRACE}-{SPAN}-01"


def test_a_traceparent_is_read_and_written_as_it_was():
    found = contexts.parse_traceparent(GOOD)
    assert (found.trace, found.span, found.flags) == (int(TRACE, 16), int(SPAN, 16), 1)
    assert str(found) == GOOD
    assert len(GOOD) == contexts.LENGTH == task_rows.c.traceparent.type.length


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        f"ff-{TRACE}-{SPAN}-01",
        f"01-{TRACE}-{SPAN}-01",  # another version's fields may mean something else
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        GOOD.upper(),
        f" {GOOD}",
        f"{GOOD}\n",
        f"{GOOD}-more",
        GOOD[:-1],
        GOOD.replace("-", "_"),
        GOOD.replace("0", "٠"),  # another alphabet's digit
        GOOD.replace("a", "g"),
        "0" * 10_000_000,
    ],
)
def test_nothing_else_is(text):
    assert contexts.parse_traceparent(text) is None


def test_outside_a_request_there_is_none_and_inside_it_ends_with_it():
    assert contexts.get_traceparent() is None
    with contexts.use_traceparent(GOOD):
        assert contexts.get_traceparent() == GOOD
    assert contexts.get_traceparent() is None
