"""Enter on a process: its user and command, its memory, what it requested of TensorFlow and got, its environment."""

from datetime import datetime
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType

from tfmemtop import events
from tfmemtop.events.machine import names_not_readable, workload_facts
from tfmemtop.experiments.session.session import Session
from tfmemtop.findings.names import call_text, settled_text, spot
from tfmemtop.findings.rules import attached as outside_words
from tfmemtop.reports import account as words
from tfmemtop.reports.account import heading, others_say, why_they_differ
from tfmemtop.safe import safe
from tfmemtop.settings import masked
from tfmemtop.state import State
from tfmemtop.state.account import Breakdown, MemoryPart, breakdowns
from tfmemtop.state.holdings import TENSORS, largest
from tfmemtop.state.model import Hooked, ProcessState
from tfmemtop.state.process_rows import ProcessRow, processes
from tfmemtop.ui.draw.bar import apportion
from tfmemtop.ui.draw.glyphs import ARROWS, ENDS, FILL
from tfmemtop.ui.draw.lines import Line, cut, fit
from tfmemtop.ui.draw.palette import BOLD, DIM, ERROR, LAYER, PLAIN, TITLE, WARNING
from tfmemtop.ui.draw.text import chop, exactly, wrap
from tfmemtop.ui.screens.dialog import Hint, PageDialog
from tfmemtop.units import UNKNOWN, format_bytes, format_count, format_duration

_NAME, _FIGURE = 14, 11  # cells
_KINDS = (Style(color="green"), Style(color="bright_green"), Style(color="cyan"), Style(color="bright_cyan"))
_LAYERS = {
    MemoryPart.CONTEXT: "rest",
    MemoryPart.CACHED: "cached",
    MemoryPart.JAX: "jax",
    MemoryPart.PYTORCH: "pytorch",
    MemoryPart.CUPY: "cupy",
    MemoryPart.RMM: "rmm",
    MemoryPart.OUTSIDE: "others",
    MemoryPart.CACHED_AND_OUTSIDE: "others",
    MemoryPart.UNREAD: "others",
}


def breakdown_lines(found: Breakdown, width: int) -> list[Line]:
    """Return the bar, a line for each slice with its number in the bar, and notes on peak and limit."""
    looks = _looks(found)
    drawn = [_numbered_bar(found, looks, width)]
    total = found.size
    for number, (part, (glyph, style)) in enumerate(zip(found.slices, looks, strict=True), 1):
        share = f"{part.size / total:4.0%}" if total else ""
        head = f" {exactly(words.name(part.part), _NAME)} {words.figure(part):>{_FIGURE}} {share:>4}  "
        line = [Segment(f"{number} ", DIM), Segment(glyph, style), Segment(head)]
        room = width - 3 - len(head)
        if room > 4:
            line.append(Segment(fit(words.meaning(part, found), room), DIM))
        drawn.append(cut(line, width))
    return drawn + [[Segment(f"   {line}")] for line in wrap(words.note(found), width - 3)]


def _looks(found: Breakdown) -> list[tuple[str, Style]]:
    """Return each slice's glyph and colour. Slices in use differ only by colour, and in the bar by their numbers."""
    kinds = iter(_KINDS)
    looks = []
    for part in found.slices:
        layer = _LAYERS.get(part.part)
        look = (FILL[layer], LAYER[layer]) if layer else (FILL["in_use"], next(kinds, _KINDS[0]))
        looks.append(look)
    return looks


def _numbered_bar(found: Breakdown, looks: list[tuple[str, Style]], width: int) -> Line:
    cells = apportion([part.size for part in found.slices], width - 2)
    left, right = ENDS
    line: Line = [Segment(left, DIM)]
    for number, (count, (glyph, style)) in enumerate(zip(cells, looks, strict=True), 1):
        if count:
            # The number stands at the beginning of the slice. A slice of one cell shows only its number.
            line += [Segment(str(number), style + BOLD + Style(reverse=True)), Segment(glyph * (count - 1), style)]
    return [*line, Segment(" " * (width - 2 - sum(cells))), Segment(right, DIM)]


