"""Documents are tested: what they promise is what there is."""

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from itertools import takewhile

import numpy as np
import pytest
import typer
import yaml
from pydantic import BaseModel

import prescore
from helpers import tokenizer_files
from helpers.builders import ENCODER, model, tensors
from helpers.documents import (
    ROOT,
    anchors,
    code,
    exists,
    fenced,
    files,
    folders,
    from_root,
    is_left_out,
    links,
    pages,
    read,
    section,
    spans,
    subsection,
    table,
)
from prescore import commands
from service.contract import limits
from service.contract.api.evaluations import EvaluationRequest
from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem
from service.contract.limits import LimitsOut
from service.contract.metrics import catalogue
from service.contract.settings import Settings
from workers.export import manifests
from workers.inference import checkpoints, features
from workers.inference.captioners import ARCHITECTURES
from workers.metrics import postgen, references

README, OPERATING, GUIDE = "README.md", "deploy/README.md", "deploy/guide"
INDEX = f"{GUIDE}/README.md"
TRIALS = "tests/trials/README.md"
ELSEWHERE = {  # pages whose programs need more than is here
    f"{GUIDE}/plugins-and-sandbox.md",  # a package: tests/service/http/test_plugins.py
    f"{GUIDE}/comparisons.md",  # scores: tests/service/http/test_comparisons.py
}
PAGES = pytest.mark.parametrize("page", pages())

# Where pages lead


def test_the_readme_is_read_in_five_minutes():
    assert len(read(README).split()) <= 700


def test_the_readme_leads_to_the_guide_and_the_guide_to_every_page():
    linked = {from_root(README, target.split("#")[0]) for target in links(read(README))}
    assert {INDEX, OPERATING, "CONTRIBUTING.md", "CHANGELOG.md", TRIALS} <= linked
    listed = {from_root(INDEX, target.split("#")[0]) for target in links(read(INDEX))}
    assert {page for page in pages() if page.startswith(f"{GUIDE}/")} <= {*listed, INDEX}


