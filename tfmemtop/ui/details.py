"""Enter on a process: who it is, its memory, what it asked TensorFlow for, what it got, its environment."""

from collections.abc import Callable
from datetime import datetime
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType

from tfmemtop import events
from tfmemtop.safe import safe
from tfmemtop.settings import masked
from tfmemtop.state import State
from tfmemtop.state.account import accounts
from tfmemtop.state.holdings import TENSORS, holdings, largest
from tfmemtop.state.model import Hooked, ProcessState
from tfmemtop.state.views import AllocatorRow, ProcessRow, allocators, processes
from tfmemtop.ui.dialog import Dialog, Hint
from tfmemtop.ui.lines import Line
from tfmemtop.ui.palette import BOLD, DIM, ERROR, PLAIN, TITLE, UNICODE, WARNING, Glyphs
from tfmemtop.ui.text import chop, exactly, wrap
from tfmemtop.units import UNKNOWN, format_bytes, format_duration
from tfmemtop.verdicts.accounting import in_use, others_say, parts, why_they_differ

_FIRST = ("TF_", "CUDA_", "XLA_", "NVIDIA_", "KERAS_", "PYTHON", "LD_LIBRARY_PATH")
"""What steers TensorFlow stands before the rest of an environment."""

_LABEL = 14
"""Cells of the labels on the left."""


