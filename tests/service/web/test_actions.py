"""What one does from the page: score files, stop, rename and delete evaluations."""

import itertools
import json

import pytest

from helpers import page_runs
from helpers.fleet import checkpoint
from helpers.page_runs import submitted

pytestmark = pytest.mark.processes
_NUMBERS = itertools.count(100)
# Milliseconds. This service scores before it answers, and METEOR's process may have to start first.
FIRST_SCORE = 120_000


def _get(service, path):
    with service.client() as client:
        return client.get(path)


def _choose(page, name, content):
    """Gives this file to the view's place for files."""
    file = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    page.locator(".drop-place, .drop").first.scroll_into_view_if_needed()  # it is loaded then
    page.get_by_label("Captions or a model").set_input_files(file)


def _drop(page, name, text):
    page.evaluate(
        """([name, text]) => {
            const files = new DataTransfer();
            files.items.add(new File([text], name));
            const how = { dataTransfer: files, bubbles: true, cancelable: true };
            document.querySelector(".drop").dispatchEvent(new DragEvent("drop", how));
        }""",
        [name, text],
    )


def _newest(service):
    return next(iter(_get(service, "/v1/evaluations?limit=1").json()["items"]), {"id": None})


def _unscored():
    """Captions of which nothing is computed yet."""
    caption = f"w1 w{next(_NUMBERS)}"
    return {"captions": [{**each, "caption": caption} for each in page_runs.CAPTIONS]}


def test_captions_are_looked_at_before_they_are_scored(window, service):
    captions = [{**each, "caption": "w2 w9"} for each in page_runs.CAPTIONS]
    text = "\n".join(json.dumps(each) for each in captions[:-2])
    page = window.open("/ui/datasets/tiny/test/dataset")
    before = _newest(service)["id"]
    _drop(page, "dropped.jsonl", text)
    shown = page.get_by_role("group", name="Score dropped.jsonl")
    shown.get_by_text("38 of 40 of tiny/test").wait_for()
    shown.get_by_text("Without a caption: 38.jpg, 39.jpg").wait_for()
    assert _newest(service)["id"] == before, "nothing is scored before it is asked for"
    page.get_by_role("button", name="Score 38 captions").click()
    page.wait_for_url("**/ui/evaluations/ev_*", timeout=FIRST_SCORE)
    page.wait_for_selector("h1:has-text('dropped.jsonl')")
    made = _newest(service)
    assert page.url.endswith(made["id"])
    page.wait_for_selector("dd .badge.succeeded")
    items = _get(service, f"/v1/evaluations/{made['id']}/captions?limit=100").json()["items"]
    assert [each["image"] for each in items] == [each["image"] for each in captions[:-2]]


def test_a_file_of_another_split_is_not_sent(window):
    page = window.open("/ui/datasets/tiny/test/dataset")
    _choose(page, "other.json", json.dumps([{"image": "elsewhere.jpg", "caption": "a"}]).encode())
    page.get_by_text("1 image is not in this split: elsewhere.jpg").wait_for()
    assert page.get_by_role("button", name="Score 1 caption").is_disabled()


def test_a_file_that_cannot_be_read_is_told_in_the_readers_words(window):
    window.expected.add("422")
    page = window.open("/ui/datasets/tiny/test/dataset")
    _choose(page, "broken.json", b"[{")
    page.get_by_role("group", name="Score broken.json").get_by_role("alert").wait_for()
    assert page.locator(".drop").count() == 0  # what is chosen stands in its place
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("group", name="Score broken.json").wait_for(state="detached")
    page.locator(".drop").wait_for()


