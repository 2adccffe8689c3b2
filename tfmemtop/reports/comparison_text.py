"""The text about two runs side by side: their figures, and sentences about the difference. Pure."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from tfmemtop.findings.holders import holder
from tfmemtop.findings.names import tensor_text
from tfmemtop.findings.rules.ending import ended
from tfmemtop.reports.settings import SCRIPTS_OWN, in_effect
from tfmemtop.safe import safe
from tfmemtop.state.attribution import Kind
from tfmemtop.state.comparable import Basis, Common, common
from tfmemtop.state.figures import RunFigures
from tfmemtop.state.holders import Standing
from tfmemtop.state.operation_names import named
from tfmemtop.state.program import program
from tfmemtop.units import UNKNOWN, counted, format_bytes, format_duration, format_rate, shown_difference, spoken

_SAME = "same"

N = TypeVar("N", int, float)


class ComparisonRow(NamedTuple):
    """One figure of two runs as text, and how the second run differs; empty where a difference would mean nothing."""

    label: str
    first: str
    second: str
    difference: str


def name(run: RunFigures) -> str:
    """Return the name of a run: ``run.jsonl run 2``, or ``run 2`` for a run of this session."""
    return run.name or f"run {run.run}"


def how_it_ended(run: RunFigures) -> str:
    """Return how the run ended, or that it is running."""
    return ended(run.ending, running=run.running, left=run.left)


def settings(run: RunFigures) -> str:
    """Return the run's settings in one line."""
    return " · ".join(_settings(run)) or SCRIPTS_OWN


def rows(first: RunFigures, second: RunFigures) -> list[ComparisonRow]:
    """Return every figure of the two runs. Between unequal runs, only the part that both have done is compared."""
    both = common(first, second)
    whole = both.basis is Basis.WHOLE
    found = [
        ComparisonRow("settings", settings(first), settings(second), ""),
        _row("duration", first.duration_s, second.duration_s, format_duration, _seconds if whole else _nothing),
        *_peaks(first, second, _bytes if whole or both.basis is Basis.TOO_SHORT else _nothing),
        *(
            _row(f"peak in {safe(phase)}", peak, second.phases.get(phase), format_bytes, _bytes)
            for phase, peak in first.phases.items()
        ),
        _row("first step after", first.first_step_s, second.first_step_s, format_duration, _seconds),
    ]
    unit = first.unit if first.steps is not None else second.unit
    alike = whole and first.unit == second.unit and first.argv == second.argv
    paces = first.steps_per_s, second.steps_per_s
    found.append(_row(f"{unit} per second", *paces, format_rate, _pace if alike else _nothing))
    found.append(_row("fragmentation", first.fragmentation, second.fragmentation, "{:.0%}".format, _nothing))
    found.append(ComparisonRow("out of memory", str(first.out_of_memory), str(second.out_of_memory), ""))
    found.append(ComparisonRow("end", how_it_ended(first), how_it_ended(second), ""))
    return found + _rows_in_common(both)


def _rows_in_common(both: Common) -> list[ComparisonRow]:
    if both.basis not in (Basis.STEPS, Basis.SECONDS):
        return []
    a, b = both.first, both.second
    found = [ComparisonRow(f"in the {_how_much(both)}{_since(both)}", "", "", "")]
    if both.basis is Basis.STEPS:
        found.append(_row("  time for them", a.duration_s, b.duration_s, format_duration, _seconds))
    found += [row._replace(label=f"  {row.label}") for row in _peaks(a, b, _bytes)]
    if both.basis is Basis.STEPS:
        found.append(_row(f"  {both.unit} per second", a.steps_per_s, b.steps_per_s, format_rate, _pace))
    return found


def _how_much(both: Common) -> str:
    """Return the part that both runs have done: ``first 2,400 steps``, ``first 27 s``."""
    if both.basis is Basis.STEPS:
        return f"first {counted(both.steps or 0, both.unit.rstrip('s'))}"
    return f"first {spoken(min(both.first.duration_s, both.second.duration_s))}"


def _since(both: Common) -> str:
    return " after memory was first held" if both.basis is Basis.SECONDS else ""


def _peaks(a: RunFigures, b: RunFigures, difference: Callable[[int, int], str]) -> list[ComparisonRow]:
    return [
        _row("peak in use", a.peak_in_use, b.peak_in_use, format_bytes, difference),
        _row("peak pool", a.peak_pool, b.peak_pool, format_bytes, difference),
        _row("peak process", a.peak_process_total, b.peak_process_total, format_bytes, difference),
    ]


