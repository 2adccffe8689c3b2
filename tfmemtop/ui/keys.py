"""Every key of the app, in one table: bindings and the last line are made from it. The manual's page explains them.

The last line of a screen is a :class:`KeyBar`.
"""

from collections.abc import Callable, Sequence

import msgspec
from rich.cells import cell_len
from rich.segment import Segment
from textual import events as textual_events

from tfmemtop.ui.draw.lines import Line, Panel
from tfmemtop.ui.draw.palette import KEY

Hints = Sequence[tuple[str, str]]
"""Keys and what they do. A hint without a key is a remark."""


class KeyBar(Panel):
    """One line of keys and their words, as many as fit. *hints* returns those that have an effect now."""

    DEFAULT_CSS = "KeyBar { height: 1; }"

    def __init__(self, hints: Callable[[], Hints]) -> None:
        super().__init__()
        self._hints = hints
        self._spots: dict[range, str] = {}  # the keys by the cells that they and their words take

    def build(self, width: int, height: int) -> list[Line]:
        line: Line = [Segment(" ")]
        end = 1
        self._spots = {}
        for key, word in self._hints():
            text = f" {word}" if key else word
            cells = range(end, end + cell_len(key + text))
            if cells.stop > width:
                break
            line += [Segment(key, KEY), Segment(f"{text}  ")]
            self._spots[cells] = key.partition(" ")[0]
            end = cells.stop + 2
        return [line]

    def on_click(self, click: textual_events.Click) -> None:
        for cells, key in self._spots.items():
            if click.x in cells:
                name = _NAMES.get(key, key)
                self.app.post_message(textual_events.Key(name, name if len(name) == 1 else None))


_NAMES = {
    **{"Esc": "escape", "Enter": "enter", "Space": "space", "Tab": "tab", "Home": "home", "End": "end"},
    **{"Ctrl-U": "ctrl+u", "Ctrl-]": "ctrl+right_square_bracket", "F1": "f1", "/": "slash"},
}
"""Textual's names of the keys in hints, by what is shown. Letters and digits have the same name in both."""


TYPING = (("Ctrl-]", "stop typing"), ("", "Ctrl-C and all else go to the script"))
"""The keys while others go to the script's terminal, and what they do."""

FILTERING = (("Enter", "keep the filter"), ("Esc", "clear it"), ("Ctrl-U", "empty it"))
"""The keys while the user types a filter."""

ORDER_KEYS = {
    "n": "GPU",
    "p": "PID",
    "u": "USER",
    "g": "GPU-MEM",
    "s": "%SM",
    "b": "%GMBW",
    "c": "%CPU",
    "m": "HOST-MEM",
    "f": "TF-USE",
    "l": "TF-POOL",
    "k": "PEAK",
    "t": "TIME",
}
"""The keys after ``o``, and the column by which each sorts the processes. Keys that nvitop has too mean the same there.
"""


class Key(msgspec.Struct, frozen=True):
    """A key of the app. ``keys`` are Textual's names for it and its alternatives; the first is shown as ``shown``.

    ``action`` is an action of the app, or, with ``screen.`` before it, of the current screen. It is empty for
    a key that a panel handles.

    ``footer`` is the key's word in the last line; empty if the key is not shown there. Where the screen is too
    narrow for all of them, the keys with the highest ``rank`` are left out first.
    """

    keys: str
    shown: str
    action: str
    footer: str = ""
    rank: int = 0
    steers: bool = False  # changes the script or a process; with --readonly and in a replay it does nothing
    of_run: bool = False  # has no effect before a script runs or a process is read from outside
    of_gpus: bool = False  # has no effect on a machine without a GPU
    replay: bool = False  # in replays only


KEYS: tuple[Key, ...] = (
    Key("f1,question_mark,h", "F1", "help", "help", rank=-1),
    Key("R", "R", "relaunch", "relaunch", steers=True, of_run=True),
    Key("G", "G", "growth", "growth", rank=1, steers=True, of_run=True, of_gpus=True),
    Key("L", "L", "limit", "limit", steers=True, of_run=True),
    Key("A", "A", "allocator", "allocator", rank=5, steers=True, of_run=True),
    Key("V", "V", "gpus", "GPUs", rank=4, steers=True, of_run=True, of_gpus=True),
    Key("D", "D", "xla_report", steers=True, of_run=True),
    Key("E", "E", "arguments", "arguments", rank=8, steers=True, of_run=True),
    Key("H", "H", "runs", "runs", rank=3, of_run=True),
    Key("F", "F", "fit", "fit", rank=2, steers=True, of_run=True),
    Key("i", "i", "screen.type", steers=True, of_run=True),
    Key("W", "W", "why", "why"),
    Key("O", "O", "screen.toggle_panel('output')", "output", rank=9, of_run=True),
    Key("M", "M", "screen.map", "map", of_run=True),
    Key("B", "B", "screen.holders", "holders", rank=2, of_run=True),
    Key("X", "X", "whatif", "whatif", rank=3, of_run=True),
    Key("P", "P", "screen.toggle_panel('allocators')"),
    Key("left_square_bracket", "[", "screen.part('devices', 'cycle_span', -1)"),
    Key("right_square_bracket", "]", "screen.part('devices', 'cycle_span', 1)"),
    Key("w", "w", "screen.part('devices', 'toggle_whole')", "whole", rank=10, of_run=True),
    Key("c", "c", "screen.choose_moment", "moment", rank=11),
    Key("t", "t", "screen.part('devices', 'toggle_steps')"),
    Key("s", "s", "screen.part('devices', 'next_scale')", "scale", rank=7),
    Key("S", "S", "page"),
    Key("Z", "Z", "freeze"),
    Key("plus,equals_sign", "+", "pace(-1)"),
    Key("minus", "-", "pace(1)"),
    Key("tab", "Tab", "app.focus_next"),
    Key("slash,f4", "/", "screen.part('table', 'action_filter')", "filter", rank=6),
    Key("space", "Space", "replay('toggle_pause')", replay=True),
    Key("comma", ",", "replay('step', -1)", replay=True),
    Key("full_stop", ".", "replay('step', 1)", replay=True),
    Key("left", "←", "replay('seek_by', -5.0)", replay=True),
    Key("right", "→", "replay('seek_by', 5.0)", replay=True),
    Key("home", "Home", "replay('seek', 0.0)", replay=True),
    Key("end", "End", "replay('seek', 1e9)", replay=True),
    Key("less_than_sign", "<", "replay('change_speed', -1)", replay=True),
    Key("greater_than_sign", ">", "replay('change_speed', 1)", replay=True),
    Key("q,f10", "q", "leave", "quit", rank=-1),
)

WATCHING: tuple[Key, ...] = (
    Key("enter", "Enter", "", "account", rank=1),
    Key("a", "a", "", "attach", rank=2),
    Key("o", "o", "", "sort", rank=5),
    Key("k", "k", "", "signal", rank=4, steers=True),
)
"""Keys of the process table that stand in the last line while tfmemtop only watches, and reads no process."""
