"""One run, as a page has it: the verdict and all that it rests on. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from tfmemtop.events import Effective
from tfmemtop.events.machine import is_cpu, is_gpu, is_pinned
from tfmemtop.findings.cause import Cause, Key
from tfmemtop.findings.finding import Severity
from tfmemtop.findings.names import call_text, settled_text, spot
from tfmemtop.findings.proposed_limit import suggested_limit
from tfmemtop.findings.review import RunReview, verdict, weighed
from tfmemtop.reports import account as account_text
from tfmemtop.reports.answers import answers
from tfmemtop.reports.settings import SCRIPTS_OWN, in_effect
from tfmemtop.reports.shared.data import (
    PageAccount,
    PageFinding,
    PageMap,
    PageOwner,
    PagePart,
    PagePhase,
    PagePool,
    PageRun,
    PageVerdict,
    PageWhatIf,
)
from tfmemtop.reports.shared.places import CPU
from tfmemtop.reports.shared.windows import bounded, page_map, page_window, with_windows
from tfmemtop.reports.whatif import COLUMNS, basis, cells, remark, smallest, views
from tfmemtop.reports.why import command_to_paste, heading, quoted, sized
from tfmemtop.settings import masked
from tfmemtop.state import State
from tfmemtop.state.account import Breakdown, breakdown_of, breakdowns
from tfmemtop.state.figures import effective_settings
from tfmemtop.state.lookup import device_of, of_run, used_frameworks
from tfmemtop.state.map_faces import Faces
from tfmemtop.state.model import Hooked, RunState
from tfmemtop.state.pool_views import PoolKey, pool_map
from tfmemtop.state.program import title
from tfmemtop.state.windows import Chosen, chosen, recorded
from tfmemtop.units import counted, format_bytes

_SEVERITIES = {Severity.ERROR: "fatal", Severity.WARNING: "warning", Severity.INFO: "info"}

ROOM, LEAST_ROOM, FEW = 30_000, 6_000, 3_000
"""The most buffers of the last run, the least that other windows have beside that of its highest peak, and the most of
an earlier run.
"""


def page_run(seen: RunReview) -> PageRun | None:
    """Return the run that *seen* has reviewed; ``None`` if there was none."""
    state, run, found = seen.state, seen.state.run, verdict(seen)
    if run is None or found is None:
        return None
    hooked = {pid: one.hooked for pid, one in state.processes.items() if one.hooked and of_run(state, pid)}
    settings = ", ".join(in_effect(effective_settings(run))) or SCRIPTS_OWN
    return PageRun(
        number=run.run,
        title=title(run),
        settings=settings,
        heading=heading(seen),
        began=run.started,
        ended=run.ended,
        facts=list(_facts(state, run, hooked, settings)),
        verdict=_verdict(seen, run, found),
        findings=list(_findings(seen, run)),
        answers=answers(seen),
        setting_rows=[row for one in hooked.values() for row in _setting_rows(one)],
        accounts=list(_accounts(seen, hooked)),
        phases=[
            PagePhase(label=one.label, began=one.began, ended=one.ended, peaks=one.peaks) for one in run.phases.values()
        ],
        failures=[one.t for one in run.ran_out],
        what_if=list(_what_if(state)),
        pools=_bounded([_pool(seen, pid, one, device) for pid, one in hooked.items() for device in _devices(one)]),
    )


def reduced(run: PageRun, room: int = FEW) -> PageRun:
    """Return *run* with the windows of its pools' highest peaks only, which together have *room* buffers at most."""
    room //= max(1, len(run.pools))
    pools = [
        with_windows(pool, [bounded(pool.windows[pool.shown], room)], 0) if pool.windows else pool for pool in run.pools
    ]
    return replace(run, pools=pools)


def _facts(state: State, run: RunState, hooked: dict[int, Hooked], settings: str) -> Iterator[tuple[str, str]]:
    variables = [f"{name}={value}" for name, value in run.variables.items()]
    yield "command", " ".join(map(quoted, [*variables, *run.argv]))
    yield "settings", settings
    for name, size in sorted(run.peaks.items()):
        yield f"peak in use, {name}", format_bytes(size)
    if run.peak_pool is not None:
        yield "largest pool", format_bytes(run.peak_pool)
    for index, size in sorted(run.totals.items()):
        if size:
            yield f"peak of the process, GPU {index}", format_bytes(size)
    yield from ((f"GPU {index}", device.info.name) for index, device in sorted(state.devices.items()))
    versions = {(one.hello.tensorflow or "", one.hello.python) for one in hooked.values()}
    for tensorflow, python in sorted(versions):
        if tensorflow:
            yield "TensorFlow", tensorflow
        yield "Python", python
    yield from ((one.name.title, one.version or "of unknown version") for one in used_frameworks(state))
    if session := state.session:
        yield "machine", f"{session.host}, {counted(session.cores, 'core')}, {format_bytes(session.host_memory)}"
        yield "recorded by", f"tfmemtop {session.version}"
    yield "folder", run.cwd


def _verdict(seen: RunReview, run: RunState, cause: Cause) -> PageVerdict:
    severity = "fatal" if run.failed else "warning"
    if cause.key in (Key.NONE, Key.NOT_MEMORY):
        severity = "good" if cause.key is Key.NONE else "info"
    if cause.key is Key.OTHER_FRAMEWORK and all(held.finding.severity is Severity.INFO for held in weighed(seen)):
        severity = "good"  # the frameworks only share the card
    return PageVerdict(
        severity=severity,
        text=cause.text,
        evidence=" ".join(filter(None, cause.evidence)),
        remedies=[step.elsewhere for step in sized(cause.remedies, suggested_limit(seen.state))],
        command="\n".join(command_to_paste(seen, cause)),
        code="\n".join(cause.code),
    )


