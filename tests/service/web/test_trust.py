"""Which metric to trust, and the map of pre-gen metrics, against what the interface tells."""

import pytest

import prescore
from helpers import shape_trainings
from helpers.fleet import bundle, upload
from helpers.page_runs import submitted
from helpers.page_views import read_answer
from helpers.stored_records import enter_trainings
from service.stored import datasets
from workers.lab import shapes

pytestmark = pytest.mark.processes


def _cells(region):
    """The texts of a table's cells, by the text of each row's head."""
    return {
        row.locator("th").inner_text(): [cell.inner_text() for cell in row.locator("td").all()]
        for row in region.locator("tbody tr").all()
    }


def _made_up_study(metrics):
    """An answer of the interface with these correlations, each a Spearman's and an R²."""
    found = [
        {
            "place": at,
            "metric": metric,
            "r": 0.1,
            "r2": r2,
            "p": 0.5,
            "spearman": spearman,
            "spearman_p": 0.0004,
            "models": 14,
        }
        for at, (metric, (spearman, r2)) in enumerate(metrics.items(), 1)
    ]
    meteor = {"rows": 9, "of_images": None, "reason": "all scores are equal", "correlations": []}
    return {
        "dataset": {"name": "tiny", "version": "v1", "digest": "sha256:0", "split": "test"},
        "study": {
            "idf": "dataset",
            "evaluations": [f"ev_{at}" for at in range(14)],
            "left_out": [],
            "rows": 70,
            "pregen": {"remain": 495, "constant": [], "equal": {}},
            "metrics": {
                "cider_d": {"rows": 70, "of_images": 0.226, "reason": None, "correlations": found},
                "meteor": meteor,
            },
            "finished_at": "2026-01-01T00:00:00Z",
        },
        "under_way": None,
        "none_because": None,
    }


def test_the_strongest_predictors_of_models_come_first(window):
    """Whatever is first on images; a reversed order is as good as the same."""
    page = window.page
    strengths = {
        f"mean_max_count_filter{at}": (at / 20 * (-1) ** at, 1 - at / 20) for at in range(13)
    }
    answer = _made_up_study(strengths)
    page.route("**/v1/datasets/tiny/correlations*", lambda route: route.fulfill(json=answer))
    window.open("/ui/datasets/tiny/test/trust")
    table = page.get_by_role("region", name="Predictors of CIDEr-D")
    table.wait_for()
    rows = _cells(table)
    assert list(rows) == [f"mean_max_count_filter{at}" for at in range(12, 2, -1)]
    assert rows["mean_max_count_filter11"] == ["−0.550", "0.450"]
    told = "mean_max_count_filter12 predicts CIDEr-D best here (Spearman +0.600 over 14 models)"
    assert told in page.inner_text(".lead").replace("\u00a0", " ")
    assert "Differences between images make 23 % of the variance of CIDEr-D" in page.inner_text(
        "main"
    )
    page.click("[aria-label='Metric to predict'] button:text-is('METEOR')")
    page.wait_for_selector("section >> text=all scores are equal")
    assert "target=meteor" in page.url


def test_a_head_is_explained_by_keys(window):
    page = window.page
    answer = _made_up_study({"mean_max_count_filter0": (0.5, 0.2)})
    page.route("**/v1/datasets/tiny/correlations*", lambda route: route.fulfill(json=answer))
    window.open("/ui/datasets/tiny/test/trust")
    page.locator("th button:text-is('Agreement on models (Spearman)')").focus()
    page.keyboard.press("Enter")
    popover = page.get_by_role("dialog", name="Agreement on models (Spearman)")
    popover.wait_for()
    assert "Spearman" in popover.inner_text()
    page.keyboard.press("Escape")
    popover.wait_for(state="hidden")


def test_probes_are_started_followed_and_read(window, service):
    with service.client() as client:
        assert client.put("/v1/datasets/fresh", content=bundle(6, seed=3)).status_code == 201
    page = window.open("/ui/datasets/fresh/test/trust")
    page.wait_for_selector("section[aria-label='Captions of known quality'] >> text=No probes have")
    started = page.locator(".started[data-kind=probes]")
    with service.held():
        page.click("text=Run the probes")
        started.locator(".badge.queued").wait_for()
        assert started.locator("progress").get_attribute("aria-label").startswith("0 of ")
        assert page.locator("button:text-is('Run the probes')").is_disabled()
    started.locator(".badge").wait_for(state="detached")
    summary = page.locator("summary:has-text('People against other people')")
    summary.wait_for()
    made = read_answer(service, "/v1/probes?dataset=fresh/test&limit=1")["items"][0]["id"]
    told = read_answer(service, f"/v1/probes/{made}")
    rows = _cells(page.get_by_role("region", name="Health of metrics"))
    assert next(iter(rows)) == "CIDEr-D"  # the chosen one
    assert rows["CIDEr-D"][0] == f"{told['health']['cider_d']['human']:.3f}"
    assert summary.inner_text().endswith(
        f"CIDEr-D {told['probes']['human'][0]['scores']['cider_d']:.3f}"
    )


