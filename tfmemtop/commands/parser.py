"""Reads the command line: which command is meant, its options, and the program's own command line after ``--``.

Only the file of the command that is meant is imported. This keeps the start short.
"""

import argparse
import ast
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from tfmemtop import __version__
from tfmemtop.commands import DEFAULT, NAMES, ONCE, configuration
from tfmemtop.commands.refusal import Refusal
from tfmemtop.commands.saying import tell
from tfmemtop.words import command_line

_NEED_RUN = {command_line.FOR_RUN, command_line.FOR_ALERTS}
"""Groups of options that have no effect if no command is run."""

_TYPED_ONLY = {"--record", "--help", "--version", "-h", "-V"}
"""Options that the user's file of options cannot contain."""


class Arguments(argparse.Namespace):
    """The options that were typed for one command. Each command's own class declares its options and their types.

    ``command`` is the command line after ``--``; empty if there is none.
    """

    command: tuple[str, ...] = ()

    def check(self) -> None:
        """Check the options together.

        Raises:
            Refusal: two options contradict each other, or an option needs another one that is not given.
        """


class Trailing(Enum):
    """Whether a command line may follow ``--``."""

    NONE = "none"
    ALLOWED = "allowed"
    NEEDED = "needed"


class Call(NamedTuple):
    """The command that the user typed: ``run(arguments)`` carries it out and returns the exit code."""

    run: Callable[[Any], int]
    arguments: Arguments


@dataclass(frozen=True)
class Page:
    """The parts of a command's docstring: the line that describes it, the lines that show how to type it, the rest."""

    summary: str
    usages: tuple[str, ...]
    example: str
    text: str

    @classmethod
    def of(cls, docstring: str) -> "Page":
        """Parse *docstring*. The first line is the summary. ``usage: …`` and ``example: …`` mark lines of their own."""
        summary, *lines = docstring.strip().splitlines()
        marked = [tuple(line.split(": ", 1)) for line in lines if line.startswith(("usage: ", "example: "))]
        text = "\n".join(line for line in lines if not line.startswith(("usage: ", "example: ")))
        usages = tuple(value for key, value in marked if key == "usage")
        return cls(summary, usages, next((value for key, value in marked if key == "example"), ""), text.strip())


class ValueRefused(Refusal):
    """An option's value is not valid."""


class _Shown(Exception):
    """``--help`` or ``--version`` was given: print *lines*, and do nothing else."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self.lines = lines


class _Help(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        raise _Shown(parser.format_help().splitlines())


class _Version(argparse.Action):
    def __call__(self, *_: object) -> NoReturn:
        raise _Shown([f"tfmemtop {__version__}"])


class Parser(argparse.ArgumentParser):
    """The options of the command *name*; *docstring* is its help.

    A command sets ``arguments`` to its own class of arguments, and ``trailing`` if a command line may follow ``--``.
    """

    def __init__(self, name: str, docstring: str) -> None:
        self.name, self.page = name, Page.of(docstring)
        self.title = name
        """What the user types for the command. A command that is not typed by its name declares something else."""
        self.arguments: type[Arguments] = Arguments
        self.trailing = Trailing.NONE
        self.instead: dict[str, tuple[str, ...]] = {}
        """By another command's option: what the user can use here in its place."""
        super().__init__(
            prog=f"tfmemtop {name}",
            usage="\n       ".join(self.page.usages),
            description=f"{self.page.summary}\n\n{self.page.text}".strip(),
            epilog=f"example: {self.page.example}" if self.page.example else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            add_help=False,
        )

    @property
    def flags(self) -> dict[str, bool]:
        """Each option of the command, and whether it takes a value."""
        return {flag: action.nargs != 0 for action in self._actions for flag in action.option_strings}

    def add_common(self) -> None:
        """Add the options that every command has. They are the last in the help."""
        other = self.add_argument_group(command_line.OTHER)
        other.add_argument("-h", "--help", action=_Help, nargs=0, help="print this and exit")
        other.add_argument("-V", "--version", action=_Version, nargs=0, help="print the version and exit")

    def format_help(self) -> str:
        if self.name == DEFAULT:  # the help of all commands
            self.description = f"{command_line.OPENING}\n\n{_overview()}"
            self.epilog = f"example: {self.page.example}\n\n{command_line.CLOSING}"
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        raise ValueRefused(command_line.not_valid(message, self.title, self.page.example, self._help))

    @property
    def _help(self) -> str:
        return f"tfmemtop {self.name} --help" if self.title == self.name else "tfmemtop --help"

    def read(self, head: Sequence[str], dashes: bool, command: tuple[str, ...]) -> Arguments:
        """Parse and check the words in *head*; *command* is what follows ``--``. *dashes*: there was a ``--``.

        Raises:
            Refusal: the words are not valid; the message has the reason.
        """
        arguments = self.arguments(command=command)
        if dashes and self.trailing is Trailing.NONE:
            raise Refusal(command_line.takes_no_command(self.title))
        if dashes and not command:
            raise Refusal(command_line.NONE_AFTER_DASHES)
        _, rest = self.parse_known_intermixed_args(list(head), arguments)
        for word in rest:
            self._refuse(word)
        self._add_configured(arguments)
        if self.trailing is Trailing.NEEDED and not command:
            raise Refusal(command_line.needs_command(self.title, self.page.example))
        if command and not command[0]:
            raise Refusal(command_line.EMPTY_AFTER_DASHES)
        arguments.check()
        return arguments

    def _add_configured(self, arguments: Arguments) -> None:
        """Set the options that the user did not type and that are in the user's file of options."""
        nothing_runs = self.trailing is Trailing.ALLOWED and not arguments.command
        without = {command_line.OTHER} | (_NEED_RUN if nothing_runs else set())
        groups = [group for group in self._action_groups if group.title not in without]
        mine = {action.dest for group in groups for action in group._group_actions} - vars(arguments).keys()
        entries = configuration.read() if mine else {}
        if not entries:
            return
        live = parser_of(DEFAULT)
        said = live.arguments()
        known = {flag: takes for flag, takes in live.flags.items() if flag not in _TYPED_ONLY}
        try:
            live.parse_known_args(configuration.words(entries, known), said)
        except ValueRefused as refusal:
            raise Refusal(f"{configuration.path()}: {refusal}") from None
        for name in mine & {name.replace("-", "_") for name in entries}:
            setattr(arguments, name, getattr(said, name))

    def _refuse(self, word: str) -> NoReturn:
        if not word.startswith("-"):
            its_help = self._help if self.trailing is Trailing.NONE else None
            raise Refusal(command_line.no_such_word(self.title, word, its_help))
        flag = _flag(word)
        owners = [parser.title for parser in map(parser_of, NAMES) if flag in parser.flags]
        if not owners:
            raise Refusal(command_line.no_option(flag, _closest(flag, self.flags), self._help))
        here = None if self.name == DEFAULT else self.title
        named = ["tfmemtop -- COMMAND" if owner == "tfmemtop" else owner for owner in owners]
        raise Refusal(command_line.foreign_option(flag, named, here, self.instead.get(flag, ())))


