# Memory of a pool, and what of the process's memory is outside of it.
IN_USE, CACHED, FREE = "in use", "cached", "free"
POOL, PEAK, LIMIT, PEAK_POOL, PEAK_IN_USE = "pool", "peak", "limit", "peak pool", "peak in use"
CONTEXT_AND_OUTSIDE, OTHERS = "context+outside", "others"
LARGEST_FREE, FRAGMENTATION, FRAGMENTED = "largest free", "fragmentation", "fragmented"
CHUNKS, REGIONS, REGION, ALLOCATIONS, PARTLY = "chunks", "regions", "region", "allocations", "partly"
GROWTH, ON, OFF = "growth", "on", "off"

# Columns of the tables beside a pool's map.
FROM, FREE_BYTES = "from", "free bytes"
SIZE, ASKED, WASTE = "size", "asked", "waste"
AT, TOOK, NOW, FULL, GIVEN_BACK = "at", "took", "now", "full", "given back"

# The page of a process.
PROCESS, THE_HOOK, ENVIRONMENT, ALLOCATORS = "Process", "The hook", "Environment", "TensorFlow's allocators"
COMMAND, USER, STARTED, STATE, PARENT, RUN = "command", "user", "started", "state", "parent", "run"
HOST_MEMORY, PYTHON, TENSORFLOW = "host memory", "Python", "TensorFlow"
REFUSED_AT, MADE_BY, UNDER, NOT_KNOWN = "refused at", "made by", "under", "not known"
ALLOCATOR_UNKNOWN = "allocator unknown"
UNNAMED_TENSOR = "unnamed tensor"

# What keys do.
SEND_NOTHING, NEW_SEARCH, NEXT_OR_NONE, BY_HOLDER = "send nothing", "new search", "next, none", "by holder"


"""The text of the screen's panels where there is nothing to show yet, and the text beside their figures."""

NO_PROCESS = "no process"
NO_GPU_PROCESS = "no process holds GPU memory"
NO_GPU_PROCESS_HERE = "no process of this container holds GPU memory"

BY_USER = "Enter shows the processes of one, u all of them"

TYPING = ("typing: Ctrl-] or Esc Esc ends", "typing, ends: Ctrl-]", "Ctrl-] ends")
"""The line while keys go to the script; the first that fits is shown."""

WAITS = "WAITS FOR INPUT"
WAITS_FOR_INPUT = ("the script waits for input: i types", "waits for input: i types", "i types")
"""The line while a process of the run reads from its terminal; the first that fits is shown."""

OUTPUT_KEYS = ("/ searches", "i types  / searches")
"""The keys of the output: where nothing may be typed, and where something may."""

NO_POOL = "no pool is known: TensorFlow has not made one in a process that tfmemtop started"
EMPTY_POOL = "the pool is empty: TensorFlow has taken no memory for it yet"

NO_RUN = "No script has been started: tfmemtop only watches."
ONE_RUN = "There is one run so far. The next one is drawn over it here, whatever its settings are."


def why_keys(hidden: int, more: str) -> str:
    """Return what the key W shows: the findings that are hidden, which the sign *more* stands for, or all at length."""
    return f"W: {hidden} more {more}" if hidden else "W explains"


def runs_title(*, kernel: bool) -> str:
    """Return the title of the list of runs. Each start of a Jupyter *kernel* is a session of its own."""
    return "Runs of this kernel" if kernel else "Runs of this session"


def no_match(wanted: str) -> str:
    """Return the line for a filter that hides every process."""
    return f"no process matches {wanted!r}; Esc clears the filter"


def searched(wanted: str, place: int, found: int) -> tuple[str, str]:
    """Return the line about a search in the output, with the keys and without: the text, and which match is shown."""
    where = f"{place} of {found}" if found else "no match"
    return f"/{wanted}  {where}  n next  N before  Esc ends", f"/{wanted}  {where}"


def left_out(amount: str, path: str) -> str:
    """Return the line about output that is not shown; *path* is the file with all of it, empty if there is none."""
    return f"{amount} left out" + (f", see {path}" if path else "")


def no_curve(runs: int) -> str:
    """Return the line for *runs* runs (a number) of which no memory is known yet."""
    return "no memory of these runs is known yet" if runs > 1 else "no memory of this run is known yet"


def nothing_seen(names: str) -> str:
    """Return the line for the runs *names*, of which no memory was seen."""
    return f"No memory has been seen of {names} yet."


def more_allocators(count: int) -> str:
    """Return the text for allocators for which the panel has no line left."""
    return f"{count} more"


def no_output(over: bool, live: bool) -> str:
    """Return the line for a script without output.

    *over* is whether the run has ended. If the session is not *live*, or the run is only watched, there may have been
    output that is not recorded.
    """
    if not live:
        return "no output is recorded" if over else "no output is recorded so far"
    return "no output" if over else "no output yet"


SCRIPT_ASKED_FOR = "the script asked for"
"""The title above the calls with which the script has chosen its settings."""

AT_END = "at the end"
"""The text for a replay that has reached its end."""


def damaged(lines: int) -> str:
    """Return the line about lines of a recording that could not be read."""
    return f"{lines} damaged line{'' if lines == 1 else 's'} left out"


def redrawn(seconds: float) -> str:
    """Return the line about the new interval at which the screen is drawn."""
    return f"redrawn every {seconds:g} s"
