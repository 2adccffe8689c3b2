"""The error texts of commands that cannot do what was requested, and what commands print beside their results. Pure."""

from tfmemtop.units import format_duration


def own_error(described: str) -> str:
    """Return the error for an unexpected exception in tfmemtop itself."""
    return f"{described}: tfmemtop has failed; this is an error in tfmemtop itself"


# Options that contradict each other.

CPU_POOL_TWICE = "without a GPU, --memory-limit sets the size of the CPU pool: give it or --cpu-pool, not both"
METRICS_SD_ALONE = "--metrics-sd needs --metrics; for example: --metrics 0 --metrics-sd tfmemtop.json"
METRICS_ANY_PORT = "--metrics 0 takes any free port: --metrics-sd FILE has to tell Prometheus which"
JSON_NEEDS_ONCE = "cluster --json needs --once"
TOKEN_AND_LOGIN = "give --token-file or --login-file, not both"
SECONDS_AND_STEPS = "give --seconds or --steps, not both"
FROM_AND_LARGEST = "--from is a limit to search from: with --largest, --to gives the limit of every try"
LARGEST_NEEDS_TO = "without a GPU, --largest needs --to: the size of the CPU's pool in which the value shall fit"


def bounds_crossed(smallest: str | None, largest: str | None) -> str:
    """Return the error for a smallest limit to try that is above the largest."""
    return f"--from {smallest} is more than --to {largest}"


def no_range(text: str) -> str:
    """Return the error for a value of ``--largest`` that is not a name with a range."""
    return f"--largest {text}: give a name and a range of whole numbers, such as batch=1..4096"


def no_place(text: str, name: str) -> str:
    """Return the error for a command that has no place for the value of ``--largest``."""
    return f"--largest {text}: the command has no {{{name}}} in which to put the value"


# The terminal.

STDOUT = "standard output"
STDOUT_CLOSED = f"{STDOUT} is closed"
INSTEAD = "use tfmemtop record -- COMMAND…, or tfmemtop --once"
INSTEAD_OF_CLUSTER = "use tfmemtop cluster --once"


def no_terminal(stream: str, instead: str) -> str:
    """Return the error for a stream that is not a terminal; *instead* is what to do."""
    return f"standard {stream} is not a terminal: {instead}"


def cannot_draw(instead: str) -> str:
    """Return the error for a terminal whose cursor cannot be moved."""
    return f"the terminal cannot be drawn on (TERM is dumb or not set): {instead}"


def too_small(size: tuple[int, int], least: tuple[int, int], instead: str) -> str:
    """Return the error for a terminal with fewer columns or rows than the screen needs."""
    has, needs = (f"{columns}×{rows}" for columns, rows in (size, least))
    return f"the terminal has {has} cells; the screen needs {needs}: make it larger, or {instead}"


def screen_failed(trouble: str) -> str:
    """Return the error of a screen that failed. It is printed once the terminal is in its usual state again."""
    return f"the screen has failed: {trouble}"


# Sessions and recordings.

NO_SESSION = "no session is running; start one: tfmemtop -- COMMAND…"
NONE_RECORDED = "no session has been recorded yet; start one: tfmemtop -- COMMAND…"
TOO_FEW_RANKS = "fewer than two of the recordings can be compared"
NO_TENSORFLOW = "the demo needs TensorFlow: pip install 'tfmemtop[demo]'"


def engine_gone(session: str, error: OSError) -> str:
    """Return the error for a session whose engine has ended, or does not answer."""
    return f"the engine of {session} cannot be reached: {error.strerror or error}"


def output_in(path: str) -> str:
    """Return where the script's output is stored."""
    return f"output in {path}"


def recorded_in(path: str) -> str:
    """Return where the recording of the session is stored."""
    return f"recorded in {path}"


def explains(session: str) -> str:
    """Return the hint at the command that explains the run that has ended."""
    return f"tfmemtop why {session} explains it"


def still_running(session: str, output_path: str | None) -> str:
    """Return the line for a screen that has ended while the script goes on."""
    output = f"{output_in(output_path)}; " if output_path else ""
    return f"still running as {session}; {output}tfmemtop attach {session} brings the screen back"


ENDS_AT_LOGOUT = (
    "it ends when you log out: on this machine systemd then ends all processes of the login (KillUserProcesses=yes); "
    "tfmemtop help use says how to start a program that goes on"
)


def unsearchable(error: OSError) -> str:
    """Return the error for a folder of sessions that cannot be read."""
    return f"cannot look for sessions: {error}"


def begin_alike(count: int, name: str) -> str:
    """Return the error for a *name* with which several recorded sessions begin."""
    return f"{count} sessions begin with {name!r}; tfmemtop ls lists them"


def choose_session(name: str | None, example: str, *, several: bool) -> str:
    """Return the error for a *name* that no running session has, or with which *several* begin."""
    problem = f"there are several sessions that begin with {name!r}" if several else f"no session is called {name!r}"
    return f"{problem}; choose one: tfmemtop attach {example}"


def no_process(pid: int) -> str:
    """Return the error for a process that does not exist."""
    return f"there is no process {pid}"


def process_unread(pid: int, why: str) -> str:
    """Return the error for a process that cannot be read from outside; *why* is the reason."""
    return f"process {pid} cannot be read: {why}"


def needs_process(flag: str) -> str:
    """Return the error for an option that is allowed only with the number of a process."""
    return f"{flag} needs the number of a process; for example: tfmemtop attach {flag} … 4242"


def no_run(path: str, number: int | None) -> str:
    """Return the error for a recording that contains no run, or none of that number."""
    return f"{path} holds no run" + ("" if number is None else f" {number}")


def too_few_runs(path: str, count: int) -> str:
    """Return the error for a recording with too few runs, so that there is nothing to compare."""
    return f"{path} holds {count or 'no'} run: name a second file to compare with"


def left_out(why: str) -> str:
    """Return the line about a recording that cannot be compared."""
    return f"{why}; it is left out"


def older_start(older: str, newer: str) -> str:
    """Return the line about an older start of a rank that was started again: only the newest start is compared."""
    return f"{older} is left out: {newer} is a newer start of the same rank"


def written_while_read(path: str) -> str:
    """Return the error for a recording that would be converted into its own file."""
    return f"{path} cannot be written while it is read: name another file"


def incomplete(trouble: str) -> str:
    """Return the warning about a recording that broke off."""
    return f"the recording is not complete: {trouble}"


def printed_in(path: str) -> str:
    """Return where the output of all tries is stored."""
    return f"What the script printed in these tries: {path}"


def try_heading(number: int, most: int, what: str) -> str:
    """Return the heading of a try: its number, and its limit or value."""
    return f"try {number} of at most {most}: {what}"


# Prometheus.

NO_SERVER = "--prometheus needs an address such as http://monitor:9090"
NO_TEXT = "it is not text"


def no_login(path: str) -> str:
    """Return the error for a file that contains no user and password."""
    return f"{path}: there is no USER:PASSWORD in it"


def unreadable(path: str, reason: str) -> str:
    """Return the error for a file that cannot be read."""
    return f"{path} cannot be read: {reason}"


def session_to_choose(name: str, command: str, age_s: float, *, running: bool) -> str:
    """Return the line about one of the sessions to choose from; *command* is empty where it only watches."""
    state = "running" if running else "ended" if command else "watching"
    return f"  {name}  {state:<8}  started {format_duration(age_s)} ago  {command or '(watching only)'}"


def empty(path: str) -> str:
    """Return the error for a file that should hold a secret and is empty."""
    return f"{path} is empty"
