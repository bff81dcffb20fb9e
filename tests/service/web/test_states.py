"""States that never leave a page blank: no answer, half of one, a lost module, a failing view."""

import json

import pytest

pytestmark = pytest.mark.processes

SLOW = "text=The service has not answered for 10 s; the page goes on waiting."


@pytest.fixture
def clocked(window):
    """A window whose clock is moved by the test alone."""
    page = window.page
    page.clock.install(time=0)
    page.clock.pause_at(1_000)  # else it goes on by itself, and slow machines are late
    yield window
    page.unroute_all(behavior="ignoreErrors")


class Hanging:
    """Requests to a place, which have no answer until `is_over`; those that the page gives up."""

    def __init__(self, page, place):
        self.asked, self.given_up, self.is_over = [], [], False
        page.route(place, self._answer)
        page.on("requestfailed", lambda request: self.given_up.append(request.url))

    def _answer(self, route):
        self.asked.append(route.request.url)
        if self.is_over:
            route.continue_()


def test_a_question_without_an_answer_is_told_and_waited_for(clocked):
    page = clocked.page
    hanging = Hanging(page, "**/v1/datasets/tiny/correlations*")
    clocked.open("/ui/datasets/tiny/test/pregen")
    page.wait_for_selector("[aria-busy]")
    page.clock.run_for(9_000)
    assert page.locator(SLOW).count() == 0
    page.clock.run_for(1_500)
    page.wait_for_selector(SLOW)
    page.clock.run_for(45_000)
    assert len(hanging.asked) == 1
    assert hanging.given_up == []
    hanging.is_over = True
    page.click("button:has-text('Retry')")
    page.wait_for_selector("[role=gridcell]")
    assert page.locator(SLOW).count() == 0
    assert page.locator("[aria-busy]").count() == 0


def test_after_a_minute_the_question_is_asked_again(clocked):
    page = clocked.page
    hanging = Hanging(page, "**/v1/datasets/tiny/correlations*")
    clocked.open("/ui/datasets/tiny/test/pregen")
    page.wait_for_selector("[aria-busy]")
    page.clock.run_for(60_200)
    page.wait_for_selector("[role=alert]:has-text('has not answered for 60 s')")
    assert len(hanging.given_up) == len(hanging.asked) == 1
    hanging.is_over = True
    page.clock.run_for(2_000)
    page.wait_for_selector("[role=gridcell]")
    assert page.locator("[role=alert]").count() == 0


def test_what_is_to_be_asked_for_again_has_been_waited_for_since_the_first_time(clocked):
    """Jobs asks for its workers every 5 s, where no answer is awaited."""
    page = clocked.page
    hanging = Hanging(page, "**/v1/workers")
    clocked.open("/ui/now")
    page.wait_for_selector("[aria-busy]")
    page.clock.run_for(10_500)
    page.wait_for_selector(SLOW)
    assert len(hanging.asked) == 1
    assert hanging.given_up == []


def test_a_refresh_waits_for_the_answer_in_flight_and_another_address_does_not(script):
    assert script("""
        const { resource } = await load("core/api");
        const { scope, signal } = await load("core/signals");
        const told = [];
        let respond = () => {};
        let heard = () => {};
        const send = window.fetch;
        const held = (url, { signal }) => new Promise((resolve, reject) => {
            told.push(`ask ${url}`);
            const giveUp = () => {
                told.push(`give up ${url}`);
                reject(signal.reason);
            };
            signal.addEventListener("abort", giveUp);
            respond = (found) => {
                signal.removeEventListener("abort", giveUp);
                resolve(new Response(JSON.stringify(found)));
            };
            heard();
        });
        window.fetch = (url, how) => (url.startsWith("/v1") ? send : held)(url, how);
        const answerUntilAsked = async (found) => {
            const again = new Promise((resolve) => (heard = resolve));
            respond(found);
            await again;
        };
        const where = signal("/a");
        const [{ answer: shown, refresh }, end] = scope(() => resource(() => where.value));
        refresh();
        refresh();
        await answerUntilAsked(1);
        told.push(shown.value);
        refresh();
        where.value = "/b";
        where.value = "/c";
        refresh();
        await answerUntilAsked(2);
        told.push(shown.value);
        refresh();
        end();
        return told;
    """) == [
        *("ask /a", "ask /a", 1, "give up /a", "ask /b", "give up /b", "ask /c", "ask /c", 2),
        "give up /c",
    ]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            {"status": 502, "content_type": "text/html", "body": "<html>\n<h1>Bad Gateway</h1>"},
            "status 502, “<html> <h1>Bad Gateway</h1>”",
        ),
        (
            {"status": 200, "content_type": "application/json", "body": '{"items": ['},
            'status 200, “{"items": [”',
        ),
        ({"status": 200, "content_type": "application/json", "body": ""}, "status 200, empty"),
    ],
    ids=["proxy", "half", "empty"],
)
def test_an_answer_that_is_not_json_is_told_as_such(clocked, answer, told):
    page = clocked.page
    clocked.expected.add("502")
    page.route("**/v1/datasets/tiny/correlations*", lambda route: route.fulfill(**answer))
    clocked.open("/ui/datasets/tiny/test/pregen")
    alert = page.locator("main [role=alert]")
    alert.wait_for()
    assert alert.inner_text() == f"The answer of /v1/datasets/tiny/correlations is not JSON: {told}"
    assert page.locator("main h1").count() == 1  # markup is text
    page.unroute_all(behavior="ignoreErrors")
    page.clock.run_for(2_000)
    page.wait_for_selector("[role=gridcell]")