_FIRST = ("TF_", "CUDA_", "XLA_", "JAX_", "PYTORCH_", "NVIDIA_", "KERAS_", "PYTHON", "LD_LIBRARY_PATH")
"""The beginnings of variables that affect TensorFlow, JAX or PyTorch. These stand before the rest of an environment."""

_LABEL = 14
"""Cells of the labels on the left."""

_ALLOCATOR_UNKNOWN = "allocator unknown"
_NOT_OURS = (
    "Not inside: tfmemtop did not start this process, and sees it from outside only.",
    "[a] in the table of tfmemtop without a command, or tfmemtop attach PID, reads its allocators. Start it as "
    "tfmemtop -- COMMAND to see its settings and its code too.",
)
_FIRST_LOOK = (
    "[T] also looks for live tensors, among all of Python's objects. This pauses the script, usually for 50 to 200 ms."
)


def describe(state: State, pid: int, width: int, can_look: bool = False, replay: bool = False) -> list[Line]:
    """Return all that is known of process *pid*, in lines of at most *width* cells.

    With *can_look*, a line names the key that searches for live tensors. In a *replay*, an environment that is not in
    the recording cannot be read later.
    """
    process = state.processes.get(pid)
    if process is None:
        return _told(f"Process {pid} has ended.", width)
    page = _Page(width)
    rows = [row for row in processes(state) if row.pid == pid]
    _breakdowns(page, state, pid)
    if process.hooked:
        _look(page, process.hooked, can_look)
    _who(page, state, process, rows)
    if process.hooked:
        _largest(page, process.hooked)
        _settings(page, process.hooked)
        _out_of_memory(page, process.hooked)
    _hook(page, process)
    environment = state.environments.get(pid)
    if environment is None and replay:
        page.heading("Environment")
        page.text("It is not in this recording.", DIM)
    else:
        _environment(page, environment, process.gone)
    return page.lines


class DetailsScreen(PageDialog[None]):
    """The details of one process. They follow the state while the dialog is open."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,enter", "cancel", show=False),
        Binding("t,T", "look", show=False),
    ]

    def __init__(self, session: Session, pid: int) -> None:
        """*pid* is the process. Its environment is read on request only, so the dialog sends the engine a command."""
        super().__init__(f"Process {pid}", width=110)
        self._session = session
        self._state = session.state
        self._pid = pid

    def hints(self) -> list[Hint]:
        look = [("T", "live tensors")] if self._can_look() else []
        return [("Esc", "close"), *look, (f"{ARROWS} PgUp PgDn", "scroll")]

    def on_mount(self) -> None:
        self._session.send(events.ReadEnvironment(pid=self._pid))
        self._session.send(events.CensusNow(pid=self._pid))

    def action_look(self) -> None:
        """Request a census of the live tensors, if the process allows one."""
        if self._can_look():
            self._session.send(events.CensusNow(pid=self._pid, tensors=True))

    def _can_look(self) -> bool:
        process = self._session.state.processes.get(self._pid)
        return bool(self._session.may_change and process and process.hooked and not process.hooked.ended)

    def refresh_state(self, state: State) -> None:
        self._state = state
        self.redraw()

    def body(self, width: int) -> list[Line]:
        return describe(self._state, self._pid, width, self._can_look(), self._session.replay is not None)


class _Page:
    """Collects lines under headings, with labels on the left."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.lines: list[Line] = []

    def heading(self, text: str) -> None:
        if self.lines:
            self.lines.append([])
        self.lines.append([Segment(text, TITLE)])

    def fact(self, label: str, text: str | None, style: Style = PLAIN) -> None:
        shown = UNKNOWN if text is None else safe(text)
        for index, part in enumerate(wrap(shown, self.width - _LABEL)):
            head = Segment(exactly(label if index == 0 else "", _LABEL), DIM)
            self.lines.append([head, Segment(part, style)])

    def text(self, text: str, style: Style = PLAIN, indent: str = "") -> None:
        self.lines += _told(text, self.width, style, indent)

    def verbatim(self, text: str, style: Style = PLAIN) -> None:
        """Add *text* with all its blanks."""
        self.lines += [[Segment(line, style)] for line in chop(text, self.width, "    ")]


def _told(text: str, width: int, style: Style = PLAIN, indent: str = "") -> list[Line]:
    return [[Segment(line, style)] for line in wrap(text, width, indent)]


