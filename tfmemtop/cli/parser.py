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

FOR_RUN, FOR_ALERTS = "for the run", "for alerts"
"""Titles of the groups of options that have no effect if no program is run."""

_OTHER = "other"
_DEFAULT = "live"  # the file of the command that is meant if none is named
_MISSING = "the following arguments are required: "  # the beginning of argparse's message

_TYPED_ONLY = {"--record", "--once", "--json", "--loop", "--help", "--version"}
"""Options that the file of options cannot contain."""
_LARGEST = 64 * 1024  # bytes: a file of options is far smaller


class Option:
    """An option or an argument of a command: an attribute in the command's class of arguments.

    ``group`` is its title in the help, empty for an argument. An instance of that class has the *default*, unless
    another value was typed. The other values are those of ``ArgumentParser.add_argument``.
    """

    def __init__(self, group: str, flags: Sequence[str], default: Any, **given: Any) -> None:
        self.group = group
        self.name = ""
        self._flags = flags
        self._default = default
        self._given = given

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> Any:
        return self if instance is None else self._default

    @property
    def flag(self) -> str:
        """What the user types for it, such as ``--memory-limit``."""
        return self._flags[-1] if self._flags else f"--{self.name.replace('_', '-')}"

    def add_to(self, parser: "argparse.ArgumentParser | argparse._ArgumentGroup") -> None:
        """Declare it to argparse."""
        if self.group:
            parser.add_argument(*(self._flags or [self.flag]), dest=self.name, **self._given)
        else:
            parser.add_argument(self.name, **self._given)


def option(group: str, help: str, *flags: str, default: Any = None, **given: Any) -> Any:
    """Declare an option with a value. Without *flags*, its flag is made from the attribute's name."""
    return Option(group, flags, default, help=help, **given)


def switch(group: str, help: str) -> Any:
    """Declare an option without a value."""
    return Option(group, (), False, help=help, action="store_true")


def argument(metavar: str, help: str, *, needed: bool = False, default: Any = None, **given: Any) -> Any:
    """Declare a word without a flag, which the user may leave out unless it is *needed*."""
    return Option("", (), default, metavar=metavar, help=help, **({} if needed else {"nargs": "?"}) | given)


class Trailing(Enum):
    """Whether a command line may follow ``--``."""

    NONE = "none"
    ALLOWED = "allowed"
    NEEDED = "needed"


class BaseArguments(argparse.Namespace):
    """The options that were typed for one command. Each command's own class declares its options and their types.

    ``command`` is the command line after ``--``; empty if there is none.
    """

    trailing = Trailing.NONE
    command: tuple[str, ...] = ()

    @classmethod
    def options(cls) -> Iterator[Option]:
        """Yield the options: those of the bases first, unless a derived class replaces them."""
        attributes = {name: value for each in reversed(cls.__mro__) for name, value in vars(each).items()}
        return (value for value in attributes.values() if isinstance(value, Option))

    def typed(self) -> list[Option]:
        """Return the options that were typed."""
        return [each for each in self.options() if each.name in vars(self)]

    def check(self) -> None:
        """Check the options together.

        Raises:
            Refusal: two options contradict each other, or an option needs another one that is not given.
        """


class Call(NamedTuple):
    """The command that the user typed: ``run(arguments)`` carries it out and returns the exit code."""

    run: Callable[[Any], int]
    arguments: BaseArguments


class Parser(argparse.ArgumentParser):
    """The options of ``tfmemtop`` itself, or of one of its commands. *prog* is what the user types for it.

    The docstring of the command's file is the help. Its ``ARGUMENTS`` is the class that declares the options.
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
        self.arguments: type[BaseArguments] = BaseArguments
        self.module: Any = None
        self.example = ""

    def load(self) -> "Parser":
        """Import the file of the command, and declare its options."""
        if self.module is None:
            self.module = import_module(f"tfmemtop.cli.{_DEFAULT if self.title == 'tfmemtop' else self.title}")
            self.arguments = getattr(self.module, "ARGUMENTS", BaseArguments)
            lines = self.module.__doc__.strip().splitlines()
            marks = ("usage: ", "example: ")
            usages, examples = ([line[len(mark) :] for line in lines if line.startswith(mark)] for mark in marks)
            self.usage, self.example = "\n       ".join(usages), next(iter(examples), "")
            self.description = "\n".join(line for line in lines if not line.startswith(marks))
            self.epilog = f"example: {self.example}"
            groups: dict[str, argparse._ArgumentGroup] = {}
            for each in self.arguments.options():
                if each.group and each.group not in groups:
                    groups[each.group] = self.add_argument_group(each.group)
                each.add_to(groups[each.group] if each.group else self)
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

    def flags(self) -> list[str]:
        """Return all options, in all their spellings."""
        return [flag for action in self._actions for flag in action.option_strings]

    def refuse(self, word: str) -> NoReturn:
        """Raise the :class:`Refusal` of a *word* that is neither an option nor an argument here."""
        flag = word.partition("=")[0] if word.startswith("--") else word[:2]
        if not word.startswith("-"):
            alone = self.arguments.trailing is Trailing.NONE
            hint = f"see {self.prog} --help" if alone else "put -- before the command"
            raise Refusal(f"{self.title} does not understand {word!r}; {hint}")
        closest = _closest(flag, self.flags())
        raise Refusal(f"{self.title} has no option {flag}; {closest or f'see {self.prog} --help'}")


class _UnknownCommand(Exception):
    """The name of a command is expected, and there is another word, which is the exception's message."""