def test_a_file_is_scored_from_home_in_three_clicks(window, service):
    """The first two choose the file and its split; what would be scored is told before the last."""
    own = [{**each, "caption": "w5 w6 w8"} for each in page_runs.CAPTIONS[:1]]
    page = window.open("/")
    page.locator(".drop-place").scroll_into_view_if_needed()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a file").click()
    content = json.dumps(own).encode()
    file = {"name": "one.json", "mimeType": "application/json", "buffer": content}
    chooser.value.set_files(file)
    shown = page.get_by_role("group", name="Score one.json")
    shown.wait_for()
    assert shown.evaluate("each => each === document.activeElement")
    shown.get_by_label("On").select_option("tiny/test")
    shown.get_by_text("1 of 40 of tiny/test").wait_for()
    send = shown.get_by_role("button", name="Score 1 caption")
    page.wait_for_function(
        "button => button.getBoundingClientRect().bottom <= innerHeight", arg=send.element_handle()
    )
    send.click()
    page.wait_for_url("**/ui/evaluations/ev_*", timeout=FIRST_SCORE)
    page.wait_for_selector("h1:has-text('one.json')")


def test_a_model_is_uploaded_described_and_scored(window, service):
    page = window.open("/")
    _choose(page, "model.safetensors", checkpoint(21))
    shown = page.get_by_role("group", name="Score model.safetensors")
    shown.get_by_label("On").select_option("tiny/test")
    page.get_by_role("button", name="Upload it").click()
    page.get_by_role("button", name="Score it on tiny/test").click()
    page.wait_for_url("**/ui/evaluations/ev_*")
    made = _newest(service)
    assert made["labels"] == {"file": "model.safetensors"}
    assert made["checkpoint"] is not None


def test_a_file_that_is_no_model_is_refused(window):
    window.expected |= {"400", "415", "422"}
    page = window.open("/")
    _choose(page, "model.bin", b"no model" * 100)
    page.get_by_role("button", name="Upload it").click()
    page.get_by_role("group", name="Score model.bin").get_by_role("alert").wait_for()


def test_an_evaluation_is_renamed_and_gets_a_note(window, service):
    with service.client() as client:
        made = submitted(client, labels={"file": "old.json", "who": "me", "gone": "1"})
    page = window.open(f"/ui/evaluations/{made}")
    page.get_by_role("button", name="Edit").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("new.json")
    dialog.get_by_label("Note").fill("<b>bold</b>")
    dialog.get_by_role("button", name="Remove the label gone").click()
    dialog.get_by_role("button", name="Add a label").click()
    dialog.get_by_label("Label", exact=True).last.fill("team")
    dialog.get_by_label("Value of the label").fill("vision")
    dialog.get_by_role("button", name="Save").click()
    page.wait_for_selector("h1:has-text('new.json')")
    page.get_by_text("<b>bold</b>").wait_for()
    run = _get(service, f"/v1/evaluations/{made}").json()
    assert run["labels"] == {"file": "new.json", "who": "me", "team": "vision"}
    assert run["note"] == "<b>bold</b>"


def test_an_evaluation_is_deleted_once_its_name_is_typed(window, service):
    with service.client() as client:
        made = submitted(client, labels={"file": "to go.json"})
    page = window.open(f"/ui/evaluations/{made}")
    page.wait_for_selector("dd .badge.succeeded")
    page.get_by_role("button", name="Delete…").click()
    dialog = page.get_by_role("dialog")
    button = dialog.get_by_role("button", name="Delete it")
    field = dialog.get_by_label("Type its name to delete it")
    field.fill("to go")
    assert button.is_disabled()
    assert _get(service, f"/v1/evaluations/{made}").status_code == 200
    field.fill("to go.json")
    button.click()
    page.wait_for_url("**/ui/datasets/tiny/test")
    page.locator("[role=status]").get_by_text("Deleted to go.json.").wait_for()
    assert _get(service, f"/v1/evaluations/{made}").status_code == 404


