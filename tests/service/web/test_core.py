"""What all views stand on, by itself: values that tell who reads them, lists by keys, and how
names, numbers and plots are made.
"""

import json

import pytest

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def core(script):
    """A function that runs a script with the modules `signals` and `dom`."""
    return lambda own: script(f"""
        const signals = await load("core/signals"), dom = await load("core/dom");
        const {{ signal, computed, effect, batch, scope, onEnd, unread }} = signals;
        {own}
    """)


def test_an_effect_runs_once_for_each_change_of_what_it_reads(core):
    assert core("""
        const a = signal(1), b = signal(10), seen = [];
        effect(() => seen.push(a.value + (a.value > 1 ? b.value : 0)));
        b.value = 20;            // not read yet
        a.value = 1;             // the same
        a.value = 2;
        b.value = 30;
        batch(() => { a.value = 3; b.value = 40; });
        return seen;
    """) == [1, 22, 32, 43]


def test_a_value_reached_in_two_ways_is_computed_once_a_change_and_never_of_older_ones(core):
    assert core("""
        const a = signal(1), seen = [];
        let times = 0;
        const left = computed(() => a.value + 1), right = computed(() => left.value * 10);
        const both = computed(() => { times += 1; return left.value + right.value; });
        effect(() => seen.push(`${a.value}/${both.value}`));
        a.value = 2;
        batch(() => { a.value = 3; a.value = 4; });
        return [seen, times];
    """) == [["1/22", "2/33", "4/55"], 3]


def test_equal_values_are_told_to_nobody(core):
    assert core("""
        const a = signal(1), told = [];
        const odd = computed(() => a.value % 2);
        const named = computed(() => { told.push("named"); return odd.value ? "odd" : "even"; });
        effect(() => told.push(named.value));
        effect(() => told.push(odd.value));
        a.value = 3;
        return told;
    """) == ["named", "odd", 1]


def test_a_computed_value_that_is_not_read_is_not_computed(core):
    assert core("""
        const a = signal(1), told = [];
        const next = computed(() => { told.push(a.value); return a.value + 1; });
        a.value = 2; a.value = 3;
        const before = told.length;
        const found = [next.peek(), next.value];
        batch(() => { a.value = 4; found.push(next.value); });
        a.value = 5;
        return [before, found, told];
    """) == [0, [4, 4, 5], [3, 4]]


def test_a_computed_value_keeps_its_last_value_after_its_end(core):
    assert core("""
        const a = signal(1);
        const same = () => computed(() => a.value);
        const [[read, never], end] = scope(() => [same(), same()]);
        const found = [read.value];
        end();
        a.value = 2;
        found.push(read.value, never.value);
        return found;
    """) == [1, 1, 2]


def test_an_effect_that_is_ended_while_it_runs_leaves_nothing_behind(core):
    assert core("""
        const a = signal(1), told = [];
        const [, end] = scope(() => effect(() => {
            if (a.value === 2) end();
            told.push(`outer ${a.value}`);
            onEnd(() => told.push("over"));
            effect(() => told.push(`inner ${a.value}`));
        }));
        told.length = 0;
        a.value = 2;
        a.value = 3;
        return told;
    """) == ["over", "outer 2", "inner 2", "over"]


def test_what_an_effect_is_about_to_end_does_not_run_before_it(core):
    assert core("""
        const run = signal({ name: "a" }), seen = [];
        const isThere = computed(() => run.value !== null);
        effect(() => {
            if (!isThere.value) return seen.push("none");
            effect(() => seen.push(run.value.name));
        });
        run.value = { name: "b" };
        run.value = null;
        return seen;
    """) == ["a", "b", "none"]


def test_an_error_of_a_computed_value_is_told_to_its_readers_and_passes(core):
    assert core("""
        const a = signal(1), seen = [];
        const half = computed(() => {
            if (a.value % 2) throw new Error(`odd ${a.value}`);
            return a.value / 2;
        });
        effect(() => {
            try { seen.push(half.value); } catch (error) { seen.push(error.message); }
        });
        a.value = 2; a.value = 3;
        return seen;
    """) == ["odd 1", 1, "odd 3"]


def test_computed_values_that_depend_on_each_other_are_an_error(core):
    assert core("""
        const on = signal(false), seen = [];
        const one = computed(() => on.value ? other.value : 1);
        const other = computed(() => one.value + 1);
        seen.push(other.value);
        try { on.value = true; seen.push(other.value); } catch (error) { seen.push(error.message); }
        const a = signal(1), own = computed(() => { a.value += 1; return a.value; });
        try { seen.push(own.value); } catch (error) { seen.push(error.message); }
        return seen;
    """) == [
        2,
        "a computed value that depends on itself",
        "a computed value that changes what it reads",
    ]