def test_a_view_that_throws_while_it_is_drawn_says_so(window):
    page = window.page
    window.expected.add("is not a function")
    odd = json.dumps({"study": {"metrics": {"cider_d": {"correlations": 7}}}, "none_because": None})
    page.route(
        "**/v1/datasets/tiny/correlations*",
        lambda route: route.fulfill(content_type="application/json", body=odd),
    )
    window.open("/ui/datasets/tiny/test/pregen")
    page.wait_for_selector("[role=alert]:has-text('This view could not be drawn: ')")
    assert page.locator("nav.tabs").is_visible()  # what does not fail is there
    page.unroute_all()
    page.click("text=Load the page anew")
    page.wait_for_selector("[role=gridcell]")
    assert page.locator("[role=alert]").count() == 0


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("export function jobs() { throw new Error('no <b>luck</b>'); }", "no <b>luck</b>"),
        ("export const jobs = 7;", "make is not a function"),
    ],
)
def test_a_view_that_cannot_be_made_says_so_and_leads_home(window, script, told):
    page = window.page
    window.expected |= {"luck", "is not a function"}
    page.route(
        "**/views/jobs.js",
        lambda route: route.fulfill(content_type="text/javascript", body=script),
    )
    window.open("/ui/now")
    alert = page.locator("[role=alert]")
    alert.wait_for()
    assert f"This view could not be drawn: {told}" in alert.inner_text()
    alert.locator("a:has-text('Home')").click()
    page.wait_for_selector("nav [aria-current=page]:has-text('Home')")
    page.wait_for_selector("main h1:text-is('Home')")
    assert page.locator("[role=alert]").count() == 0


def test_a_module_that_is_lost_has_its_own_words(window):
    page = window.page
    window.expected |= {"ERR_FAILED", "500"}
    page.route("**/views/jobs.js", lambda route: route.abort())
    page.route("**/views/finder.js", lambda route: route.fulfill(status=500))
    window.open("/ui/now")
    page.wait_for_selector("h1:has-text('This view could not be loaded')")
    page.keyboard.press("Control+k")
    page.wait_for_selector("text=The finder could not be loaded.")
    page.unroute_all()
    page.click("main >> text=Load the page anew")
    page.wait_for_selector("h1:text-is('Jobs')")


def test_all_are_drawn_at_once(script):
    """Nothing is drawn as long as one has no answer, and each of two refusals is told."""
    found = script("""
        const { allNeeded } = await load("parts/states");
        const { signal } = await load("core/signals"), { h, append } = await load("core/dom");
        const resource = () => ({ answer: signal(null), refused: signal(null),
            isSlow: signal(false), retry: () => {} });
        const [a, b] = [resource(), resource()];
        let drawn = 0;
        const made = h("div");
        append(made, [allNeeded([a, b], () => {
            drawn += 1;
            return h("b", () => `${a.answer.value}+${b.answer.value}`);
        })]);
        const seen = [];
        const many = (those) => made.querySelectorAll(those).length;
        const look = () => seen.push([made.querySelector("b")?.textContent ?? null,
            many("[aria-busy]"), many("[role=alert]")]);
        look();
        a.answer.value = 1; look();
        b.refused.value = { status: 500, message: "no", fields: [] }; look();
        b.refused.value = null; b.answer.value = 2; look();
        a.answer.value = 3; look();
        return [seen, drawn];
    """)
    assert found == [
        [[None, 1, 0], [None, 1, 0], [None, 0, 1], ["1+2", 0, 0], ["3+2", 0, 0]],
        1,
    ]