def test_what_an_unfinished_run_needs_is_not_deleted(window, service):
    window.expected.add("409")
    with service.client() as client:
        made = submitted(client, labels={"file": "baseline.json"})
    page = window.open(f"/ui/evaluations/{made}")
    page.get_by_role("button", name="Delete…").click()
    page.get_by_label("Type its name to delete it").fill("baseline.json")
    with service.client() as client, service.held():
        labels = {"file": "needs it"}
        submitted(
            client, baseline=made, gates=["cider_d >= baseline"], labels=labels, **_unscored()
        )
        page.get_by_role("button", name="Delete it").click()
        page.get_by_role("dialog").get_by_role("alert").wait_for()
    page.keyboard.press("Escape")
    page.wait_for_selector("h1:has-text('baseline.json')")


def test_what_is_typed_is_not_lost_by_one_escape(window, service):
    with service.client() as client:
        made = submitted(client, labels={"file": "draft.json"})
    page = window.open(f"/ui/evaluations/{made}")
    dialog = page.get_by_role("dialog")
    for leave in (lambda: page.keyboard.press("Escape"), dialog.get_by_text("Cancel").click):
        page.get_by_role("button", name="Edit").click()
        dialog.get_by_label("Note").fill("half a thought")
        leave()
        dialog.get_by_role("alert").get_by_text("The changes are not saved.").wait_for()
        assert dialog.get_by_label("Note").input_value() == "half a thought"
        dialog.get_by_role("button", name="Discard changes").click()
        dialog.wait_for(state="detached")
    page.get_by_role("button", name="Edit").click()
    assert dialog.get_by_label("Note").input_value() == ""
    page.keyboard.press("Escape")  # nothing is lost
    dialog.wait_for(state="detached")


def test_a_note_is_shown_before_its_evaluation_is_deleted(window, service):
    with service.client() as client:
        made = submitted(client, labels={"file": "noted.json"})
        client.patch(f"/v1/evaluations/{made}", json={"note": "ask <b>me</b> first"})
    page = window.open(f"/ui/evaluations/{made}")
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("dialog").get_by_text("ask <b>me</b> first").wait_for()
    buttons = page.locator("dialog .ends button")
    assert buttons.all_inner_texts() == ["Cancel", "Delete it"]
    buttons.first.click()
    page.get_by_role("dialog").wait_for(state="detached")
    assert _get(service, f"/v1/evaluations/{made}").status_code == 200


def test_an_evaluation_is_stopped(window, service):
    """A double click stops nothing, wherever its second half lands."""
    with service.client() as client, service.held():
        waiting = submitted(client, labels={"file": "is stopped"}, **_unscored())
        page = window.open(f"/ui/evaluations/{waiting}")
        stop = page.get_by_role("button", name="Stop this evaluation")
        dialog = page.get_by_role("dialog")
        stop.dblclick()
        confirm = dialog.get_by_role("button", name="Stop it")
        confirm.dispatch_event("click", {"detail": 2})
        assert confirm.is_visible()
        page.keyboard.press("Escape")
        dialog.wait_for(state="detached")
        stop.click()
        dialog.get_by_role("button", name="Cancel").click()
        dialog.wait_for(state="detached")
        assert _get(service, f"/v1/evaluations/{waiting}").json()["status"] != "canceled"
        stop.click()
        confirm.click()
        page.wait_for_selector("dd .badge.canceled")
        page.locator("[role=status]").get_by_text("Stopped this evaluation.").wait_for()
        dialog.wait_for(state="detached")
    assert _get(service, f"/v1/evaluations/{waiting}").json()["status"] == "canceled"


def test_a_dialog_ends_with_its_view(window, service):
    with service.client() as client:
        made = submitted(client, labels={"file": "left.json"})
    page = window.open("/ui/now")
    page.evaluate(f"history.pushState(null, '', '/ui/evaluations/{made}')")
    page.reload()
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("dialog").wait_for()
    page.evaluate("history.back()")
    page.wait_for_selector("h1:text-is('Jobs')")
    page.get_by_role("dialog").wait_for(state="detached")
