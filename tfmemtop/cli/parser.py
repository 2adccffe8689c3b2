"""Reads the command line: which command is meant, its options, and the user's own command line after ``--``.

A command's file is imported when its options are parsed or shown. This keeps the start short.
"""

import argparse
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from tfmemtop import __version__
from tfmemtop.cli import NAMES, Refusal
from tfmemtop.cli.output import print_lines, say
from tfmemtop.home import user_folder, writable_output_folder

_TYPED_ONLY = {"--record", "--once", "--json", "--loop", "--help", "--version"}
"""Options that the file cannot contain."""
_LARGEST = 64 * 1024  # bytes: a file of options is far smaller


def path() -> Path:
    """Return the path of the file, whether it exists or not."""
    return user_folder("XDG_CONFIG_HOME", ".config") / "tfmemtop" / "config.toml"


def configured(parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Return the values in the file by the names of their attributes, as *parser* parses them.

    One line says so where the user's folders cannot be used, as where there is no home folder.

    Raises:
        Refusal: the file is too large, or is not TOML, or an entry is not valid.
    """
    entries: Mapping[str, object] = {}
    try:
        entries = _read()
        writable_output_folder()
    except OSError as error:
        left = "kept sessions" if entries else "settings and kept sessions"
        say(f"{error.filename}: {error.strerror}; {left} are left out")
    if not entries:
        return {}
    try:
        found = parser.parse_known_args(list(_words(entries, parser)))[0]
    except Refusal as refusal:
        raise Refusal(f"{path()}: {refusal}") from None
    return {name: value for name, value in vars(found).items() if name.replace("_", "-") in entries}


def _read() -> Mapping[str, object]:
    file = path()
    try:
        with file.open("rb") as opened:
            text = opened.read(_LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    if len(text) > _LARGEST:
        raise Refusal(f"{file}: the file is larger than {_LARGEST // 1024} KiB")
    from msgspec import DecodeError, toml  # imported only here, because most users have no such file

    try:
        return toml.decode(text.decode(), type=dict[str, object])
    except (UnicodeDecodeError, DecodeError) as error:
        raise Refusal(f"{file}: {error}") from error


def _words(entries: Mapping[str, object], parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield *entries* as words of a command line."""
    takes_value = {flag: action.nargs != 0 for action in parser._actions for flag in action.option_strings}
    for name, value in entries.items():
        flag = f"--{name}"
        if flag not in takes_value or flag in _TYPED_ONLY:
            raise Refusal(f"there is no option {name!r}; see tfmemtop help config")
        if takes_value[flag] and isinstance(value, str | int | float) and not isinstance(value, bool):
            yield f"{flag}={value}"
        elif takes_value[flag]:
            raise Refusal(f'{name} has to be a number, or text in quotes such as "4G"')
        elif not isinstance(value, bool):
            raise Refusal(f"{name} has to be true or false")
        elif value:
            yield flag


FOR_RUN, FOR_ALERTS = "for the run", "for alerts"
"""Titles of the groups of options that have no effect if no program is run."""

_OTHER = "other"
_DEFAULT = "live"  # the file of the command that is meant if none is named
_MISSING = "the following arguments are required: "  # the beginning of argparse's message


class BaseArguments(argparse.Namespace):
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
    arguments: BaseArguments


class Parser(argparse.ArgumentParser):
    """The options of ``tfmemtop`` itself, or of one of its commands. *prog* is what the user types for it.

    The docstring of the command's file is the help. A command sets ``arguments`` to
    its own class of arguments, and ``trailing`` if a command line may follow ``--``.
    """

    def __init__(self, prog: str, **given: Any) -> None:
        super().__init__(
            prog=prog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            argument_default=argparse.SUPPRESS,
            allow_abbrev=False,
            add_help=False,
            **given,
        )
        self.color = False  # of Python 3.14
        self.title = prog.removeprefix("tfmemtop ")
        self.trailing = Trailing.NONE
        self.arguments: type[BaseArguments] = BaseArguments
        self.module: Any = None
        self.example = ""

    def load(self) -> "Parser":
        """Import the file of the command, and declare its options."""
        if self.module is None:
            self.module = import_module(f"tfmemtop.cli.{_DEFAULT if self.title == 'tfmemtop' else self.title}")
            lines = self.module.__doc__.strip().splitlines()
            marks = ("usage: ", "example: ")
            usages, examples = ([line[len(mark) :] for line in lines if line.startswith(mark)] for mark in marks)
            self.usage, self.example = "\n       ".join(usages), next(iter(examples), "")
            self.description = "\n".join(line for line in lines if not line.startswith(marks))
            self.epilog = f"example: {self.example}"
            self.module.declare(self)
            other = self.add_argument_group(_OTHER)
            other.add_argument("-h", "--help", action="help", help="print this and exit")
            version = f"tfmemtop {__version__}"
            other.add_argument("-V", "--version", action="version", version=version, help="print the version and exit")
        return self

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.load()
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        if message.startswith(_MISSING):
            raise Refusal(f"{self.title} needs {message[len(_MISSING) :]}; for example: {self.example}")
        raise Refusal(f"{message.removeprefix('argument ')}; see {self.prog} --help")

    def _print_message(self, message: str, file: Any = None) -> None:
        print_lines(message.splitlines())

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.nargs == argparse.PARSER and value not in NAMES:
            raise _UnknownCommand(value)
        super()._check_value(action, value)

    def dests(self) -> dict[str, str]:
        """Return the options and arguments by the names of their attributes."""
        return {action.dest: next(iter(action.option_strings), "") for action in self._actions}

    def flags(self) -> list[str]:
        """Return all options, in all their spellings."""
        return [flag for action in self._actions for flag in action.option_strings]

    def configurable(self, *, runs: bool) -> set[str]:
        """Return the options that the user's file may set, by their attributes. *runs*: there is a command after --."""
        without = {_OTHER} | ({FOR_RUN, FOR_ALERTS} if self.trailing is Trailing.ALLOWED and not runs else set())
        groups = [group for group in self._action_groups if group.title not in without]
        return {action.dest for group in groups for action in group._group_actions if action.option_strings}

    def refuse(self, word: str) -> NoReturn:
        """Raise the :class:`Refusal` of a *word* that is neither an option nor an argument here."""
        flag = word.partition("=")[0] if word.startswith("--") else word[:2]
        if not word.startswith("-"):
            hint = f"see {self.prog} --help" if self.trailing is Trailing.NONE else "put -- before the command"
            raise Refusal(f"{self.title} does not understand {word!r}; {hint}")
        closest = _closest(flag, self.flags())
        raise Refusal(f"{self.title} has no option {flag}; {closest or f'see {self.prog} --help'}")


class _UnknownCommand(Exception):
    """The name of a command is expected, and there is another word."""

    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


def parsers() -> dict[str, Parser]:
    """Return the parser of each command by its name. That of ``tfmemtop`` itself, with the others in it, is the first.

    None of them is loaded.
    """
    root = Parser("tfmemtop")
    title = "commands (tfmemtop COMMAND --help says more)"
    commands = root.add_subparsers(
        title=title, dest="subcommand", metavar="COMMAND", prog="tfmemtop", parser_class=Parser
    )
    return {"tfmemtop": root} | {name: commands.add_parser(name, help=_summary(name)) for name in NAMES}


def parse(argv: Sequence[str]) -> Call:
    """Parse the words after ``tfmemtop``. ``--help`` and ``--version`` are carried out at once.

    Raises:
        Refusal: the words are not valid; the message has the reason.
        SystemExit: ``--help`` or ``--version`` was given.
    """
    split = argv.index("--") if "--" in argv else len(argv)
    head, command = list(argv[:split]), tuple(argv[split + 1 :])
    known = parsers()
    root = known["tfmemtop"]
    try:
        typed, rest = root.parse_known_args(head)
    except _UnknownCommand as unknown:
        _refuse_command(root, head, unknown.word, dashes=split < len(argv))
    given = vars(typed)
    parser = known[given.pop("subcommand") or "tfmemtop"]
    for word in rest:
        parser.refuse(word)
    for dest in given.keys() - parser.dests():
        parser.refuse(root.dests()[dest])  # it was typed before the name of the command
    if split < len(argv) and parser.trailing is Trailing.NONE:
        raise Refusal(f"{parser.title} takes no command after --")
    if split < len(argv) and not command:
        raise Refusal("there is no command after --; for example: tfmemtop -- python train.py")
    if parser.trailing is Trailing.NEEDED and not command:
        raise Refusal(f"{parser.title} needs a command; for example: {parser.example}")
    if command and not command[0]:
        raise Refusal("the command after -- is empty")
    arguments: BaseArguments = parser.arguments(command=command, **given)
    arguments.check()
    if others := parser.configurable(runs=bool(command)) - given.keys():
        for dest, value in configured(root).items():
            if dest in others:
                setattr(arguments, dest, value)
    return Call(parser.module.run, arguments)


def _refuse_command(root: Parser, head: list[str], word: str, *, dashes: bool) -> NoReturn:
    """Raise the :class:`Refusal` of *word*, which stands in *head* where a command's name is expected."""
    place = head.index(word)
    for before in head[:place]:
        if before.startswith("-") and before.partition("=")[0] not in root.flags():
            root.refuse(before)  # the word may be the value of this option
    if dashes:
        raise Refusal(f"{word!r} before -- is not a command of tfmemtop; see tfmemtop --help")
    program = shlex.join(["tfmemtop", *head[:place], "--", *head[place:]])
    if closest := _closest(word, NAMES):
        raise Refusal(f"there is no command {word!r}; {closest} To run a program of that name: {program}")
    raise Refusal(f"put -- before the command: {program}")


def _closest(word: str, known: Iterable[str]) -> str:
    """Return a question that names the one of *known* that resembles *word* most; empty if none is similar enough."""
    from difflib import get_close_matches  # imported only here, because it takes a while to load

    found = get_close_matches(word, set(known), 1, cutoff=0.7)
    return f"did you mean {found[0]}?" if found else ""


def _summary(name: str) -> str:
    """Return the first line of a command's docstring, without importing the file: all imports would take long."""
    with Path(__file__).with_name(f"{name}.py").open(encoding="utf-8") as file:
        return file.readline().strip().strip('"')