def test_the_reading_of_a_probe(script):
    """The row that costs most, and what it costs of the first row's score."""
    assert script("""
        const { reading } = await load("views/trusted/probes");
        const row = (name, score, drop) => ({ name,
            scores: score === undefined ? {} : { cider_d: score },
            drop: drop === undefined ? {} : { cider_d: drop } });
        const first = row("R1 unchanged", 6.5, null);
        return [
            [first, row("man", 5, 1.5), row("a", 2.25, 4.25), row("<b>", 6.6, -0.1)],
            [first, row("T = 30", 6, 0.5), row("T = 5", 6.5, 0)],
            [first, row("T = 30", 6.5, 0)],
            [first, row("random", 2.5, 4)],
            [first, row("woman -> man")],
            [first, { ...row("woman -> man"),
                reason: "no first caption has the word 'woman'" }],
            [row("RvR", 6.4)],
            [row("RvR")],
            [],
        ].map((rows) => reading(rows, "cider_d"));
    """) == [
        ": “a” lowers CIDEr-D by 4.250, from 6.500 of unchanged captions",
        (
            ": “Words in fewer than 30 captions” lowers CIDEr-D by 0.500, "
            "from 6.500 of unchanged captions"
        ),
        ": no loss in CIDEr-D",
        ": it lowers CIDEr-D by 4.000, from 6.500 of unchanged captions",
        ": CIDEr-D 6.500",
        ": not measured: no first caption has the word 'woman'",
        ": CIDEr-D 6.400",
        ": not measured",
        ": not measured",
    ]


def test_probes_that_were_started_are_stopped(window, service):
    with service.client() as client:
        assert client.put("/v1/datasets/halted", content=bundle(6, seed=5)).status_code == 201
    page = window.open("/ui/datasets/halted/test/trust")
    started = page.locator(".started[data-kind=probes]")
    with service.held():
        page.click("text=Run the probes")
        stop = started.locator("button:has-text('Stop')")
        stop.click()
        made = read_answer(service, "/v1/probes?dataset=halted/test")["items"][0]
        assert made["status"] == "queued"  # it asks once more
        page.get_by_role("dialog").get_by_role("button", name="Stop it").click()
        started.locator(".badge").wait_for(state="detached")
        made = read_answer(service, "/v1/probes?dataset=halted/test")["items"][0]
        assert made["status"] == "canceled"
    assert page.locator("button:text-is('Run the probes')").is_enabled()


def test_a_study_is_begun_from_the_page(window, evaluated, training):
    page = window.open("/ui/datasets/tiny/test/trust")
    page.click("text=Study the correlations")
    started = page.locator(".started[data-kind=study]")
    started.locator(".badge, .notice").first.wait_for()


@pytest.mark.slow
def test_forecasts_are_shown_beside_what_was_measured(window, service, tmp_path):
    """They need eight evaluations of trained models before them."""
    folder = tmp_path / "past"
    shapes.make_shapes(folder, 800, seed=0)
    with prescore.Client(service.url) as library:
        library.add_dataset("past", folder)
    with service.client() as client:
        paths = (path for seed in range(3) for path in shape_trainings.checkpoints(folder, seed))
        for number, path in enumerate(paths):
            submitted(
                client,
                dataset="past/test",
                checkpoint=upload(client, path.read_bytes()),
                decoding={"beam": 1, "max_words": 20},
                labels={"run": f"r{number // 6}", "step": str(number % 6)},
            )
    runs = read_answer(service, "/v1/evaluations?dataset=past/test&limit=50")["items"]
    forecast = [run for run in runs if (run["forecast"] or {}).get("cider_d", {}).get("interval")]
    assert forecast, runs[0]["forecast"]
    ends = [
        (*run["forecast"]["cider_d"]["interval"], run["scores"]["cider_d"]["value"])
        for run in forecast
    ]
    inside = sum(low <= value <= high for low, high, value in ends)
    page = window.open("/ui/datasets/past/test/trust")
    section = page.get_by_role("region", name="Forecasts and results")
    section.locator("dl").wait_for()
    facts = dict(
        zip(
            section.locator("dt").all_inner_texts(),
            section.locator("dd").all_inner_texts(),
            strict=True,
        )
    )
    assert facts["Within the interval"] == f"{inside} of {len(ends)}"
    assert section.locator("circle.point").count() == section.locator("line.ends").count()
    assert section.locator("circle.point").count() == len(ends)
    section.get_by_text("As a table").click()
    assert len(_cells(page.get_by_role("region", name="Forecasts of CIDEr-D"))) == len(ends)
    window.open(f"/ui/evaluations/{forecast[0]['id']}")
    band = page.locator("tr", has_text="CIDEr-D").locator("rect.forecast").first
    band.wait_for()