def _row(
    label: str, a: N | None, b: N | None, shown: Callable[[N], str], difference: Callable[[N, N], str]
) -> ComparisonRow:
    texts = [UNKNOWN if value is None else shown(value) for value in (a, b)]
    return ComparisonRow(label, texts[0], texts[1], "" if a is None or b is None else difference(a, b))


def sentences(first: RunFigures, second: RunFigures) -> list[str]:
    """Return sentences about how the second run differs from the first, in the part that both have done.

    If nothing differs, a sentence states that. Between unlike commands, no difference is put down to the settings.
    """
    both = common(first, second)
    alike = first.argv == second.argv
    settings_of_second = ", ".join(differing(second, first, commands=False))
    found = []
    if not alike:
        commands = [program(run.argv) for run in (second, first)]
        of_one = commands[0][:1] == commands[1][:1]
        parts = [" ".join(words[1:] if of_one else words) or "none" for words in commands]
        found.append(f"The {'arguments' if of_one else 'commands'} differ: {'; before: '.join(parts)}.")
        if _settings(first) != _settings(second):
            before = ", ".join(differing(first, second, commands=False))
            found.append(f"The settings differ too: {settings_of_second}; before: {before}.")
    environments = [_environment(run, other) for run, other in ((second, first), (first, second))]
    if any(environments):
        found.append(f"The environment differs: {'; before: '.join(each or 'without it' for each in environments)}.")
    subject = settings_of_second if alike and not any(environments) else name(second)
    if both.basis is Basis.NOTHING:
        found.append(f"{subject}: nothing can be compared, since memory was not read in both.")
    else:
        found.append(f"{subject}{_over(both)}: {', '.join(_figures(both, alike))}.")
    if both.basis is Basis.TOO_SHORT:
        found.append("The runs are too short to be compared over the same time.")
    if second.out_of_memory != first.out_of_memory:
        found.append(f"Out-of-memory errors: {second.out_of_memory}, before {first.out_of_memory}.")
    if both.basis is Basis.WHOLE:
        longer = int(second.duration_s) - int(first.duration_s)
        if abs(longer) > max(1.0, first.duration_s * NOTEWORTHY):
            found.append(f"It took {spoken(abs(longer))} {'longer' if longer > 0 else 'less'}.")
    else:
        ends = _end(second), _end(first)
        unequal = f"The runs are unequal: {name(second)} {ends[0]}; {name(first)} {ends[1]}."
        found.append(unequal if ends[0] != ends[1] else f"Both {ends[0]}.")
    return found


def _environment(run: RunFigures, other: RunFigures) -> str:
    """Return the variables of *run* that *other* has not, or has with another value: ``BATCH=64``."""
    return " ".join(f"{key}={value}" for key, value in run.variables.items() if other.variables.get(key) != value)


def _over(both: Common) -> str:
    if both.basis is Basis.WHOLE:
        return ""
    if both.basis is Basis.TOO_SHORT:
        return ", over the whole runs"
    return f", over the {_how_much(both)} of each{_since(both)}"


def _end(run: RunFigures) -> str:
    steps = "" if run.steps is None else f" and {counted(run.steps, run.unit.rstrip('s'))}"
    return f"lasted {spoken(run.duration_s)}{steps} ({how_it_ended(run)})"


def differing(run: RunFigures, other: RunFigures | None, commands: bool = True) -> list[str]:
    """Return the settings of *run* that *other* does not have, and with *commands* its arguments.

    Without *other*, return all settings.
    """
    words = _settings(run)
    if other is None:
        return words or [SCRIPTS_OWN]
    others = _settings(other)
    theirs, arguments = set(others), set(other.argv)  # sets: a list of thousands would be searched thousands of times
    found = [word for word in words if word not in theirs]
    if commands and run.argv != other.argv:
        found.append(" ".join(word for word in run.argv if word not in arguments) or "fewer arguments")
    if found:
        return found
    ours = set(words)
    dropped = [word for word in others if word not in ours]
    return [f"without {', '.join(dropped)}" if dropped else "the same settings"]


def _settings(run: RunFigures) -> list[str]:
    return in_effect(run.settings, usual=False)


def _figures(both: Common, same_command: bool) -> list[str]:
    first, second = both.first, both.second
    held = _more(first.peak_process_total, second.peak_process_total, "held") or _more(
        first.peak_pool, second.peak_pool, "in the pool"
    )
    use = _more(first.peak_in_use, second.peak_in_use, "in use at the peak")
    read = [run.peak_in_use is not None or run.peak_process_total is not None for run in (first, second)]
    same = "no noteworthy difference in memory" if all(read) else "memory was not read in both"
    found = [text for text in (held, use) if text] or [same]
    if same_command and first.steps_per_s and second.steps_per_s:
        pace = _pace(first.steps_per_s, second.steps_per_s)
        found += [pace] if pace != _SAME else []
    return found


