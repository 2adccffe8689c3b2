"""The manual matches the program: its keys, events and options are those of the code. The README has its figures."""

import re
from pathlib import Path

import msgspec
import pytest
from textual.keys import key_to_character

from tfmemtop import help
from tfmemtop.cli import NAMES
from tfmemtop.cli.help import contents, rendered
from tfmemtop.cli.main import main
from tfmemtop.cli.parser import parsers
from tfmemtop.events import Damage, Fault, NoticeKind, Unbuildable
from tfmemtop.events.base import FORMAT, event_types
from tfmemtop.findings.cause import Key as Cause
from tfmemtop.findings.judgement import kinds
from tfmemtop.ui.keys import KEYS, Key

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = {name: help.topic(name) for name in help.topics()}


def rows(markdown: str) -> list[list[str]]:
    """Return the cells of every row of every table in *markdown*."""
    lines = [line for line in markdown.splitlines() if line.startswith("|") and not line.startswith("| ---")]
    return [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def quoted(text: str) -> set[str]:
    """Return the texts in backticks in *text*."""
    return set(re.findall(r"`([^`]+)`", text))


def test_every_page_is_listed_is_short_and_begins_with_a_title_and_a_summary() -> None:
    assert {path.stem for path in (ROOT / "tfmemtop" / "help").glob("*.md")} == set(help.topics())
    for name, page in PAGES.items():
        assert page.startswith("# ") and len(page.splitlines()) <= 120, name
        assert any(name in line and help.summary(name) in line for line in contents())


def test_the_page_of_findings_has_each_cause_that_a_rule_states() -> None:
    rules = "".join(path.read_text() for path in (ROOT / "tfmemtop" / "findings").rglob("*.py"))
    told = {name for cells in rows(PAGES["findings"]) for name in quoted(cells[0])}
    stated = {cause.value for cause in Cause if f"Key.{cause.name}" in rules} | {
        str(kind.key) for kind in kinds() if kind.key
    }
    assert stated <= told
    causes = {name for page in ("leak", "batch") for cells in rows(PAGES[page])[1:] for name in quoted(cells[-1])}
    assert causes <= stated


def test_the_pictures_of_pages_are_there_and_a_terminal_gets_none() -> None:
    pictures = {name: re.findall(r"^!\[.+\]\((.+)\)$", page, re.MULTILINE) for name, page in PAGES.items()}
    assert pictures["outside"] and pictures["notebooks"]
    for name, found in pictures.items():
        assert all((ROOT / "tfmemtop" / "help" / target).exists() for target in found), name
        shown = "".join(rendered(PAGES[name], 100))
        assert not any(Path(target).name in shown for target in found), name


@pytest.mark.parametrize("name", help.topics())
def test_a_page_fits_the_width_and_no_word_of_a_table_is_cut(name: str) -> None:
    fixed = {line.strip() for line in PAGES[name].splitlines()}  # code and drawings are not wrapped
    for width in (60, 80):
        lines = rendered(PAGES[name], width)
        assert not [line for line in lines if len(line) > width and line.strip() not in fixed]
        assert "\n".join(lines).count("…") == PAGES[name].count("…"), width


def test_the_settings_of_frameworks_can_be_copied_at_80_columns() -> None:
    (section,) = re.findall(r"## Settings of the next run\n(.*?)\n##", PAGES["frameworks"], re.DOTALL)
    values = {value for cells in rows(section) for value in quoted(cells[-1])}
    assert len(values) == 8
    assert values <= {word for line in rendered(PAGES["frameworks"], 80) for word in line.split()}


def test_a_page_a_command_and_the_list_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    def printed(line: str) -> str:
        assert main(line.split()) == 0
        return capsys.readouterr().out

    assert set(contents()) <= set(printed("help").splitlines())
    assert "GPUs that the next run sees" in printed("help keys")
    assert printed("help record").startswith("usage: tfmemtop record")
    assert printed("record --help") == printed("help record")


SHOWN = {
    "left": "←",
    "right": "→",
    "home": "Home",
    "end": "End",
    "space": "Space",
    "tab": "Tab",
    "plus": "+",
    "minus": "-",
    "slash": "/",
}


def shown(name: str) -> str:
    """Return what is printed on the key that Textual calls *name*."""
    return SHOWN.get(name) or key_to_character(name) or name.upper()


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.action)
def test_the_page_of_keys_has_every_key(key: Key) -> None:
    told = {name for cells in rows(PAGES["keys"]) for name in quoted(cells[0])}
    assert {shown(name) for name in key.keys.split(",")} | {key.shown} <= told


