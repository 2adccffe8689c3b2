"""Show a page of the manual; without a TOPIC, list the pages.

usage: tfmemtop help [TOPIC]
example: tfmemtop help settings
"""

import re
import shutil
import sys
from typing import ClassVar

from tfmemtop.cli import NAMES, Refusal
from tfmemtop.cli.output import print_coloured, print_lines, takes_colours
from tfmemtop.cli.parser import BaseArguments, argument, parsers
from tfmemtop.help import summary, topic, topics

_WIDTH = 100  # columns; longer lines are hard to read
_PICTURE = re.compile(r"^!\[.*\n\n?", re.MULTILINE)


class HelpArguments(BaseArguments):
    """``topic`` is the name of a page of the manual, or of a command."""

    topic: str | None = argument("TOPIC", "a page of the manual, or a command")


ARGUMENTS = HelpArguments


def run(arguments: HelpArguments) -> int:
    """Print the page, the help of a command, or the list of pages; return 0.

    Raises:
        Refusal: there is no such page or command.
    """
    name = arguments.topic
    if name is None:
        print_lines(contents())
    elif name in topics():
        print_coloured(rendered(topic(name), _columns(), coloured=takes_colours()))
    elif name in NAMES:
        print_lines(parsers()[name].load().format_help().splitlines())
    else:
        raise Refusal(f"there is no topic {name!r}; choose one of: {', '.join(topics())}")
    return 0


def contents() -> list[str]:
    """Return the list of pages as lines."""
    width = max(map(len, topics()))
    pages = [f"  {name:{width}}  {summary(name)}" for name in topics()]
    closing = "tfmemtop --help shows the commands and their options."
    return ["tfmemtop help TOPIC shows one of these pages:", "", *pages, "", closing]


def rendered(markdown: str, width: int, *, coloured: bool = False) -> list[str]:
    """Return *markdown* as lines of text, at most *width* columns wide. Pictures are left out.

    No text in a table is cut. *coloured*: with escape sequences, such as those for bold text.
    """
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.markdown import Markdown, TableElement
    from rich.table import Table

    class Folded(TableElement):
        """A table that folds a word which is wider than its column."""

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            for table in super().__rich_console__(console, options):
                for column in table.columns if isinstance(table, Table) else ():
                    column.overflow = "fold"
                yield table

    class Page(Markdown):
        elements: ClassVar = {**Markdown.elements, "table_open": Folded}

    console = Console(width=width, force_terminal=coloured, color_system="standard" if coloured else None)
    with console.capture() as captured:
        console.print(Page(_PICTURE.sub("", markdown), hyperlinks=False))
    return [line.rstrip() for line in captured.get().splitlines()]


def _columns() -> int:
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    return min(_WIDTH, shutil.get_terminal_size().columns) if on_terminal else _WIDTH