def parse(argv: Sequence[str]) -> Call:
    """Parse the words after ``tfmemtop``.

    Raises:
        Refusal: the words are not valid; the message has the reason.
    """
    split = argv.index("--") if "--" in argv else len(argv)
    dashes = split < len(argv)
    name, head = _choose(list(argv[:split]), dashes)
    try:
        arguments = parser_of(name).read(head, dashes, tuple(argv[split + 1 :]))
    except _Shown as shown:
        return Call(partial(_show, shown.lines), Arguments())
    return Call(_module(name).run, arguments)


def parser_of(name: str) -> Parser:
    """Return the parser that the command *name* declares."""
    module = _module(name)
    parser = Parser(name, module.__doc__)
    module.declare(parser)
    parser.add_common()
    return parser


def _module(name: str) -> Any:
    return import_module(f"tfmemtop.commands.{name}")


def _show(lines: list[str], _: Arguments) -> int:
    tell(lines)
    return 0


def _choose(head: list[str], dashes: bool) -> tuple[str, list[str]]:
    """Return the command that *head* names, and *head* without that name. Options may stand before the name.

    Raises:
        Refusal: the first word is not a command, or stands beside ``--once``.
    """
    if ONCE in head:
        without = [word for word in head if word != ONCE]
        place = next(_words(without), None)
        if place is None:
            return ONCE.removeprefix("--"), without
        name = without[place]
        if name in NAMES and ONCE in parser_of(name).flags:  # the command has an option of that name
            return name, [word for word in head if word != name]
        raise Refusal(command_line.once_alone(name))
    place = next(_words(head), None)
    if place is None:
        return DEFAULT, head
    name = head[place]
    if name in NAMES and parser_of(name).title == name:
        return name, head[:place] + head[place + 1 :]
    if not dashes:
        program = shlex.join(["tfmemtop", *head[:place], "--", *head[place:]])
        if meant := _closest(name, NAMES):
            raise Refusal(command_line.no_command(name, meant, program))
        raise Refusal(command_line.dashes_missing(program))
    raise Refusal(command_line.no_command_before_dashes(name))


def _closest(word: str, known: Iterable[str]) -> str | None:
    """Return the one of *known* that resembles *word* most; ``None`` if none is similar enough."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, set(known), 1, cutoff=0.7)), None)


def _words(head: list[str]) -> Iterator[int]:
    """Yield the places in *head* of the words that are neither an option nor an option's value.

    It stops at an option that no command has.
    """
    place = 0
    flags: dict[str, bool] = {}
    while place < len(head):
        if not head[place].startswith("-"):
            yield place
            place += 1
            continue
        flag = _flag(head[place])
        if flag not in flags:
            flags = parser_of(DEFAULT).flags
        if flag not in flags:
            flags = {flag: takes for name in NAMES for flag, takes in parser_of(name).flags.items()}
        if flag not in flags:
            return
        place += 2 if flags[flag] and flag == head[place] else 1


def _flag(word: str) -> str:
    """Return the option in *word*, without a value that is joined to it, as in ``--to=1G`` or ``-oFILE``."""
    return word.partition("=")[0] if word.startswith("--") else word[:2]


def _overview() -> str:
    """Return a list of the commands: how to type each of them, and what it does."""
    pages = [Page.of(_docstring(name)) for name in NAMES if name != DEFAULT]
    lines = [line for page in pages for line in (*(f"  {usage}" for usage in page.usages), f"      {page.summary}")]
    return "\n".join([command_line.COMMANDS, *lines])


def _docstring(name: str) -> str:
    """Return the docstring of a command's file, without importing it: an import of all commands would take long."""
    return ast.get_docstring(ast.parse(Path(__file__).with_name(f"{name}.py").read_text("utf-8"))) or ""