def _breakdowns(page: _Page, state: State, pid: int) -> None:
    """Add bar, table and what other tools report, for each device."""
    for found in breakdowns(state, pid):
        page.heading(heading(state, pid, found))
        page.lines += breakdown_lines(found, page.width)
        if found.account is None:
            continue
        for name, told_by in others_say(found.account):
            page.fact(name, told_by)
        if sentence := why_they_differ(found.account):
            page.text(sentence, DIM)


def _look(page: _Page, hooked: Hooked, can_look: bool) -> None:
    look = hooked.look
    if look is not None and (unseen := unseen_tensors(look)):
        page.text(f"Live tensors: {unseen}", WARNING)
    if not can_look or not hooked.allocators:
        return
    if look is None or look.cost_us is None:
        page.text(_FIRST_LOOK, DIM)
    else:
        page.text(f"[T] looks for live tensors again. The last look took {look.cost_us / 1000:.0f} ms.", DIM)


def unseen_tensors(census: events.Census) -> str:
    """Return why, or where, live tensors were not looked for; empty if they were looked for everywhere."""
    if census.hidden is None:
        return ""
    return census.hidden.text.format(frozen=format_count(census.frozen or 0))


def _largest(page: _Page, hooked: Hooked) -> None:
    found = largest(hooked)
    if not found:
        return
    with_tensors = any(one.kind == TENSORS for one in found)
    page.heading("The largest variables" + " and live tensors" * with_tensors)
    for one in found:
        shape = ", ".join(str(extent) for extent in one.shape)
        size = exactly(f"{format_bytes(one.bytes):>11}", _LABEL)
        name = (f"tensor {one.name}" if one.name else "unnamed tensor") if one.kind == TENSORS else one.name
        page.verbatim(f"{size}{name}  [{shape}] {one.dtype} on {one.device}")


def _who(page: _Page, state: State, process: ProcessState, rows: list[ProcessRow]) -> None:
    seen = process.seen
    hello = process.hooked.hello if process.hooked else None
    page.heading("Process")
    page.fact("command", " ".join(seen.command) or None, BOLD)
    page.fact("user", seen.user or None)
    if seen.inner_pids:
        page.fact("number", f"{seen.pid}; in its container {', '.join(map(str, seen.inner_pids))}")
    for label, text in workload_facts(seen.workload) if seen.workload else ():
        page.fact(label, text)
    if seen.unread:
        page.fact("not readable", names_not_readable(seen.unread), WARNING)
    if seen.started:
        started = datetime.fromtimestamp(seen.started).strftime("%Y-%m-%d %H:%M:%S")
        elapsed = next((row.elapsed_s for row in rows if row.elapsed_s is not None and not row.process.gone), None)
        ago = None if elapsed is None else format_duration(elapsed)
        page.fact("started", started if ago is None else f"{started}, {ago} ago")
    if process.gone:
        page.fact("state", "ended; the figures are the last ones read", WARNING)
    parent = state.processes.get(seen.ppid)
    page.fact("parent", f"{seen.ppid}" + (f"  {' '.join(parent.seen.command)}" if parent else ""))
    if seen.run is not None:
        page.fact("run", f"{seen.run}")
    peak = "" if process.rss_peak is None else f", highest {format_bytes(process.rss_peak)}"
    page.fact("host memory", format_bytes(process.reading.rss) + peak)
    if hello:
        page.fact("Python", f"{hello.python}  {hello.executable}")
        where = f"  {hello.tensorflow_path}" if hello.tensorflow_path else ""
        for framework in hello.frameworks:
            page.fact(framework.name.title, framework.version)
        if hello.tensorflow_path or not hello.frameworks:
            page.fact("TensorFlow", (hello.tensorflow or "still being imported") + where)