@PAGES
def test_every_link_leads_somewhere(page):
    for target in links(read(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        found = from_root(page, path) if path else page
        assert found is not None, (page, target)
        assert exists(found), (page, target)
        if anchor:
            assert anchor in anchors(found), (page, target, sorted(anchors(found)))


SOURCES = (".py", ".md", ".sh", ".yml", ".yaml", ".toml", ".mako", ".acl", ".Dockerfile")
OF_READERS = {"names.toml", "map.toml", "mine.py", "acme_captioners.py"}  # what a reader writes


def _names(page: str) -> Iterator[str]:
    """Words of a page's code that look like a path of the repository."""
    top = {path.split("/")[0] for path in files()}
    for word in (word for text in code(read(page)) for word in re.split(r"[\s'\"=(),;]+", text)):
        word = re.sub(r"(^\./|[.:]$|\[.*$|#.*$)", "", word)  # noqa: PLW2901
        if re.fullmatch(r"[\w.*-]+(/[\w.*-]+)*/?", word):
            is_ours = "/" in word and word.split("/")[0] in top
            if is_ours or (word.endswith(SOURCES) and not word.startswith(".")):
                yield word


@PAGES
def test_every_path_of_ours_that_a_page_names_exists(page):
    """From the root, from the page's folder; or a file's name alone, where it says enough."""
    for name in _names(page):
        beside = from_root(page, name)
        assert (
            exists(name)
            or (beside is not None and exists(beside))
            or name in OF_READERS
            or is_left_out(name)
            or any(path.endswith(f"/{name}") for path in files())
        ), f"{page} names {name}, which is not there"


@PAGES
def test_every_module_that_a_page_names_exists(page):
    packages = {"service": "service", "workers": "workers", "prescore": "service/client/prescore"}
    for text in code(read(page)):
        for dotted in re.findall(
            r"(?<![\w/.:-])(?:service|workers|prescore)(?:\.(?!(?:json|captioners)\b)[A-Za-z_]\w*)+",
            text,
        ):
            first, *rest = dotted.split(".")
            path = packages[first]
            steps = [
                f"{path}/{'/'.join(rest[:count])}".rstrip("/") for count in range(len(rest) + 1)
            ]
            inside = list(takewhile(lambda step: exists(step) or exists(f"{step}.py"), steps))
            last, left = inside[-1], rest[len(inside) - 1 :]
            text_of = read(f"{last}.py" if exists(f"{last}.py") else f"{last}/__init__.py")
            assert not left or re.search(rf"\b{left[0]}\b", text_of), (page, dotted)


OUTSIDE = re.compile(
    r"\b(?:DESIGN|HOUSE|PEERS|SCIENCE|CONTRACT)\b|\b(?:STYLE|TRIALS)\.md|shared/docs"
    r"|\[[PNC]\](?=[ ,.:;'])"
)


def test_nothing_refers_to_a_document_outside_the_repository():
    """What it said stands here now: in the page or the docstring that needs it."""
    for path in files() - {"tests/test_documents.py"}:
        if path.endswith(SOURCES):
            assert not (found := OUTSIDE.search(read(path))), (path, found)


def test_every_page_that_a_source_names_is_in_the_repository():
    for path in sorted(files() - {"tests/test_documents.py"}):
        if not path.endswith(SOURCES):
            continue
        for name in re.findall(r"(?<![\w*/.])[\w./*-]*\w\.md\b", read(path)):
            beside = from_root(path, name)
            found = exists(name) or (beside is not None and exists(beside))
            assert found or any(each.endswith(f"/{name}") for each in files()), (path, name)


# What pages tell to type


def _commands() -> Iterator[tuple[str, list[str]]]:
    """Page and words of every `prescore …`."""
    for page in pages():
        for line in code(read(page)):
            for found in re.findall(r"(?:^|[(|;] ?)(prescore (?:[a-z]|--).*)", line):
                words = re.sub(r"[…]|ev_\S*", "X", found.split(" #")[0])
                with_quotes = words if words.count("'") % 2 == 0 else words.replace("'", "")
                yield page, shlex.split(with_quotes.rstrip(")"))


def test_every_command_and_option_in_pages_exists():
    app = typer.main.get_command(commands.build())
    told = list(_commands())
    assert len(told) > 40
    for page, (_, *words) in told:
        command = app
        while hasattr(command, "commands") and words and not words[0].startswith("-"):
            assert words[0] in command.commands, (page, words)
            command = command.commands[words.pop(0)]
        options = {
            name
            for parameter in command.params
            for name in (*parameter.opts, *parameter.secondary_opts)
        }
        for word in words:
            if word.startswith("--"):
                assert word.split("=")[0] in {*options, "--help"}, (page, command.name, word)


def test_every_flag_of_the_checks_exists():
    benchmarks = [path for path in files() if re.fullmatch(r"tests/benchmarks/.*\.py", path)]
    script = "".join(map(read, ["tests/run.sh", *sorted(benchmarks)]))
    told = {
        flag
        for page in pages()
        for line in code(read(page))
        if "tests/run.sh" in line
        for flag in re.findall(r"--[a-z][a-z-]+", line.split("  ")[0])
    }
    assert {"--all", "--bench"} <= told
    assert {flag for flag in told if flag not in script} == set()


def test_every_route_in_pages_is_one_of_the_interface():
    paths = json.loads(read("openapi/openapi.json"))["paths"]
    patterns = {path: re.sub(r"\{[^}]*\}", "[^/]+", path) for path in paths}
    for page in pages():
        for line in code(read(page)):
            for method, route in re.findall(
                r"(?:\b([A-Z]+) )?(?<![\w…])(?:\$URL)?(/v1/[^\s?'\"`]*)", line
            ):
                named = route.rstrip("/.,")
                matching = [path for path, like in patterns.items() if re.fullmatch(like, named)]
                assert matching, (page, route)
                if method:
                    assert any(method.lower() in paths[path] for path in matching), (page, line)


def test_the_readmes_commands_are_the_ones_that_are_checked():
    assert "    sh tests/run.sh\n" in read(README)
    assert "sh tests/run.sh" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "-c deploy/constraints.txt ./service/client '.[service,workers]'" in read(README)


# What pages tell to run in Python

PYTHON = [
    pytest.param(page, text, id=f"{page}-{number}")
    for page in pages()
    if page not in ELSEWHERE
    for number, text in enumerate(fenced(read(page), "python"))
]


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A folder with bundles and checkpoints under the names that pages use."""
    monkeypatch.chdir(tmp_path)
    names = ["a.jpg", "b.jpg"]
    for bundle in ("flickr8k", "shapes"):
        items = [
            BundleItem(f"{split}-{name}", split, ("w3 w4", "w5"))
            for split in ("val", "test")
            for name in names
        ]
        bundles.write_bundle_folder(tmp_path / bundle, items)
        rows = np.ones((4, 5), np.float32)
        features.write_features(
            tmp_path / bundle / bundles.FEATURES, [item.image for item in items], rows, ENCODER
        )
    for place in ("model", "runs/epoch-02", "runs/merge/epoch-08"):
        path = tmp_path / f"{place}.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        checkpoints.write_checkpoint(path, model("merge", "gru", tensors("merge", "gru")))
    (tmp_path / "tokenizer.json").write_text(tokenizer_files.byte_pieces().to_str())
    return tmp_path


@pytest.fixture(scope="module")
def answering(serve_here, jvm, tmp_path_factory):
    """A real service in this process. Java has read METEOR's table, for which no request waits."""
    prepared = references.prepare_references([["a"]], "none", jvm)
    postgen.score_tokens("meteor", ["a"], prepared, np.array([0]), jvm)
    with serve_here(tmp_path_factory.mktemp("home")) as service:
        yield service


@pytest.fixture
def named(answering, made, monkeypatch):
    """The service as pages expect it: with their datasets, and named in the environment."""
    monkeypatch.setenv("PRESCORE_URL", answering.url)
    monkeypatch.delenv("PRESCORE_KEY", raising=False)
    with prescore.Client() as client:
        for bundle in ("flickr8k", "shapes"):
            client.add_dataset(bundle, made / bundle)
        yield client


def test_pages_show_the_client_the_watch_and_the_engine():
    assert {
        f"{GUIDE}/bring-a-model.md",
        f"{GUIDE}/client.md",
        README,
    } <= {parameter.values[0] for parameter in PYTHON}


@pytest.mark.parametrize(("page", "text"), PYTHON)
def test_the_python_of_pages_runs(made, named, page, text):
    scope = {"path": made / "model.safetensors"}  # what a training loop would have
    exec(compile(text, page, "exec"), scope)  # noqa: S102  our own document
    if "workers.export" in text:
        given = scope["captioner"]()  # it is exported by tests/workers/export/test_exporting.py
        image = manifests.read_image_shape(given)
        seen, state = given.look(scope["torch"].ones(2, *image))
        assert given.step(scope["torch"].tensor([1, 2]), seen, state)[0].shape[0] == 2
    elif "pregen.scores" in text:
        assert len(scope["scores"]) == len(catalogue.PREGEN)
        assert len(scope["instant"]) == 84
    else:
        assert all(run.status == "succeeded" for run in named.evaluations())


# What pages list


def test_every_setting_is_documented_as_it_is_declared():
    rows = table(section(OPERATING, "Settings"))
    documented = {row[0].strip("`"): row[2] for row in rows}
    declared = {
        f"PRESCORE_{name.upper()}": field.description
        for name, field in Settings.model_fields.items()
    }
    assert documented == declared


def test_every_limit_is_documented_as_it_is_declared():
    rows = table(section(f"{GUIDE}/limits.md", "Every limit"))
    declared = [
        [f"`{name}`", f"{field.default:,}", field.description]
        for name, field in LimitsOut.model_fields.items()
    ]
    assert [list(row) for row in rows] == declared
    known = {name.lower(): value for name, value in vars(limits).items() if name.isupper()}
    assert LimitsOut().model_dump() == known


def test_the_table_of_pregen_names_says_what_the_catalogue_knows():
    page = f"{GUIDE}/pregen.md"
    options = {row[0][0]: set(spans(row[1])) for row in table(section(page, "Names"))}
    assert options["4"] == {" ".join(catalogue.AGGREGATES)}
    assert options["3"] == {catalogue.JOIN}
    assert options["2"] == set(catalogue.CAPTION_SCORES)
    assert options["1"] == set(catalogue.FILTERS)
    assert str(len(catalogue.PREGEN)) in read(page)
    assert all(f"`{name}`" in read(page) for name in catalogue.HEADLINE)


def test_the_table_of_metrics_names_every_family_and_nothing_else():
    cells = [cell for row in table(read(f"{GUIDE}/metrics.md")) for cell in row]
    named = {word for cell in cells for word in spans(cell) if re.fullmatch(r"[a-z_0-9]+", word)}
    groups = {catalogue.find_metric_task(name) for name in catalogue.POSTGEN}
    assert named - {"…"} <= groups | set(catalogue.POSTGEN) | set(catalogue.GROUPS)
    assert groups <= named


def test_everything_that_an_evaluation_may_ask_for_is_documented_with_its_default():
    rows = table(section(f"{GUIDE}/scoring.md", "What may be asked"))
    documented = {name: row[1] for row in rows for name in spans(row[0])}
    fields = EvaluationRequest.model_fields
    scored = {"checkpoint", "captions", "columns"}
    assert documented.keys() == fields.keys() - scored - {"dataset"}
    for name in ("postgen", "precision", "decoding", "idf", "tokenizer", "subset", "deadline"):
        default = fields[name].default
        told = dict(default) if isinstance(default, BaseModel) else default
        assert json.loads(documented[name].strip("`")) == told


def test_every_warning_of_captions_is_documented():
    documented = {
        row[0].strip("`") for row in table(section(f"{GUIDE}/scoring.md", "Captions that you have"))
    }
    given = set(re.findall(r'_warning\("(\w+)"', read("service/contract/formats/outputs.py")))
    assert documented == given


def test_every_architecture_is_documented():
    rows = table(subsection(f"{GUIDE}/file-formats.md", "Architectures"))
    assert {row[0].strip("`") for row in rows} == set(ARCHITECTURES)


def test_the_map_shows_every_room():
    shown = {row[0].strip("`") for row in table(section("CONTRIBUTING.md", "The map"))}
    deep = ("service/contract/",)
    rooms = {
        folder
        for folder in folders()
        if re.fullmatch(r"(service|workers)/\w+", folder) or folder.startswith(deep)
    }
    rooms -= {folder for folder in rooms if folder.count("/") > 2}
    shown = {room for room in shown if room.startswith(("service/", "workers/"))}
    assert {room for room in shown if not room.endswith(".py")} == rooms


def test_pages_count_the_lines_of_the_reader_of_checkpoints():
    lines = len(read("deploy/guide/read_checkpoint.py").splitlines())
    page = read(f"{GUIDE}/file-formats.md")
    assert re.findall(r"in (\d+) lines", page) == [str(lines)]


def test_the_layers_of_workers_and_service_are_those_that_are_checked():
    checked = tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    for room, first in (("service", "operate"), ("workers", "cli")):
        layers = next(one["layers"] for one in checked if one.get("containers") == [room])
        told = re.findall(rf"^    {first} -> .*$", read("CONTRIBUTING.md"), re.MULTILINE)
        assert told == [f"    {' -> '.join(layers)}"]


def test_the_table_of_tests_shows_every_folder():
    shown = {word for row in table(section("CONTRIBUTING.md", "Tests")) for word in spans(row[0])}
    here = {folder for folder in folders() if re.fullmatch(r"tests/\w+", folder)}
    assert {name for name in shown if not name.endswith(".py")} == here


def test_every_trial_stands_in_the_table_with_its_files():
    rows = re.findall(r"^\| (T\d\d) \| (.+) \| (.+) \|$", read(TRIALS), re.MULTILINE)
    where = {name: {from_root(TRIALS, at) for at in links(told)} for name, _, told in rows}
    assert len(where) == len(rows)
    for name, _, told in rows:
        assert links(told) or told.startswith("not built yet"), name
    for path in sorted(path for path in files() if re.fullmatch(r"tests/.*\.py", path)):
        for name in set(re.findall(r"\bT\d\d\b", read(path))) - {"T00"}:
            assert name in where, f"{path} names {name}, which {TRIALS} does not know"
            assert path in where[name], f"{path} names {name}: its row in {TRIALS} should link it"


def test_the_changelog_speaks_of_the_version_there_is():
    version = re.search(r'^version = "(.+)"', read("pyproject.toml"), re.MULTILINE)
    assert f"## {version[1]}" in read("CHANGELOG.md")


# What GitHub reads

GITHUB = [path for path in sorted(files()) if re.fullmatch(r"\.github/.+\.yml", path)]


def test_the_workflow_runs_the_command_that_everybody_runs():
    workflow = yaml.safe_load(read(".github/workflows/tests.yml"))
    steps = workflow["jobs"]["tests"]["steps"]
    assert steps[-1] == {"run": "sh tests/run.sh"}
    assert "python3.11-venv" in steps[0]["run"]
    assert workflow["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("path", GITHUB)
def test_actions_are_pinned_and_no_secret_is_asked_for(path):
    assert "secrets." not in read(path)
    for action in re.findall(r"uses: *(\S+)", read(path)):
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), action


def test_a_proposed_change_is_asked_for_what_a_commit_must_hold():
    template = read(".github/pull_request_template.md")
    for what in ("sh tests/run.sh", "CHANGELOG.md", "openapi/openapi.json"):
        assert what in template
