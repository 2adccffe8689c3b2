"""English sentences are made in ``words/``. The other rooms of the package contain facts, and no sentences."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "tfmemtop"

NOT_CHECKED = {
    "words": "says everything in English",
    "help": "is the manual",
    "demo": "prints what a user's script would print",
    "first": "draws before words/ is loaded; tests/first/test_picture.py compares what it says with the screen",
    "tensorflow_text.py": "recognises what TensorFlow writes",
}
"""Rooms and files of the package that may contain sentences, with the reason. All others contain none."""

NO_ENGLISH = {
    "doctor/interpreter.py",  # a program for the command's Python
    "engine/sources/outside/programs.py",  # programs for another Python
    "metrics/dashboard.py",  # queries in PromQL
    "cluster/queries.py",  # PromQL
    "notebooks/python.py",  # a program for another Python
    "commands/shells.py",  # programs for shells
    "ui/draw/picture.py",  # SVG
    "agent/exhausted.py",  # what TensorFlow writes, to recognise it
    "probe/installing.py",  # commands of package managers
    "xla/assignment.py",  # what XLA writes, to recognise it
}
"""Files of the other rooms whose long strings are not texts that tfmemtop shows."""

_RE = "re"
"""The module whose functions take a pattern as their first argument."""

DECLARE_KEYS = ("Key", "Binding")
"""Constructors that declare a key. The description of the key is one of their arguments."""

DECLARE_OPTIONS = ("add_argument", "add_argument_group")
"""Methods that declare an option of a command, or a group of options. The description is one of their arguments;
argparse makes the help from it."""

_WORD = re.compile(r"[A-Za-z'’][A-Za-z'’-]*[.,;:!?]?")  # an option is not a word

_KEYS = {"PgUp", "PgDn"}
"""Names of keys, which are no words."""

_HOLE = "0"
"""What stands for a value in an f-string."""

MOST_WORDS = 2
"""A text of more words than this counts as a sentence. A hole of an f-string counts as a word beside two real words."""


def sentences(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each string of at least three words that the program could show.

    Docstrings, patterns, style sheets and the descriptions of keys and options are left out.
    """
    nodes = list(ast.walk(tree))
    left_out = {id(part) for node in _not_shown(nodes) for part in ast.walk(node)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):  # an f-string counts as a whole
            left_out |= {id(part) for part in ast.walk(node)} - {id(node)}
    for node in nodes:
        text = "" if id(node) in left_out else _text(node)
        words = sum(1 for word in text.split() if _WORD.fullmatch(word) and word not in _KEYS)
        holes = len(node.values) - len(_constants(node)) if isinstance(node, ast.JoinedStr) else 0
        if words >= MOST_WORDS and words + holes > MOST_WORDS:
            yield node.lineno, text  # type: ignore[attr-defined]


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(value) if isinstance(value, ast.Constant) else _HOLE for value in node.values)
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        return node.value if isinstance(node.value, str) else node.value.decode("latin-1")
    return ""


def _constants(node: ast.JoinedStr) -> list[ast.Constant]:
    return [value for value in node.values if isinstance(value, ast.Constant)]


SHEETS = ("CSS", "DEFAULT_CSS")
"""Textual's names of style sheets."""


def _not_shown(nodes: list[ast.AST]) -> Iterator[ast.AST]:
    """Yield docstrings of modules, classes, functions and constants, declarations, patterns and style sheets."""
    for node in nodes:
        if isinstance(node, ast.Call) and _takes_pattern(node.func):
            yield from node.args[:1]
        if isinstance(node, ast.Call) and _declares(node.func):
            arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
            yield from (argument for argument in arguments if isinstance(argument, ast.Constant | ast.JoinedStr))
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in SHEETS:
            yield node.value
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node


def _takes_pattern(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == _RE


def _declares(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id in DECLARE_KEYS
    return isinstance(function, ast.Attribute) and function.attr in DECLARE_OPTIONS


FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] not in NOT_CHECKED]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_sentence_outside_words(path: Path) -> None:
    found = [f"{path.name}:{line}: {text!r}" for line, text in sentences(ast.parse(path.read_text()))]
    if path.relative_to(PACKAGE).as_posix() in NO_ENGLISH:
        assert found, "it has none any more: take it from the list"
    else:
        assert not found


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('x = "growth is off"', 1),
        ('x = f"{a} of the card"', 1),
        ('x = f"{a} of {b}"', 0),
        ('x = f"{a} is empty"', 1),
        ('x = f"started {since} ago"', 1),
        ('x = f"{a} {b} PgUp PgDn"', 0),
        ('x = b" bytes left out here"', 1),
        ('x = b"in use"', 0),
        ('x = "tfmemtop -- COMMAND --once --json"', 0),
        ('"""A docstring of many words."""', 0),
        ('def f():\n    """A docstring of many words."""\n    return "GPU 0"', 0),
        ('x = 1\n"""What this constant is for."""', 0),
        ('print("the pool is full")', 1),
        ('raise ValueError("two histories of one pool")', 1),
        ('Key("F", "F", "fit", "find the smallest limit")', 0),
        ('Binding("n", "next", description="the next match")', 0),
        ('Binding("n", "next", say("the next match"))', 1),
        ('Option("n", "the next match")', 1),
        ('parser.add_argument("--gpus", help="the GPUs to see")', 0),
        ('parser.add_argument("--gpus", help=gpus("the GPUs to see"))', 1),
        ('parser.add_argument_group("for the run").add_argument("--n", help=f"how many tries, {most}")', 0),
        ('CSS = "Screen { layout: vertical; color: red; }"', 0),
        ('re.compile("No space left on device")', 0),
        ('re.sub("a", "the text that is shown", x)', 1),
        ('x: "dict[int, tuple[float, bool]]"', 0),
    ],
)
def test_what_counts_as_a_sentence(source: str, count: int) -> None:
    assert len(list(sentences(ast.parse(source)))) == count