def _settings(page: _Page, hooked: Hooked) -> None:
    if hooked.frameworks:
        page.heading("Settings of other frameworks")
        for device, reading in sorted(hooked.frameworks.items()):
            given = [f"{name}={value}" for name, value in sorted(reading.settings.items())]
            page.fact(device, " ".join(given) or "no variable of the environment sets anything")
        if not hooked.hello.tensorflow_path:
            return
    page.heading("What the script asked for")
    if hooked.outside:
        page.text(outside_words.NO_REQUESTS, DIM)
    elif not hooked.requested:
        page.text("Nothing so far: no call that sets growth, logical devices or visible devices.", DIM)
    for asked in hooked.requested:
        page.text(call_text(asked), BOLD, "  ")
        page.text(f"  {spot(asked.file, asked.line, whole=True)}", DIM, "  ")
        if asked.error:
            page.text(f"  raised {asked.error}", ERROR, "  ")
    page.heading("What took effect")
    made = hooked.initialised
    if made:
        at = spot(made.file, made.line, whole=True) if made.file else None
        page.fact("refused at" if made.error else "made by", at)
        if made.code:
            page.fact("", made.code, DIM)
        if made.error:
            page.fact("", made.error, ERROR)
        for index, (name, value) in enumerate(sorted(made.variables.items())):
            page.fact("" if index else "under", f"{name}={masked(name, value)}")
    elif hooked.effective:
        page.fact("made by", "not known", DIM)
    if not hooked.effective and not (made and made.error):
        page.text("Not settled yet: TensorFlow initialises its devices at the first operation.", DIM)
    for device, effect in sorted(hooked.effective.items()):
        grows = UNKNOWN if effect.growth is None else "on" if effect.growth else "off"
        limit = "" if effect.limit is None else f"limit {format_bytes(effect.limit)}, "
        page.fact(device, f"growth {grows}, {limit}{effect.allocator or _ALLOCATOR_UNKNOWN}")
        for settled in effect.settled:
            page.fact("", f"set by tfmemtop: {settled_text(settled)}", WARNING)


def _out_of_memory(page: _Page, hooked: Hooked) -> None:
    if not hooked.out_of_memory:
        return
    page.heading("Out of memory")
    for failure in hooked.out_of_memory:
        asked = [f"asked for {format_bytes(failure.requested)}"] if failure.requested is not None else []
        asked += [f"by {failure.operation}"] if failure.operation else []
        asked += [f"on {failure.device}"] if failure.device else []
        page.text(", ".join(asked) or "an allocation failed for good", ERROR)
        page.text("  " + failure.message, PLAIN, "  ")


def _hook(page: _Page, process: ProcessState) -> None:
    seen, hooked = process.seen, process.hooked
    if process.outside:
        page.heading(outside_words.HEADING)
        page.text(outside_words.reading_sentence(process.outside))
        for sentence in (outside_words.NOT_KNOWN, outside_words.NOT_DONE, outside_words.TO_HAVE_ALL):
            page.text(sentence, DIM)
        return
    if hooked and not hooked.ended and not hooked.dropped:
        return
    page.heading("The hook")
    if hooked and hooked.ended:
        page.text("It has ended with the process." if process.gone else "It is gone; no more allocator readings come.")
    if hooked and hooked.dropped:
        page.text(f"{hooked.dropped} readings were left out, so that the script did not have to wait.")
    if hooked:
        return
    if seen.hook_absence:
        page.text(f"Not inside this process: {seen.hook_absence.text}.", WARNING)
        page.text(seen.hook_absence.remedy)
    elif seen.run is None:
        for sentence in _NOT_OURS:
            page.text(sentence, DIM)
    else:
        page.text("Nothing was received from it: this process has not imported TensorFlow so far.", DIM)


def _environment(page: _Page, environment: events.Environment | None, gone: bool) -> None:
    page.heading("Environment")
    if environment is None:
        page.text("The process has ended; its environment can no longer be read." if gone else "being read …", DIM)
        return
    if environment.error:
        page.text(f"It could not be read: {environment.error.rstrip('.')}.", WARNING)
    elif not environment.variables:
        page.text("It is empty.", DIM)
    names = sorted(environment.variables)
    steering = [name for name in names if name.startswith(_FIRST)]
    for name in steering:
        page.verbatim(f"{name}={masked(name, environment.variables[name])}", BOLD)
    if steering and len(steering) < len(names):
        page.lines.append([])
    for name in names:
        if not name.startswith(_FIRST):
            page.verbatim(f"{name}={masked(name, environment.variables[name])}")