class DetailsScreen(Dialog[None]):
    """Live: the app calls :meth:`refresh_state` with each new picture."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,enter", "cancel", show=False),
        Binding("t,T", "look", show=False),
    ]

    def __init__(
        self,
        state_getter: Callable[[], State],
        pid: int,
        send: Callable[[events.AnyCommand], object],
        *,
        glyphs: Glyphs = UNICODE,
        may_look: bool = True,
    ) -> None:
        """*send* carries commands to the engine: the environment is read on request only.

        *may_look* says whether the user may have the script looked through for live tensors.
        """
        super().__init__(f"Process {pid}", glyphs=glyphs, width=110)
        self._state = state_getter()
        self._get_state = state_getter
        self._pid = pid
        self._send = send
        self._may_look = may_look

    def hints(self) -> list[Hint]:
        look = [("T", "live tensors")] if self._can_look() else []
        return [("Esc", "close"), *look, (f"{self.glyphs.up}{self.glyphs.down} PgUp PgDn", "scroll")]

    def on_mount(self) -> None:
        self._send(events.ReadEnvironment(pid=self._pid))
        self._send(events.CensusNow(pid=self._pid))

    def action_look(self) -> None:
        """Have live tensors looked for."""
        if self._can_look():
            self._send(events.CensusNow(pid=self._pid, tensors=True))

    def _can_look(self) -> bool:
        process = self._get_state().processes.get(self._pid)
        return bool(self._may_look and process and process.hooked and not process.hooked.ended)

    def refresh_state(self, state: State) -> None:
        """Show *state*."""
        self._state = state
        self.redraw()

    def body(self, width: int) -> list[Line]:
        return describe(self._state, self._pid, width, self._can_look())


def describe(state: State, pid: int, width: int, can_look: bool = False) -> list[Line]:
    """All that is known of process *pid*, in lines of at most *width* cells.

    With *can_look*, a line tells of the key that has live tensors looked for.
    """
    process = state.processes.get(pid)
    if process is None:
        return _told(f"Process {pid} has ended.", width)
    page = _Page(width)
    rows = [row for row in processes(state) if row.pid == pid]
    _account(page, state, pid)
    _holdings(page, state, pid)
    if process.hooked:
        _look(page, process.hooked, can_look)
    _who(page, state, process, rows)
    _gpus(page, state, rows)
    if process.hooked:
        _allocators(page, [row for row in allocators(state) if row.pid == pid])
        _largest(page, process.hooked)
        _settings(page, process.hooked)
        _out_of_memory(page, process.hooked)
    _hook(page, process)
    _environment(page, state.environments.get(pid), process.gone)
    return page.lines


class _Page:
    """Lines under headings, labels on the left."""

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
        """*text* with all its blanks."""
        self.lines += [[Segment(line, style)] for line in chop(text, self.width, "    ")]


def _told(text: str, width: int, style: Style = PLAIN, indent: str = "") -> list[Line]:
    return [[Segment(line, style)] for line in wrap(text, width, indent)]


def _account(page: _Page, state: State, pid: int) -> None:
    for account in accounts(state, pid):
        if not account.pools:
            continue  # its total stands below; what it is for is not known
        page.heading(f"Its memory on GPU {account.gpu}")
        for name, figure, meaning in parts(account):
            page.fact(name, f"{figure:>11}" + (f"  {meaning}" if meaning else ""))
        for name, words in others_say(account):
            page.fact(name, words)
        if sentence := why_they_differ(account):
            page.text(sentence, DIM)


def _holdings(page: _Page, state: State, pid: int) -> None:
    for held in holdings(state, pid):
        page.heading(f"What is in use on {held.device}")
        for label, figure, meaning in in_use(held):
            page.fact(label, f"{figure:>11}" + (f"  {meaning}" if meaning else ""))


def _look(page: _Page, hooked: Hooked, can_look: bool) -> None:
    look = hooked.look
    if look is not None and look.unseen:
        page.text(f"Live tensors: {look.unseen}", WARNING)
    if not can_look or not hooked.allocators:
        return
    if look is None or look.cost_us is None:
        page.text(
            "[T] looks for live tensors too, among all of Python's objects: the script stands still for that, mostly "
            "50 to 200 ms.",
            DIM,
        )
    else:
        page.text(f"[T] looks for live tensors again; the script last stood still {look.cost_us / 1000:.0f} ms.", DIM)


def _largest(page: _Page, hooked: Hooked) -> None:
    found = largest(hooked)
    if not found:
        return
    with_tensors = any(one.kind == TENSORS for one in found)
    page.heading("The largest variables and live tensors" if with_tensors else "The largest variables")
    for one in found:
        shape = ", ".join(str(extent) for extent in one.shape)
        size = exactly(f"{format_bytes(one.bytes):>11}", _LABEL)
        name = one.name if one.kind != TENSORS else f"tensor {one.name}" if one.name else "unnamed tensor"
        page.verbatim(f"{size}{name}  [{shape}] {one.dtype} on {one.device}")


def _who(page: _Page, state: State, process: ProcessState, rows: list[ProcessRow]) -> None:
    seen = process.seen
    hello = process.hooked.hello if process.hooked else None
    page.heading("Process")
    page.fact("command", " ".join(seen.command) or None, BOLD)
    page.fact("user", seen.user or None)
    if seen.started:
        started = datetime.fromtimestamp(seen.started).strftime("%Y-%m-%d %H:%M:%S")
        elapsed = next((row.elapsed_s for row in rows if row.elapsed_s is not None and not row.gone), None)
        page.fact("started", started + (f", {format_duration(elapsed)} ago" if elapsed is not None else ""))
    if process.gone:
        page.fact("state", "ended; the figures are the last ones read", WARNING)
    parent = state.processes.get(seen.ppid)
    page.fact("parent", f"{seen.ppid}" + (f"  {' '.join(parent.seen.command)}" if parent else ""))
    if seen.run is not None:
        page.fact("run", f"{seen.run}")
    page.fact("host memory", format_bytes(process.rss))
    if hello:
        page.fact("Python", f"{hello.python}  {hello.executable}")
        where = f"  {hello.tensorflow_path}" if hello.tensorflow_path else ""
        page.fact("TensorFlow", (hello.tensorflow or "not imported to the end yet") + where)


def _gpus(page: _Page, state: State, rows: list[ProcessRow]) -> None:
    held = [row for row in rows if row.gpu is not None]
    missing = {
        f"GPU {index}": device.reading.processes_missing
        for index, device in state.devices.items()
        if device.reading and device.reading.processes_missing
    }
    if not held and not missing:
        return
    page.heading("On the GPUs")
    for row in held:
        shares = [f"{format_bytes(row.gpu_memory)} held"]
        shares += [f"SM {row.sm} %"] if row.sm is not None else []
        shares += [f"memory bandwidth {row.bandwidth} %"] if row.bandwidth is not None else []
        page.fact(f"GPU {row.gpu}", ", ".join(shares))
    for name, reason in missing.items():
        page.fact(name, f"no figures for single processes: {reason}", WARNING)


def _allocators(page: _Page, rows: list[AllocatorRow]) -> None:
    if not rows:
        return
    page.heading("TensorFlow's allocators")
    for row in rows:
        place = f" on GPU {row.gpu}" if row.gpu is not None else ""
        page.fact(row.device, f"{row.allocator or 'allocator unknown'}{place}" + (", ended" if row.ended else ""))
        figures = [
            ("in use", row.in_use),
            ("cached", row.cached),
            ("pool", row.pool),
            ("peak", row.peak),
            ("limit", row.limit),
        ]
        page.fact("", ", ".join(f"{name} {format_bytes(value)}" for name, value in figures))


def _settings(page: _Page, hooked: Hooked) -> None:
    page.heading("What the script asked for")
    if not hooked.requested:
        page.text("Nothing so far: no call that sets growth, logical devices or visible devices.", DIM)
    for asked in hooked.requested:
        page.text(f"{asked.call}({asked.arguments})", BOLD, "  ")
        page.text(f"  {asked.file}:{asked.line}", DIM, "  ")
        if asked.error:
            page.text(f"  raised {asked.error}", ERROR, "  ")
    page.heading("What took effect")
    made = hooked.initialised
    if made:
        page.fact("refused at" if made.error else "made by", (f"{made.file}:{made.line}" if made.file else None))
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
        words = [
            "growth " + (UNKNOWN if effect.growth is None else "on" if effect.growth else "off"),
            f"limit {format_bytes(effect.limit)}",
            effect.allocator or "allocator unknown",
        ]
        page.fact(device, ", ".join(words))
        for word in effect.settled:
            page.fact("", f"set by tfmemtop: {word}", WARNING)


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
    if hooked and not hooked.ended and not hooked.dropped:
        return
    page.heading("The hook")
    if hooked and hooked.ended:
        page.text("It has ended with the process." if process.gone else "It is gone; no more allocator readings come.")
    if hooked and hooked.dropped:
        page.text(f"{hooked.dropped} readings were left out, so as not to hold up the script.")
    if hooked:
        return
    if seen.hooked_out:
        page.text(f"Not inside this process: {seen.hooked_out}.", WARNING)
        page.text(_remedy(seen.hooked_out))
    elif seen.run is None:
        page.text("Not inside: tfmemtop did not start this process, and sees it from outside only.", DIM)
        page.text("Start it as tfmemtop -- COMMAND to see its allocators and settings.", DIM)
    else:
        page.text("No word from it: this process has not imported TensorFlow so far.", DIM)


_REMEDIES = (
    ("-I", "Start Python without -I; against files in the script's folder, -P or -s do as well."),
    ("-E", "Start Python without -E, so that it reads PYTHONPATH."),
    ("-S", "Start Python without -S, so that it loads the site module."),
    ("cleaned", "Start the process with the PYTHONPATH and the TFMEMTOP_ variables of its parent, as env -i does not."),
    ("loads no sitecustomize", "Start the script with a Python interpreter of its own instead of a bundle."),
    ("looked into", "Watch it as the user whose process it is."),
)
"""Word in the hook's reason, and what helps."""


def _remedy(reason: str) -> str:
    words = reason.replace(",", " ")
    return next(
        (remedy for word, remedy in _REMEDIES if word in (words.split() if word[0] == "-" else words)),
        "Let the process start with the PYTHONPATH that tfmemtop gives it, in an ordinary Python.",
    )


def _environment(page: _Page, environment: events.Environment | None, gone: bool) -> None:
    page.heading("Environment")
    if environment is None:
        page.text("The process has ended; its environment went with it." if gone else "being read …", DIM)
        return
    if environment.error:
        page.text(f"It could not be read: {environment.error}.".replace("..", "."), WARNING)
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
