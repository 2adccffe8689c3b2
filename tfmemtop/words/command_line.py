"""The text of ``--help`` about the command line as a whole, and the errors for command lines that are refused. Pure."""

from collections.abc import Iterable, Sequence

OPENING = """\
Watch and control the GPU memory of a TensorFlow program while it runs.
Without a COMMAND, watch the GPUs and the processes on them."""

CLOSING = """\
SIZE is a number with K, M, G or T (powers of 1024; 4G, 3500M), or a share of the memory such as 50%.
Without a GPU, the memory limit and the allocator apply to TensorFlow's memory pool for the CPU.

exit code: the program's own; 128+n if signal n ended it; 2 if the command line is not valid;
126 if the program cannot be started; 127 if it does not exist. More: tfmemtop help exit-codes"""

COMMANDS = "commands (tfmemtop COMMAND --help says more):"
FOR_RUN = "for the run"
FOR_ALERTS = "for alerts"
OTHER = "other"
"""Titles of groups of options."""

_MISSING = "the following arguments are required: "  # the beginning of argparse's message


def not_valid(message: str, title: str, example: str, its_help: str) -> str:
    """Return the error for argparse's *message* about command *title*: a value is not valid, or a word is missing."""
    missing = message.removeprefix(_MISSING)
    if missing != message:
        return f"{title} needs {missing}; for example: {example}"
    return f"{message.removeprefix('argument ')}; see {its_help}"


# The program's own command line.

NONE_AFTER_DASHES = "there is no command after --; for example: tfmemtop -- python train.py"
EMPTY_AFTER_DASHES = "the command after -- is empty"


def takes_no_command(title: str) -> str:
    """Return the error for a command that takes no command of the user, and was given one."""
    return f"{title} takes no command after --"


def needs_command(title: str, example: str) -> str:
    """Return the error for a command that needs a command of the user, and was given none."""
    return f"{title} needs a command; for example: {example}"


def option_needs_command(flag: str) -> str:
    """Return the error for an option about the user's command, where there is none."""
    return needs_command(flag, f"tfmemtop {flag} … -- python train.py")


# Words before the user's command.


def no_such_word(title: str, word: str, its_help: str | None) -> str:
    """Return the error for a *word* that is neither an option nor an argument of the command *title*.

    *its_help* is given if the command takes no command of the user.
    """
    return f"{title} does not understand {word!r}; " + (f"see {its_help}" if its_help else "put -- before the command")


def no_option(flag: str, closest: str | None, its_help: str) -> str:
    """Return the error for an option that no command has."""
    return f"there is no option {flag}; {_meant(closest) if closest else f'see {its_help}'}"


def foreign_option(flag: str, owners: Iterable[str], title: str | None, instead: Sequence[str]) -> str:
    """Return the error for an option of the commands *owners* that command *title* does not have.

    *title* is ``None`` if no command was named. *instead* are the options to use instead.
    """
    here = f", not of {title}" if title else ""
    better = f"; use {' and '.join(instead)}" if instead else ""
    return f"{flag} is an option of {', '.join(owners)}{here}{better}"


def once_alone(word: str) -> str:
    """Return the error for another command beside ``--once``."""
    return f"--once goes with no other command such as {word}"


def no_command(name: str, closest: str, program: str) -> str:
    """Return the error for a command that tfmemtop does not have, where a similar one exists.

    *program* is the command line that runs a program of that name.
    """
    return f"there is no command {name!r}; {_meant(closest)} To run a program of that name: {program}"


def dashes_missing(program: str) -> str:
    """Return the error for a user's command where a command of tfmemtop is expected.

    *program* is the command line that runs it.
    """
    return f"put -- before the command: {program}"


def no_command_before_dashes(name: str) -> str:
    """Return the error for a name before ``--`` that is not a command of tfmemtop."""
    return f"{name!r} before -- is not a command of tfmemtop; see tfmemtop --help"


def _meant(closest: str) -> str:
    return f"did you mean {closest}?"


# The user's file of options.


def file_too_large(path: str, most: int) -> str:
    """Return the error for a file of options that is larger than *most* KiB."""
    return f"{path}: the file is larger than {most} KiB"


def no_configured_option(path: str, name: str) -> str:
    """Return the error for a file that contains an option *name* that is not allowed there."""
    return f"{path}: there is no option {name!r}; see tfmemtop help config"


def wrong_kind(path: str, name: str, *, takes_value: bool) -> str:
    """Return the error for an option whose value has the wrong type; *takes_value* is false for a switch."""
    expected = 'a number, or text in quotes such as "4G"' if takes_value else "true or false"
    return f"{path}: {name} has to be {expected}"


# The manual.


def no_topic(name: str, topics: Iterable[str]) -> str:
    """Return the error for a page that the manual does not have."""
    return f"there is no topic {name!r}; choose one of: {', '.join(topics)}"


def topics(pages: Sequence[tuple[str, str]]) -> list[str]:
    """Return the list of the manual's pages as lines; *pages* are pairs of a name and what the page is about."""
    width = max(len(name) for name, _ in pages)
    lines = [f"  {name:{width}}  {about}" for name, about in pages]
    options = "tfmemtop --help shows the commands and their options."
    return ["tfmemtop help TOPIC shows one of these pages:", "", *lines, "", options]
