"""Every key, in one table: bindings, footer and help are made from it."""

from dataclasses import dataclass

from tfmemtop.ui.draw.palette import Glyphs


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the app. ``keys`` are Textual's names for it and its alternatives; the first is shown as ``shown``.

    ``action`` is an action of the app, or, with ``screen.`` before it, of the current screen. It is empty for
    a key that a panel handles.

    ``footer`` is the key's word in the last line; empty if the key is not shown there. Where the screen is too
    narrow for all of them, the keys with the highest ``rank`` are left out first.
    """

    keys: str
    shown: str
    action: str
    help: str
    footer: str = ""
    group: str = "screen"
    rank: int = 0
    steers: bool = False  # changes the script or a process; with --readonly and in a replay it does nothing
    of_run: bool = False  # shows something of a run
    replay: bool = False  # in replays only
    help_to_change: str = ""  # comes after ``help`` where the script may be changed

    @property
    def name(self) -> str:
        """Textual's name for the key, not for an alternative."""
        return self.keys.partition(",")[0]

    @property
    def needs_run(self) -> bool:
        """Whether the key has no effect before a script runs or a process is read from outside."""
        return self.of_run or self.group == "run"


KEYS: tuple[Key, ...] = (
    Key("f1,question_mark,h", "F1", "help", "all keys", "help", rank=-1),
    Key("R", "R", "relaunch", "relaunch the script with the next settings", "relaunch", "run", steers=True),
    Key("G", "G", "growth", "growth of the next run: on, off, the script's own", "growth", "run", steers=True, rank=1),
    Key("L", "L", "limit", "memory limit of the next run", "limit", "run", steers=True),
    Key("A", "A", "allocator", "allocator of the next run", "allocator", "run", steers=True, rank=5),
    Key("V", "V", "gpus", "GPUs the next run may see", "GPUs", "run", steers=True, rank=4),
    Key("D", "D", "xla_report", "XLA's report of its buffers in the next run", group="run", steers=True),
    Key("E", "E", "arguments", "command line and environment of the next run", "arguments", "run", steers=True, rank=8),
    Key("H", "H", "runs", "the runs of this session, side by side", "runs", "run", rank=3),
    Key("F", "F", "fit", "find by trying the smallest memory limit that works", "fit", "run", steers=True, rank=2),
    Key("i", "i", "screen.type", "type into the script's terminal; Ctrl-] ends it", group="run", steers=True),
    Key("W", "W", "why", "the findings at length, with what helps; y copies the lines for the script", "why"),
    Key("O", "O", "screen.toggle_output", "show or hide the output", "output", rank=9, of_run=True),
    Key("M", "M", "screen.map", "look inside the pool: its chunks, how it grew, why it ran out", "map", of_run=True),
    Key("B", "B", "screen.holders", "who holds the memory at a step's peak", "holders", rank=2, of_run=True),
    Key(
        "X",
        "X",
        "screen.whatif",
        "what other settings would do to the newest run",
        "whatif",
        rank=3,
        of_run=True,
        help_to_change="; Enter takes one",
    ),
    Key("P", "P", "screen.toggle_allocators", "show or hide the allocators"),
    Key("left_square_bracket", "[", "screen.span(-1)", "graph: a shorter time"),
    Key("right_square_bracket", "]", "screen.span(1)", "graph: a longer time"),
    Key("w", "w", "screen.whole", "graph: the whole run, or the newest minutes", "whole", rank=10, of_run=True),
    Key("s", "s", "screen.scale", "graph: scale auto, pinned, whole card, by in use", "scale", rank=7),
    Key("S", "S", "picture", "write the picture of the screen into a file, as SVG or text"),
    Key("Z", "Z", "freeze", "freeze the screen, or let it go on"),
    Key("plus,equals_sign", "+", "pace(-1)", "redraw twice as often"),
    Key("minus", "-", "pace(1)", "redraw half as often"),
    Key("tab", "Tab", "app.focus_next", "go to the next panel"),
    Key("slash,f4", "/", "screen.filter", "filter the processes", "filter", "processes", rank=6),
    Key("space", "Space", "play", "pause, or play on; at the end, play again", "", "replay", replay=True),
    Key("comma", ",", "step(-1)", "one reading back", "", "replay", replay=True),
    Key("full_stop", ".", "step(1)", "one reading on", "", "replay", replay=True),
    Key("left", "←", "seek(-5.0)", "5 seconds back", "", "replay", replay=True),
    Key("right", "→", "seek(5.0)", "5 seconds on", "", "replay", replay=True),
    Key("home", "Home", "seek_edge(-1)", "to the beginning", "", "replay", replay=True),
    Key("end", "End", "seek_edge(1)", "to the end", "", "replay", replay=True),
    Key("less_than_sign", "<", "speed(-1)", "half as fast", "", "replay", replay=True),
    Key("greater_than_sign", ">", "speed(1)", "twice as fast", "", "replay", replay=True),
    Key("q,f10", "q", "leave", "quit; asks what becomes of a running script", "quit", rank=-1),
)

WATCHING: tuple[Key, ...] = (
    Key("enter", "Enter", "", "all about the process", "account", rank=1),
    Key("a", "a", "", "read the process from outside", "attach", rank=2),
    Key("o", "o", "", "sort by the column of the next key", "sort", rank=5),
    Key("k", "k", "", "send a signal", "signal", rank=4, steers=True),
)
"""Keys of the process table that stand in the last line while tfmemtop only watches, and reads no process."""

_ARROWS = {"←": "Left", "→": "Right", "↑": "Up", "↓": "Down"}


def on_the_key(shown: str, glyphs: Glyphs) -> str:
    """Return the label of a key. In ASCII an arrow is shown by its name, since ``<`` is another key."""
    if glyphs.ascii:
        for arrow, name in _ARROWS.items():
            shown = shown.replace(arrow, name)
    return shown