def _more(a: int | None, b: int | None, what: str) -> str:
    if a is None or b is None or abs(b - a) <= max(a, b) * NOTEWORTHY:
        return ""
    difference = shown_difference(a, b)
    return f"{difference} {'more' if b > a else 'less'} {what}" if difference else ""


def _bytes(a: int, b: int) -> str:
    difference = shown_difference(a, b)
    return ("+" if b > a else "-") + difference if difference else _SAME


def _seconds(a: float, b: float) -> str:
    """Return the difference between the whole seconds that are shown."""
    difference = int(b) - int(a)
    return "" if not difference else ("+" if difference > 0 else "-") + spoken(abs(difference))


def _pace(a: float, b: float) -> str:
    """Return the difference between the rates that are shown. That of the exact rates would contradict them."""
    a, b = float(format_rate(a)), float(format_rate(b))
    if not a or not b or abs(b - a) <= a * NOTEWORTHY:
        return _SAME
    return f"{b / a - 1:.0%} faster" if b > a else f"{1 - b / a:.0%} slower"


def _nothing(a: object, b: object) -> str:
    """Return no difference, for figures of unequal work, which are not compared."""
    return ""


NOTEWORTHY = 0.02
"""Differences below this share do not count: a run hardly ever repeats to the byte."""
_CHANGES = 5


class Alike(NamedTuple):
    """Allocations that are the same in both runs, whatever the name of their layer or variable is.

    ``operation`` is empty for variables, and where it is not known.
    """

    kind: Kind
    operation: str
    shape: tuple[int, ...] | None
    dtype: str

    @property
    def text(self) -> str:
        """Operation, shape and type: ``Relu [64,9] float32``."""
        return " ".join(filter(None, (self.operation, tensor_text(list(self.shape or ()), self.dtype))))


class Difference(NamedTuple):
    """How many bytes, and pieces, of allocations that are ``alike`` two runs have at the peak of a step."""

    alike: Alike
    first: int
    second: int
    counts: tuple[int, int]

    @property
    def bytes(self) -> int:
        return self.second - self.first


def differences(first: Standing, second: Standing) -> list[Difference]:
    """Return what is in use at the peaks of a step in two runs, the largest difference first."""
    (before, old), (after, new) = _alike(first), _alike(second)
    found = [Difference(one, before[one], after[one], (old[one], new[one])) for one in {**before, **after}]
    return sorted(found, key=lambda one: -abs(one.bytes))


def _alike(of: Standing) -> tuple[Counter[Alike], Counter[Alike]]:
    """Return bytes and number of the allocations that are alike."""
    sizes: Counter[Alike] = Counter()
    numbers: Counter[Alike] = Counter()
    for row in of.rows:
        for part in row.parts:
            operation = "" if part.python_name else named(part.operation).base
            one = Alike(part.kind, operation, part.shape, part.dtype)
            sizes[one] += part.bytes
            numbers[one] += part.count
        sizes[Alike(row.kind, "", None, "")] += row.bytes - sum(part.bytes for part in row.parts)
    return sizes, numbers


def changed(first: Standing, second: Standing) -> list[str]:
    """Return sentences about what differs most between the peaks of a step in two runs; empty if nothing does."""
    found = differences(first, second)
    before, after = Counter[Kind](), Counter[Kind]()
    for one in found:
        before[one.alike.kind] += one.first
        after[one.alike.kind] += one.second
    least = NOTEWORTHY * max(first.total, second.total)
    changes = {kind: after[kind] - before[kind] for kind in before}
    kinds = sorted((kind for kind in changes if abs(changes[kind]) >= least), key=lambda kind: -abs(changes[kind]))
    told = [f"At the peak of a step {format_bytes(second.total)} are in use, before {format_bytes(first.total)}."]
    for kind in kinds[:_CHANGES]:
        name, change = holder("", kind), changes[kind]
        sizes = f"{format_bytes(abs(change))} {'more' if change > 0 else 'less'} ({format_bytes(before[kind])} before)"
        most = next((one for one in found if one.alike.kind is kind and one.bytes * change > 0), None)
        mostly = ""
        if most is not None and most.alike.shape is not None:
            mostly = f", mostly {most.alike.text}: {most.counts[1]}, before {most.counts[0]}"
        told.append(f"{name[0].upper()}{name[1:]}: {sizes}{mostly}.")
    return told if kinds else []