def test_what_an_effect_has_made_ends_when_it_runs_again_and_with_its_scope(core):
    assert core("""
        const a = signal(1), told = [];
        const [, end] = scope(() => effect(() => {
            const now = a.value;
            effect(() => told.push(`inner ${now} ${a.value}`));
            onEnd(() => told.push(`end ${now}`));
        }));
        a.value = 2;
        end();
        a.value = 3;
        return told;
    """) == ["inner 1 1", "end 1", "inner 2 2", "end 2"]


def test_what_is_only_looked_at_is_not_followed(core):
    assert core("""
        const a = signal(1), b = signal(1), seen = [];
        effect(() => seen.push(a.value + unread(() => b.value) + b.peek()));
        b.value = 5;
        a.value = 2;
        return seen;
    """) == [3, 12]


def test_an_effect_that_fails_leaves_the_others_alone(core):
    assert core("""
        const a = signal(1), seen = [];
        effect(() => { if (a.value === 2) throw new Error("no"); });
        effect(() => seen.push(a.value));
        try { a.value = 2; } catch (error) { seen.push(error.message); }
        a.value = 3;
        return seen;
    """) == [1, 2, "no", 3]


def test_signals_that_change_each_other_without_end_are_told(core):
    assert "without end" in core("""
        const a = signal(0);
        try { effect(() => { a.value = a.value + 1; }); } catch (error) { return error.message; }
    """)


def test_rows_keep_their_elements_while_their_keys_stay(core):
    assert core("""
        const list = signal([1, 2, 3]);
        const parent = dom.h("ul", {}, dom.each(() => list.value, (n) => n,
            (item) => dom.h("li", {}, () => item())));
        const [one, two, three] = parent.children;
        list.value = [3, 1, 4];
        const now = [...parent.children];
        return [parent.textContent, now[0] === three, now[1] === one, two.isConnected];
    """) == ["314", True, True, False]


def test_rows_that_stay_go_on_following_what_they_read(core):
    assert core("""
        const list = signal([{ id: 1, n: 1 }]), factor = signal(1);
        const [parent, end] = scope(() => dom.h("ul", dom.each(() => list.value, ({ id }) => id,
            (item) => dom.h("li", () => `${item().n * factor.value} `))));
        const seen = [];
        const look = () => seen.push(parent.textContent);
        list.value = [{ id: 1, n: 2 }, { id: 2, n: 5 }]; look();
        list.value = [{ id: 2, n: 6 }, { id: 1, n: 3 }]; look();
        factor.value = 10; look();
        list.value = [{ id: 1, n: 4 }]; look();
        end();
        factor.value = 100; look();
        return seen;
    """) == ["2 5 ", "6 3 ", "60 30 ", "40 ", "40 "]


def test_a_part_that_is_made_again_takes_its_rows_with_it(core):
    assert core("""
        const shown = signal(true), list = signal([1]);
        const parent = dom.h("div", {}, () => shown.value && dom.each(() => list.value, (n) => n,
            (item) => dom.h("i", {}, () => item())), "!");
        list.value = [1, 2];
        const before = parent.textContent;
        shown.value = false;
        const between = parent.textContent;
        list.value = [3];
        shown.value = true;
        return [before, between, parent.textContent];
    """) == ["12!", "!", "3!"]


def test_text_is_text_and_no_attribute_is_markup(core):
    assert core("""
        const more = { title: "<b>", class: ["a", false, "b"], hidden: false };
        const made = dom.h("p", more, "<i>x</i>", 0);
        return [made.outerHTML, made.children.length];
    """) == ['<p title="&lt;b&gt;" class="a b">&lt;i&gt;x&lt;/i&gt;0</p>', 0]


def test_words_that_stand_in_the_place_of_others_are_counted(script):
    assert script("""
        const words = await load("parts/words");
        const [red, blue] = [[["red", "blue"]], [["blue", "red"]]];
        const two = [["cat", "dog"], ["one", "two"]];
        const pairs = [red, red, blue, red, two, [["one", "two"]], [], [["<b>", "<i>"]], two, blue];
        const marked = words.differing("Red <b> x", "red y").filter((each) => each instanceof Node);
        return [words.countExchanges(pairs, 2), marked.map((each) => each.textContent)];
    """) == [[["one", "two", 3], ["cat", "dog", 2]], ["b", "x"]]


def test_words_are_marked_wherever_they_stand_whole(script):
    assert script("""
        const { marked } = await load("parts/words");
        const { h } = await load("core/dom");
        const text = "A <b>Straße, a strasse; men's MEN men_s";
        const mark = (word) => h("mark", word);
        const made = h("p", marked(text, ["straße", "men's", "men", "b"], mark));
        return [made.textContent, [...made.children].map((each) => each.textContent)];
    """) == ["A <b>Straße, a strasse; men's MEN men_s", ["b", "Straße", "men's", "MEN", "men"]]


