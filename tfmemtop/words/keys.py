"""The text of the help's first page, apart from the table of keys from which the bindings are made."""

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
