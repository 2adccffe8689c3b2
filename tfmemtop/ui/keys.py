"""Every key, in one table: bindings, footer and help are made from it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """*keys* are Textual's names, the first one shown as *shown*.

    ``footer`` is its word in the last line, if it stands there; ``rank`` says how early it goes
    from there when the screen is narrow, the highest first.
    """

    keys: str
    shown: str
    action: str
    help: str
    footer: str = ""
    group: str = "screen"
    rank: int = 0
    steers: bool = False  # changes the script; not with --readonly, not in a replay
    refuses: bool = False  # there it stays, to say why it does nothing
    replay: bool = False  # in replays only


KEYS: tuple[Key, ...] = (
    Key("f1,question_mark,h", "F1", "help", "all keys", "help"),
    Key("R", "R", "relaunch", "relaunch the script with the next settings", "relaunch", "run", steers=True),
    Key("G", "G", "growth", "growth of the next run: on, off, as the script says", "growth", "run", steers=True),
    Key("L", "L", "limit", "memory limit of the next run", "limit", "run", steers=True),
    Key("A", "A", "allocator", "allocator of the next run", "allocator", "run", steers=True),
    Key("V", "V", "gpus", "GPUs the next run may see", "GPUs", "run", steers=True, rank=2),
    Key("E", "E", "arguments", "command line and environment of the next run", "arguments", "run", steers=True, rank=4),
    Key("H", "H", "runs", "the runs of this session, side by side", "runs", "run", rank=5),
    Key("F", "F", "fit", "find by trying the smallest memory limit that works", "fit", "run", rank=7, refuses=True),
    Key("i", "i", "type", "type into the script's terminal; Ctrl-] ends it", group="run", steers=True),
    Key("W", "W", "why", "the findings at length, with what helps", "why", rank=1),
    Key("O", "O", "toggle_output", "show or hide the output", "output", rank=6),
    Key("M", "M", "map", "look inside the pool: its chunks, how it grew, why it ran out", "map"),
    Key("P", "P", "toggle_allocators", "show or hide the allocators"),
    Key("left_square_bracket", "[", "span(-1)", "graph: a shorter time"),
    Key("right_square_bracket", "]", "span(1)", "graph: a longer time"),
    Key("s", "s", "scale", "graph: scale to the whole card, or to what is used"),
    Key("Z", "Z", "freeze", "freeze the screen, or let it go on"),
    Key("plus,equals_sign", "+", "pace(0.5)", "redraw twice as often"),
    Key("minus", "-", "pace(2.0)", "redraw half as often"),
    Key("tab", "Tab", "app.focus_next", "go to the next panel"),
    Key("slash,f4", "/", "filter", "filter the processes", "filter", "processes", rank=3),
    Key("space", "Space", "play", "pause, or play on", "pause", "replay", replay=True),
    Key("comma", ",", "step(-1)", "step back", "", "replay", replay=True),
    Key("full_stop", ".", "step(1)", "step on", "step", "replay", replay=True),
    Key("left", "←", "seek(-5.0)", "5 seconds back", "", "replay", replay=True),
    Key("right", "→", "seek(5.0)", "5 seconds on", "seek", "replay", replay=True),
    Key("less_than_sign", "<", "speed(0.5)", "half as fast", "", "replay", replay=True),
    Key("greater_than_sign", ">", "speed(2.0)", "twice as fast", "speed", "replay", replay=True),
    Key("q,f10", "q", "leave", "quit; asks what becomes of a running script", "quit"),
)