def test_the_card_tells_which_metric_decides_early(window, service):
    with service.client() as client:
        assert client.put("/v1/datasets/signal", content=bundle(6, seed=4)).status_code == 201
    place = "/ui/datasets/signal/test/trust"
    window.open(place).get_by_text(
        "Nothing to compare yet: no evaluation of signal/test"
    ).wait_for()
    enter_trainings(service.records, datasets.pin_split(service.records, "signal/test"), many=8)
    page = window.open(place)
    card = page.get_by_role("region", name="Metrics that decide early")
    card.wait_for()
    page.click("summary:has-text('without a test')")
    rows = _cells(card) | _cells(page.get_by_role("region", name="Metrics without a test"))
    assert rows["CIDEr-D"][-2:] == ["100 %", "100 %"]
    assert rows["METEOR"][-2:] == ["0 %", "0 %"]
    finding = "At 25 % of the steps, CIDEr-D has the final order in CIDEr-D of 100 % of 28 pairs"
    told = f"8 training runs make 28 pairs whose final CIDEr-D differs. {finding}"
    assert page.get_by_text(told).count() == 1
    window.expected.add("422")
    page = window.open(f"{place}?target=mean_mean_count_none")
    page.get_by_role("alert").filter(has_text="mean_mean_count_none").wait_for()


def test_the_map_of_pre_gen_metrics_tells_what_each_is(window, service, evaluated):
    unstudied = _made_up_study({}) | {"study": None}
    place = "**/v1/datasets/tiny/correlations*"
    window.page.route(place, lambda route: route.fulfill(json=unstudied))
    page = window.open("/ui/datasets/tiny/test/pregen?metric=mean_max_normcount_prefix0")
    page.wait_for_selector("[role=gridcell] >> nth=671")
    assert page.locator("[role=gridcell]").count() == 672
    names = {
        each.split(":")[0]
        for each in page.locator("[role=gridcell]").evaluate_all(
            "all => all.map(each => each.ariaLabel)"
        )
    }
    told = read_answer(service, "/v1/metrics")["items"]
    whole = {each["name"] for each in told if each["family"] == "pregen"}
    assert names == whole - {"corpus_perplexity", "bits_per_byte"}  # which have no tiers
    page.locator("[role=gridcell][tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("strong:has-text('mean_max_normcount_filter0')")
    definition = next(
        each["definition"] for each in told if each["name"] == "mean_max_normcount_filter0"
    )
    assert definition in page.inner_text("main")
    assert "metric=mean_max_normcount_filter0" in page.url


def test_the_map_has_the_colours_of_its_study(window):
    page = window.page
    study = {"mean_max_prob_none": (0.5, 0.9), "mean_max_pplx_none": (-0.25, 0.1)}
    answer = _made_up_study(study)
    page.route("**/v1/datasets/tiny/correlations*", lambda route: route.fulfill(json=answer))
    window.open("/ui/datasets/tiny/test/pregen")
    page.wait_for_selector("[aria-selected='true'][aria-label^='mean_max_prob_none:']")
    strongest = page.get_by_role("region", name="Predictors of CIDEr-D")
    page.set_viewport_size({"width": 390, "height": 800})
    assert list(_cells(strongest)) == [
        f"{amount} of all tokens (highest of an image's captions, mean over images)\n{name}"
        for amount, name in (
            ("probability", "mean_max_prob_none"),
            ("perplexity", "mean_max_pplx_none"),
        )
    ]
    strongest.wait_for()
    assert page.locator("[role=gridcell]").count() == 2 * 42  # columns that have a number
    assert "No number for any: prob_filter0, prob_prefix0" in page.inner_text("main")
    page.set_viewport_size({"width": 1280, "height": 800})
    window.open("/ui/datasets/tiny/test/pregen?metric=mean_max_pplx_none")
    cell = "[role=gridcell][aria-label^='{}:']".format
    page.wait_for_selector(f"{cell('mean_max_prob_none')}.over")
    assert page.locator(f"{cell('mean_max_pplx_none')}.under").count() == 1
    assert page.locator("[role=gridcell]:not(.none)").count() == 2
    share = "each => each.style.getPropertyValue('--share')"
    assert page.locator(cell("mean_max_pplx_none")).evaluate(share) == "0.250"
    assert "With CIDEr-D: Spearman −0.250 over 14 models; R² 0.100" in page.inner_text(".pinned")
    page.click("button:text-is('Agreement on images (R²)')")
    page.wait_for_selector("[role=gridcell][aria-label='mean_max_pplx_none: 0.100'].over")
    assert "shown=r2" in page.url
