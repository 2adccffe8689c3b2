"""Every key, in one table: bindings, footer and help are made from it."""

from dataclasses import dataclass

from tfmemtop.ui.draw.palette import Glyphs

Rows = tuple[tuple[str, str], ...]
"""Pairs of the text on the left, such as a key, and what it does or is."""


def table_keys(*, replay: bool, signals: bool) -> Rows:
    """Return the keys of the process table. A *replay* uses some otherwise; without *signals* none can be sent."""
    rows = [
        ("↑ ↓", "choose a process"),
        ("Enter", "its details: memory, settings asked for and in effect, environment"),
    ]
    if not replay:
        rows.append(("a", "read its TensorFlow from outside, if tfmemtop did not start it"))
    if signals:
        rows += [("k F9", "send it a signal; asks first"), ("Space", "tag it, to signal several; U untags all")]
    rows += [
        ("t F5", "as a tree"),
        ("F6" if replay else ", . F6", "sort by another column; I inverts"),
        ("o n/p/u/g/…", "sort by GPU, PID, USER, GPU-MEM, …, in capitals the other way round"),
        ("u", "sum by user; Enter shows the processes of one"),
    ]
    if not replay:
        rows.append(("← →", "move the command, if it is too long to be seen"))
    return tuple(rows)


def map_keys(*, replay: bool) -> Rows:
    """Return the keys of the map of a pool."""
    return (
        ("↑ ↓", "choose a region of the pool"),
        ("Enter z", "look at it alone; Esc goes back"),
        ("Tab", "another device or process"),
        ("o", "the map of the moment when an allocation failed, or of now"),
        ("b", "draw each cell by who holds it, or by how much of it is in use"),
        ("[ ]" if replay else "← → [ ]", "go from cell to cell: who holds it, since when, its shape"),
    )


def holders_keys(*, replay: bool) -> Rows:
    """Return the keys of the screen that shows who holds the memory."""
    rows = [
        ("↑ ↓", "choose a row; Enter opens its parts"),
        ("g", "group by layer, operation, kind, shape, line"),
        ("[ ]" if replay else "← → [ ]", "go through the step; the rows are those of that moment; p goes to the peak"),
        ("c", "lay another window beside this one; again: the next one, then none"),
        ("v", "show the window before"),
    ]
    if not replay:
        rows.append(("n", "ask for a window now"))
    return (*rows, ("Tab", "another device or process"))


def output_keys(*, typing: bool) -> Rows:
    """Return the keys of the script's output; with *typing*, also those that send text to the script."""
    rows = [
        ("↑ ↓", "scroll; End follows the end again"),
        ("/", "search; n goes to the next match, N to the one before, Esc ends the search"),
    ]
    return tuple(rows + [("Enter", "type into the script's terminal, as i does")] * typing)


COLUMNS: Rows = (
    ("GPU-MEM", "memory of the process on the GPU, as the driver counts it"),
    ("%SM", "share of the time in which it computed on the GPU"),
    ("%GMBW", "share of the time in which it read or wrote GPU memory"),
    ("%CPU", "100 is one core"),
    ("HOST-MEM", "memory of the process in RAM"),
    ("TF-USE", "bytes that TensorFlow's allocators have handed out"),
    ("TF-POOL", "bytes that these allocators have taken from the device"),
    ("PEAK", "the highest TF-USE so far"),
    ("TIME", "since the process started"),
)
"""The columns of the process table whose names need an explanation."""

MARKS: Rows = (
    ("running", "tfmemtop sees inside this process"),
    ("dot", "a process of the run that has not imported TensorFlow"),
    ("ended", "it has ended; the figures are the last ones"),
    ("!", "tfmemtop cannot see inside; Enter says why"),
    ("+", "tagged"),
)
"""The marks before a process, by the name in the palette or as the mark itself, and what each means."""

GRAPH: Rows = (
    ("scale", "the memory that the graph's full height stands for"),
    ("up", "the limit, or the end of the card, lies above the graph"),
    ("tick", "a run starts here"),
    ("failed", "an allocation fails here: out of memory"),
    ("ground", "memory is held, but too little to have a height"),
)
"""The signs in a graph, by the name in the palette or as the sign itself, and what each means."""

LAYERS = (
    ("in_use", "in use", "bytes that TensorFlow's allocator has handed out, by chunk"),
    ("cached", "cached", "held by the allocator's pool, unused, not given back"),
    ("rest", "rest", "the process's CUDA context, library workspaces, kernels; and cached, if unknown"),
    ("others", "others", "other processes on the card"),
    ("free", "free", "the device's own free memory"),
)
"""For each kind of layer: the kind, its name in the legend, and what it is."""

SMALL_MAP = (
    "The small map under an allocator's figures shows the pool's address space. Each cell is a slice of it: "
    "{none} unused, {light} {medium} {dense} partly in use, {full} all in use."
)

UNKNOWN = "— stands for a value that cannot be known. Sizes are KiB-based: 1G is 1.0 GiB."

TYPING = (("Ctrl-]", "stop typing"), ("", "Ctrl-C and all else go to the script"))
"""The keys while others go to the script's terminal, and what they do."""

SEARCHING = (("Enter", "keep; then n next, N before"), ("Esc", "end the search"), ("Ctrl-U", "empty it"))
"""The keys while the user types the text to search for in the output."""

FILTERING = (("Enter", "keep the filter"), ("Esc", "clear it"), ("Ctrl-U", "empty it"))
"""The keys while the user types a filter."""


def play_word(*, paused: bool, at_end: bool) -> str:
    """Return what the key that pauses a replay does now."""
    return "play again" if at_end else "play" if paused else "pause"


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

COLUMN_KEYS = tuple(ORDER_KEYS.items())

TITLE = "tfmemtop: keys and words"

GROUPS = {
    "run": "The script",
    "screen": "The screen",
    "replay": "The replay",
    "processes": "Processes",
    "output": "Output, when it is chosen with Tab",
    "map": "Inside the pool",
    "holders": "Who holds the memory",
}
"""The titles of the groups of keys, in the order in which they are shown."""

COLUMNS_TITLE = "Columns of the processes"
MARKS_TITLE = "Marks before a process"
GRAPH_TITLE = "Signs in a graph"
LAYERS_TITLE = "Words"


def page_title(name: str) -> str:
    """Return the title of a page of the manual."""
    return f"tfmemtop help {name}"


def turn(following: str) -> str:
    """Return what the arrows do; *following* is the next page, empty if that is the first one."""
    return f"turn the page; next: {following or 'keys'}"


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
        "whatif",
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