EVENTS = {str(event.__struct_config__.tag): event for event in event_types()}


def test_the_page_of_formats_has_every_event_with_its_fields() -> None:
    told = {next(iter(quoted(cells[0]))): cells for cells in rows(PAGES["formats"])[1:]}
    assert set(told) == set(EVENTS)
    lacking = {
        name: missing
        for name, event in EVENTS.items()
        if (missing := {field.encode_name for field in msgspec.structs.fields(event)} - {"t"} - quoted(told[name][2]))
    }
    assert not lacking


def words_of(schema: object) -> set[str]:
    """The keys and the fixed values in a JSON schema, at any depth."""
    if isinstance(schema, dict):
        own = set(schema.get("properties", ())) | {value for value in schema.get("enum", ()) if isinstance(value, str)}
        return own.union(*map(words_of, schema.values()))
    return set().union(*map(words_of, schema)) if isinstance(schema, list) else set()


BY_EXAMPLE = {one.value for kinds in (NoticeKind, Fault, Unbuildable) for one in kinds}
"""Values of which the page shows only a few, because there are many."""

LISTED_ONCE = {one.value for one in Damage}
"""Values that occur in several events. A section of the page lists them, see tests/findings/test_notices.py."""


@pytest.mark.parametrize("name", EVENTS)
def test_the_page_of_formats_has_every_value_and_no_key_that_does_not_exist(name: str) -> None:
    (keys,) = (cells[2] for cells in rows(PAGES["formats"]) if cells[0] == f"`{name}`")
    fields = {field.encode_name for field in msgspec.structs.fields(EVENTS[name])}
    known = words_of(msgspec.json.schema(EVENTS[name])["$defs"]) - {"type", "t", name} | (fields - {"t"})
    # A text in brackets is the form of a list. A census contains tables; the schema does not name their keys.
    told = {word for word in quoted(keys) if not word.startswith("[")} - {"t", "null"}
    assert told <= known | {"probe", "distrust", "hook_error", "variables", "optimizer", "metrics", "tensors", "steps"}
    assert known - {"bfc", "cuda_malloc_async", "on", "off"} - BY_EXAMPLE - (LISTED_ONCE - fields) <= told


def test_the_page_of_formats_names_the_version() -> None:
    assert f"`format` ({FORMAT})" in PAGES["formats"]


FLAGS = {name: parser.load().flags() for name, parser in parsers().items()}
OPTIONS = {flag for flags in FLAGS.values() for flag in flags}


def test_no_page_names_an_option_that_does_not_exist() -> None:
    for name, text in {"README": README, **PAGES}.items():
        # The commands that run the tests contain options of other programs.
        ours = re.sub(
            r"#SBATCH.*|srun --\S+|systemd-run --user --scope|docker run --init|pytest.*|"
            r"(?:prometheus\S*|munged) --.*(?:\n    --.*)*|"
            r"python -m tests\S* --\S+|python3 -m venv",
            "",
            text,
        )
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", ours))
        assert named <= OPTIONS, name


@pytest.mark.parametrize(("page", "command"), [("settings", "tfmemtop"), ("fit", "fit")])
def test_a_table_of_options_is_complete(page: str, command: str) -> None:
    told = {flag for cells in rows(PAGES[page]) for text in quoted(cells[0]) for flag in re.findall("--[a-z-]+", text)}
    shared = {"--help", "--version", "--once", "--json", "--loop"}
    shared |= set() if command == "tfmemtop" else set(FLAGS["tfmemtop"])
    assert {flag for flag in FLAGS[command] if flag.startswith("--")} - shared <= told


@pytest.mark.parametrize(("head", "page"), [("| what | at most |", "costs"), ("| the question |", "claims")])
def test_the_readmes_figures_are_those_of_the_page(head: str, page: str) -> None:
    table = README[README.index(head) :].partition("\n\n")[0].splitlines()
    assert len(table) > 5
    assert set(table) <= set(PAGES[page].splitlines())


def test_the_readme_is_short_and_names_what_is_there() -> None:
    assert len(README.split()) < 1500
    assert len(re.findall(r"!\[", README)) == 7
    sections = {"#" + line[3:].lower().replace(" ", "-") for line in README.splitlines() if line.startswith("## ")}
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert target in sections or (ROOT / target).exists(), target
    listed = {text.split()[1] for cells in rows(README) for text in quoted(cells[0]) if text.startswith("tfmemtop ")}
    assert {*NAMES, "--once"} <= listed