def _findings(seen: RunReview, run: RunState) -> Iterator[PageFinding]:
    for held in weighed(seen):
        yield PageFinding(
            severity=_SEVERITIES[held.finding.severity],
            text=held.finding.said.text,
            began=run.started + held.first,
            ended=run.started + held.last if seen.ceased(held.last) else None,
        )


def _setting_rows(hooked: Hooked) -> Iterator[tuple[str, ...]]:
    """Yield what the script asked for, what the environment and tfmemtop set, and what each device has.

    A row has the setting, what was requested, what is in effect, and where it was set, each empty if it is not known.
    """
    for call in hooked.requested:
        effective = f"raised {call.error}" if call.error else _in_effect(hooked, call.devices or ())
        yield call.call.value, call_text(call), effective, spot(call.file, call.line) if call.file else ""
    made = hooked.initialised
    for name, value in sorted(made.variables.items()) if made else ():
        yield name, masked(name, value), "", "environment"
    for device, effect in sorted(hooked.effective.items()):
        settled = ", ".join(f"tfmemtop: {settled_text(settled)}" for settled in effect.settled)
        yield device, settled, _effective(effect), ""


def _in_effect(hooked: Hooked, physical: Sequence[str]) -> str:
    """Return what TensorFlow uses for the logical devices of the *physical* ones; empty where it has none of them."""
    found = [one for one in hooked.effective.values() if is_gpu(one.device) and f"GPU:{one.physical}" in physical]
    return "; ".join(dict.fromkeys(map(_effective, found)))


def _effective(effect: Effective) -> str:
    grows = "" if effect.growth is None else f"growth {'on' if effect.growth else 'off'}"
    limit = "" if effect.limit is None else f"limit {format_bytes(effect.limit)}"
    return ", ".join(filter(None, (grows, limit, effect.allocator)))


def _accounts(seen: RunReview, pids: Iterable[int]) -> Iterator[PageAccount]:
    """Yield an account for each process and device; of a process that has left its GPU, the last one of the review."""
    state, last = seen.state, seen.account
    for pid in pids:
        found = list(breakdowns(state, pid))
        if last is not None and last.pid == pid and all(one.gpu != last.gpu for one in found):
            found.insert(0, breakdown_of(state, last))
        yield from (_account(state, pid, one) for one in found)


def _account(state: State, pid: int, found: Breakdown) -> PageAccount:
    notes = [account_text.note(found)]
    if found.account is not None:
        notes += [f"{name}: {said}" for name, said in account_text.others_say(found.account)]
        notes += filter(None, [account_text.why_they_differ(found.account)])
    return PageAccount(
        heading=account_text.heading(state, pid, found),
        total=found.size,
        parts=[
            PagePart(
                name=account_text.name(part.part),
                bytes=part.size,
                exact=part.exact,
                meaning=account_text.meaning(part, found),
            )
            for part in found.slices
        ],
        notes=notes,
    )


def _what_if(state: State) -> Iterator[PageWhatIf]:
    for view in views(state):
        if not view.replayed.is_missing:
            rows = [(*cells(view, row), remark(view, row)) for row in view.rows]
            yield PageWhatIf(
                device=view.device,
                about=list(basis(view)),
                columns=[*COLUMNS, ""],
                rows=rows,
                sentences=list(smallest(view)),
            )


def _devices(hooked: Hooked) -> list[str]:
    """Return the logical devices whose pools have recorded allocations or a map."""
    return [name for name in {**hooked.windows, **hooked.pools} if not is_pinned(name)]


def _pool(seen: RunReview, pid: int, hooked: Hooked, device: str) -> PagePool:
    state = seen.state
    known = recorded(hooked.windows.get(device))
    one = next((one for one in chosen(state) if (one.pid, one.device) == (pid, device)), None)
    card = device_of(state, pid, device)
    owners: dict[PageOwner, int] = {}
    windows = [page_window(Chosen(pid, device, window, hooked), owners) for window in known]
    return PagePool(
        pid=pid,
        device=device,
        place=str(card.info.index) if card else CPU if is_cpu(device) else "",
        owners=list(owners),
        windows=windows,
        shown=next((place for place, window in enumerate(known) if one and window is one.window), -1),
        maps=list(_maps(state, (pid, device), hooked)),
    )


def _maps(state: State, place: PoolKey, hooked: Hooked) -> Iterator[PageMap]:
    began = state.run.started if state.run else 0.0
    found = [pool_map(state, place, out_of_memory=failed) for failed in (True, False)]
    for view in sorted(filter(None, found), key=lambda view: view.read.t):
        known = recorded(hooked.windows.get(place[1]))
        near = min(known, key=lambda window: abs(window.ended - view.read.t), default=None)
        yield page_map(view, began, Faces(near, hooked) if near else None)


def _bounded(pools: list[PagePool]) -> list[PagePool]:
    """Return *pools*, the fullest first, of whose windows only that of the highest peak has all its buffers."""
    pools = sorted(pools, key=lambda pool: -max((window.peak for window in pool.windows), default=0))
    whole = next((pool.windows[pool.shown] for pool in pools if pool.windows), None)
    others = sum(len(pool.windows) for pool in pools) - 1
    room = max(LEAST_ROOM, ROOM - len(whole.bytes) if whole else 0) // max(1, others)
    return [
        with_windows(pool, [one if one is whole else bounded(one, room) for one in pool.windows], pool.shown)
        for pool in pools
    ]
