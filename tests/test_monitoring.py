"""What watches the service, and the runbook: both speak of what there is."""

import json
import re
import shlex
import shutil
import subprocess
import time

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families as families

from helpers.documents import ROOT, code, exists, read
from helpers.fleet import bundle_of
from service.contract import errors
from service.engine import cancellation, fleet_status
from service.engine.tables import past_attempts

FOLDER = "deploy/monitoring"
RUNBOOK = "deploy/runbook.md"
(GROUP,) = yaml.safe_load(read(f"{FOLDER}/alerts.yaml"))["groups"]
ALERTS = {rule["alert"]: rule for rule in GROUP["rules"]}
DASHBOARD = json.loads(read(f"{FOLDER}/dashboard.json"))
TARGETS = [target for panel in DASHBOARD["panels"] for target in panel["targets"]]
EXPRESSIONS = [rule["expr"] for rule in ALERTS.values()] + [each["expr"] for each in TARGETS]
OF_PROMETHEUS = {"up": {"job": set(), "instance": set()}}  # what it knows of each scrape
# How attempts end that do not end with an error.
OTHER_OUTCOMES = {"done", "an input was damaged", cancellation.GIVEN_UP, "handed back", "not short"}
OF_LANGUAGE = {
    *("sum", "min", "max", "by", "on", "and", "or", "absent", "offset", "rate", "increase", "le"),
    *("min_over_time", "histogram_quantile"),
}


@pytest.fixture(scope="module")
def told(serve_here, tmp_path_factory):
    """What /metrics answers: the labels of each sample, and their values."""
    with serve_here(tmp_path_factory.mktemp("a home")) as service, service.client() as client:
        client.put("/v1/datasets/tiny", content=bundle_of({"a.jpg": ["a cat"]}))
        captions = [{"image": "a.jpg", "caption": "a cat"}]
        asked = {"captions": captions, "dataset": "tiny/test", "postgen": ["bleu_1"]}
        answer = client.post("/v1/evaluations", json={**asked, "tokenizer": "none"})
        assert answer.status_code in (201, 202)
        for moment in (fleet_status.LAST_JANITOR_ROUND, fleet_status.LAST_BACKUP):
            fleet_status.note_moment(service.records, moment, time.time())
        with service.records.transaction() as connection:
            rows = [{"outcome": name, "many": 1} for name in sorted(_outcomes())]
            connection.execute(past_attempts.insert(), rows)
        answer = client.get("/metrics").text
    found = {name: dict(labels) for name, labels in OF_PROMETHEUS.items()}
    for sample in (sample for family in families(answer) for sample in family.samples):
        labels = found.setdefault(sample.name, {"job": set(), "instance": set()})
        for name, value in sample.labels.items():
            labels.setdefault(name, set()).add(value)
    return found


def _outcomes():
    codes = {each.code for each in vars(errors).values() if hasattr(each, "code")}
    return codes | OTHER_OUTCOMES | {"internal"}


def _selectors(expression):
    """The names of metrics in an expression, each with its matchers."""
    kept = re.sub(r'"[^"]*"', lambda text: text[0].replace(" ", "\0"), expression)
    kept = re.sub(r"\b(by|on) \([^)]*\)", " ", kept)
    for name, inside in re.findall(
        r"(?<![\w.$])([a-z_]\w*)(?:\{([^}]*)\})?",
        re.sub(r"\[[^\]]*\]|\b[\d.]+(?:e\d+|[smhd])?\b", " ", kept),
    ):
        if name not in OF_LANGUAGE:
            matchers = re.findall(r'(\w+)(=~|!~|!=|=)"([^"]*)"', inside.replace("\0", " "))
            yield name, matchers


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_metric_and_label_in_rules_and_panels_is_one_that_is_told(told, expression):
    selectors = list(_selectors(expression))
    assert selectors
    for name, matchers in selectors:
        assert name in told, (name, expression)
        for label, how, value in matchers:
            assert label in told[name], (name, label)
            if how in ("=~", "=") and label not in ("job", "status"):
                for each in value.split("|"):
                    assert each in told[name][label], (name, label, each)
    for named in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression):
        for label in filter(None, re.split(r"[\s,]+", named)):
            assert any(label in told[name] for name, _ in selectors), (label, expression)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_are_whole(expression):
    plain = re.sub(r'"[^"]*"', "", expression)
    for opening, closing in ("()", "[]", "{}"):
        assert plain.count(opening) == plain.count(closing)
    assert expression.count('"') % 2 == 0


@pytest.mark.parametrize("name", ALERTS)
def test_each_alert_says_what_is_wrong_and_leads_to_what_to_do(name):
    rule = ALERTS[name]
    assert name.startswith("Prescore")
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert rule["annotations"].keys() == {"summary", "runbook"}
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["annotations"]["runbook"].partition("#")[0] == RUNBOOK


def test_each_alert_is_named_where_the_runbook_leads_it():
    sections = re.split(r"^## (.+)$", read(RUNBOOK), flags=re.MULTILINE)
    texts = dict(zip(sections[1::2], sections[2::2], strict=True))
    by_anchor = {heading.lower().replace(" ", "-"): text for heading, text in texts.items()}
    for name, rule in ALERTS.items():
        assert f"`{name}`" in by_anchor[rule["annotations"]["runbook"].partition("#")[2]]
    named = set(re.findall(r"`(Prescore\w+)`", read(RUNBOOK)))
    assert named == set(ALERTS)