def test_equal_names_are_told_apart_by_the_commit_the_time_or_the_id(script):
    rows = [
        ("ev_1", {"branch": "dev"}, "2026-01-02T03:04:05Z", "dev, 2026-01-02 03:04 UTC"),
        ("ev_2", {"branch": "dev"}, "2026-01-02T03:05:05Z", "dev, 2026-01-02 03:05 UTC"),
        ("ev_3", {"name": "a", "commit": "1234567890"}, "2026-01-02T03:04:05Z", "a, 1234567"),
        ("ev_4", {"name": "a", "commit": "abc"}, "2026-01-02T03:04:05Z", "a, abc"),
        ("ev_5", {"file": "b"}, "2026-01-02T03:04:05Z", "b, 5"),
        ("ev_6", {"file": "b"}, "2026-01-02T03:04:06Z", "b, 6"),
        ("ev_7", {"file": "c"}, "2026-01-02T03:04:05Z", "c"),
        ("ev_7", {"file": "c"}, "2026-01-02T03:04:05Z", "c"),
    ]
    items = [
        {"id": id_, "labels": labels, "created_at": created_at}
        for id_, labels, created_at, _ in rows
    ]
    found = script(f"""
        const names = await load("parts/names");
        return Object.fromEntries(names.distinctNames({json.dumps(items)}));
    """)
    assert found == {id_: name for id_, _, _, name in rows}


def test_names_with_numbers_are_in_their_natural_order(script):
    assert script("""
        const { byName } = await load("parts/names");
        return ["run10", "Run3", "run2", "run1"].sort(byName);
    """) == ["run1", "run2", "Run3", "run10"]


def test_the_label_that_names_an_evaluation(script):
    named = {
        "warm, step 3": {"run": "warm", "step": "3", "file": "a.pt"},
        "ours": {"name": "ours", "file": "a.pt", "branch": "dev"},
        "a.pt": {"file": "a.pt", "branch": "dev"},
        "dev, 1f2e": {"branch": "dev", "commit": "1f2e"},
        "who: me": {"who": "me"},
        "": {},
    }
    assert script(f"""
        const names = await load("parts/names");
        return {json.dumps(list(named.values()))}.map(names.nameOf);
    """) == list(named)


def test_digits_of_numbers(script):
    """What is zero but for rounding is zero."""
    assert script("""
        const { number, interval } = await load("parts/numbers");
        const shown = [6.67e-17, -6.67e-17, -0.0004, 0.0007, 0, -0.25, 1234.5, 2e6, null];
        const product = "mean_mean_prob_none";
        const shorter = interval([-1e-18, 0.5]);
        return [shown.map((each) => number(each)), number(3.2e-9, product), shorter];
    """) == [
        ["0.000", "0.000", "0.000", "0.001", "0.000", "−0.250", "1,235", "2.00e+6", "–"],
        "3.20e-9",
        "[0.000, 0.500]",
    ]


def test_ranges_of_plots_leave_out_what_crushes_them(script):
    lists = {
        (0.6, 0.62, 2.0): [0.6, 0.62],
        (1000, 100, 20, 12, 10, 9, 8.5): [8.5, 20],
        (0, 0.1, 0.3, 0.5, 0.7, 1, 2, 9): [0, 2],
        (0, 0.1, 0.3, 0.5, 0.7, 1, 2, 5.5): [0, 5.5],
        (0.5, 0.5, 0.5, 7): [0.5, 7],
        (0.4,): [0.4, 0.4],
        (): [0, 1],
    }
    assert script(f"""
        const scale = await load("plots/scale");
        return {json.dumps(list(lists))}.map(scale.usualExtent);
    """) == list(lists.values())


def test_an_outlier_does_not_crush_the_images_of_a_comparison(script):
    found = script("""
        const { scatter } = await load("plots/scatter");
        const points = Array.from({ length: 9 }, (_, at) => ({ x: at, y: 9 - at }));
        let chosen = null;
        const made = scatter([...points, { x: 500, y: 4, name: "far" }], {
            xName: "B", yName: "A", name: "A against B", what: "images",
            choose: (corners) => { chosen = corners; },
        });
        document.querySelector("main").replaceChildren(made);
        const plot = made.querySelector("svg"), box = plot.getBoundingClientRect();
        const send = (name, x, y) => plot.dispatchEvent(new PointerEvent(name, {
            clientX: box.left + x * box.width, clientY: box.top + y * box.height, button: 0,
        }));
        send("pointerdown", 0.5, 0.01);
        send("pointerup", 1, 1);
        const across = (one) => one.cx.baseVal.value;
        const [first, , , , , , , , last] = made.querySelectorAll("circle:not(.away)");
        return [across(last) - across(first), made.querySelectorAll(".away").length,
            made.textContent, chosen[0] > 0 && chosen[1] > 500];
    """)
    assert found[0] > 200
    assert found[1] == 1
    assert "Outside the scale, and drawn hollow at its edge: 1 of 10." in found[2]
    assert found[3], "a rectangle to the edge does not hold what lies beyond"