def parsers(names: Iterable[str] = NAMES) -> dict[str, Parser]:
    """Return the parsers of the commands *names*, by name, after that of ``tfmemtop`` itself, which contains them.

    None of them is loaded.
    """
    root = Parser("tfmemtop")
    title = "commands (tfmemtop COMMAND --help says more)"
    commands = root.add_subparsers(
        title=title, dest="subcommand", metavar="COMMAND", prog="tfmemtop", parser_class=Parser
    )
    return {"tfmemtop": root} | {name: commands.add_parser(name, help=_summary(name)) for name in names}


def parse(argv: Sequence[str]) -> Call:
    """Parse the words after ``tfmemtop``. ``--help`` and ``--version`` are carried out at once.

    Raises:
        Refusal: the words are not valid; the message has the reason.
        SystemExit: ``--help`` or ``--version`` was given.
    """
    split = argv.index("--") if "--" in argv else len(argv)
    head, command = list(argv[:split]), tuple(argv[split + 1 :])
    # An option may be --help, which lists all commands. To make the parsers of all would delay the first picture.
    known = parsers(NAMES if any(word.startswith("-") for word in head) else [name for name in NAMES if name in head])
    root = known["tfmemtop"]
    try:
        typed, rest = root.parse_known_args(head)
    except _UnknownCommand as unknown:
        _refuse_command(root, head, str(unknown), dashes=split < len(argv))
    given = vars(typed)
    parser = known[given.pop("subcommand") or "tfmemtop"]
    for word in rest:
        parser.refuse(word)
    known_here = {each.name for each in parser.arguments.options()}
    for before in root.arguments.options():
        if before.name in given.keys() - known_here:
            parser.refuse(before.flag)  # it was typed before the name of the command
    _check_command(parser, command, dashes=split < len(argv))
    arguments = parser.arguments(command=command, **given)
    arguments.check()
    _configure(arguments, root)
    return Call(parser.module.run, arguments)


def _check_command(parser: Parser, command: tuple[str, ...], *, dashes: bool) -> None:
    """Check that the *command* after ``--`` is there if it has to be, and only then.

    Raises:
        Refusal: it is not.
    """
    trailing = parser.arguments.trailing
    if dashes and trailing is Trailing.NONE:
        raise Refusal(f"{parser.title} takes no command after --")
    if dashes and not command:
        raise Refusal("there is no command after --; for example: tfmemtop -- python train.py")
    if trailing is Trailing.NEEDED and not command:
        raise Refusal(f"{parser.title} needs a command; for example: {parser.example}")
    if command and not command[0]:
        raise Refusal("the command after -- is empty")


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


# The file of options that the user has set for every run.


def _configure(arguments: BaseArguments, root: Parser) -> None:
    """Give *arguments* the values in the user's file, as *root* parses them, for options that were not typed.

    One line says so where the user's folders cannot be used, as where there is no home folder.

    Raises:
        Refusal: the file is too large, or is not TOML, or an entry is not valid.
    """
    without = (FOR_RUN, FOR_ALERTS) if arguments.trailing is Trailing.ALLOWED and not arguments.command else ()
    others = {each.name for each in arguments.options() if each.group and each.group not in without}
    if not others - vars(arguments).keys():
        return
    entries: Mapping[str, object] = {}
    path = user_folder("XDG_CONFIG_HOME", ".config") / "tfmemtop" / "config.toml"
    try:
        entries = _read(path)
        writable_output_folder()
    except OSError as error:
        left = "kept sessions" if entries else "settings and kept sessions"
        say(f"{error.filename}: {error.strerror}; {left} are left out")
    try:
        found = vars(root.parse_known_args(list(_words(entries, root)))[0])
    except Refusal as refusal:
        raise Refusal(f"{path}: {refusal}") from None
    for name in others & found.keys() - vars(arguments).keys():
        setattr(arguments, name, found[name])


def _read(file: Path) -> Mapping[str, object]:
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