def test_the_example_scrapes_the_api_and_names_its_rules():
    example = yaml.safe_load(read(f"{FOLDER}/prometheus.yaml"))
    (scraped,) = example["scrape_configs"]
    assert scraped["metrics_path"] == "/metrics"
    assert all(exists(f"{FOLDER}/{name}") for name in example["rule_files"])
    jobs = re.findall(r'job="(\w+)"', " ".join(EXPRESSIONS))
    assert set(jobs) == {scraped["job_name"]}


def test_the_dashboard_asks_for_its_source_and_its_panels_do_not_overlap():
    (source,) = DASHBOARD["templating"]["list"]
    assert source["type"] == "datasource"
    assert {each["datasource"]["uid"] for each in TARGETS} == {f"${{{source['name']}}}"}
    places = [
        (x, y)
        for at in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(set(places)) == len(places)
    assert max(x for x, _ in places) < 24
    identities = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(identities)) == len(identities)


@pytest.mark.processes
@pytest.mark.parametrize("what", [("rules", "alerts.yaml"), ("config", "prometheus.yaml")])
def test_promtool_reads_them(what):
    kind, name = what
    if shutil.which("promtool") is None:
        pytest.skip("no promtool on this machine")
    command = ["promtool", "check", kind, str(ROOT / FOLDER / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# The runbook's commands; those of `prescore` and all paths: test_documents.py

SERVICES = yaml.safe_load(read("deploy/compose.yaml"))["services"]
OF_A_SYSTEM = {"curl", "df", "du", "grep", "mv", "docker", "sh", "prescore"}
VERBS = {"ps", "logs", "up", "exec", "run", "stop", "build"}
WITH_VALUE = {"--since", "--tail", "--scale", "-v", "--user"}


def _lines():
    return [
        line for line in code(read(RUNBOOK)) if line.split()[:1] and line.split()[0] in OF_A_SYSTEM
    ]


def _programs(line):
    """The words of each program of a line; a bar in quotes is none between programs."""
    words, one = shlex.split(line), []
    for word in words:
        if word == "|":
            yield one
            one = []
        else:
            one.append(word)
    yield one


def test_every_line_of_the_runbooks_blocks_runs_something_known():
    blocks = re.findall(r"^    (\S.*)$", read(RUNBOOK), re.MULTILINE)
    assert len(blocks) > 40
    for line in blocks:
        quoted = re.sub(r"'[^']*'", "x", line)
        for program in quoted.split("|"):
            words = [word for word in program.split() if not re.match(r"[A-Z_]+=", word)]
            assert words[0] in OF_A_SYSTEM, line


def test_every_service_and_verb_of_compose_in_the_runbook_is_there():
    lines = [line for line in _lines() if line.startswith("docker")]
    assert len(lines) > 20
    for line in lines:
        (first, *_) = _programs(line)
        assert first[:4] == ["docker", "compose", "-f", "deploy/compose.yaml"], line
        verb, *rest = first[4:]
        assert verb in VERBS, line
        named = [
            word
            for before, word in zip(["", *rest], rest, strict=False)
            if not word.startswith("-") and before not in WITH_VALUE
        ]
        alone = verb in ("exec", "run")
        assert set(named[:1] if alone else named) <= SERVICES.keys(), line
        for scaled in re.findall(r"--scale (\w+)=", line):
            assert scaled in SERVICES


def test_every_url_in_the_runbook_is_a_route():
    paths = json.loads(read("openapi/openapi.json"))["paths"]
    patterns = [re.sub(r"\{[^}]*\}", "[^/]+", path) for path in paths]
    asked = re.findall(r"http://127\.0\.0\.1:\d+(/[^\s'?]*)", read(RUNBOOK))
    assert len(asked) > 10
    for path in asked:
        assert any(re.fullmatch(pattern, path) for pattern in patterns), path


def test_every_number_in_the_runbook_is_told(told):
    page = read(RUNBOOK)
    named = set(re.findall(r"\bprescore_[a-z_]+", page))
    assert named
    assert named <= told.keys() | {"prescore_"}, named - told.keys()
    (several,) = re.findall(r"'prescore_\(([^)]*)\)'", page)
    assert {f"prescore_{name}" for name in several.split("|")} <= told.keys()


def test_what_the_runbook_looks_for_in_logs_is_logged():
    """By `grep`: the events of structlog, whose names are constants."""
    sources = "".join(
        path.read_text(encoding="utf-8")
        for room in ("service", "workers")
        for path in (ROOT / room).rglob("*.py")
    )
    for line in (line for line in _lines() if "logs" in line and "grep" in line):
        wanted = next(words for words in _programs(line) if words[0] == "grep")[-1]
        for event in wanted.split("|"):
            assert re.search(rf'log\.\w+\(\s*"[^"]*{re.escape(event)}', sources), event


def test_codes_in_the_runbook_are_codes_of_errors():
    """Words with an underscore in code that are no numbers of ours."""
    codes = _outcomes()
    named = {
        span
        for span in code(read(RUNBOOK))
        if re.fullmatch(r"[a-z]+_[a-z_]+", span) and not span.startswith("prescore_")
    }
    assert {"disk_full", "worker_lost", "blob_missing"} <= named
    assert named <= codes, named - codes
