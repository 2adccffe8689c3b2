"""Two runs side by side: their figures, and the difference in words. Pure."""

import msgspec

from tfmemtop.state.model import RunState
from tfmemtop.state.steps import pace
from tfmemtop.units import UNKNOWN, format_bytes, format_duration, format_rate
from tfmemtop.verdicts.ending import ending

NOTEWORTHY = 0.02
"""Differences below this share are called alike: a run hardly ever repeats to the byte."""


class RunFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One run's figures. Sizes are bytes, ``None`` where not known; peaks are over the whole run.

    ``settings`` are what the user chose for it and what TensorFlow did, as words. ``peak_in_use``
    and ``peak_pool`` are of the largest allocator, ``peak_process_total`` of the fullest GPU.
    ``fragmentation`` is the share of the pool's free bytes outside its largest free piece, at the
    newest map before the end. ``first_step_s`` is from the run's start to the end of the first call of a
    ``tf.function``; steps are those of the busiest one, and ``calls`` of it (``unit``) where that may take several.
    """

    name: str
    run: int
    command: str
    settings: list[str]
    duration_s: float
    end: str  # in words; "running" if it has not ended
    good: bool  # ended with exit code 0, or still goes
    whole: bool  # ended with exit code 0
    peak_in_use: int | None
    peak_pool: int | None
    peak_process_total: int | None
    fragmentation: float | None
    out_of_memory: int
    first_step_s: float | None = None
    unit: str = "steps"
    steps: int | None = None
    steps_per_s: float | None = None


class Row(msgspec.Struct, frozen=True):
    """One figure of two runs as text, and how the second differs; empty where that says nothing."""

    label: str
    first: str
    second: str
    difference: str


def figures(run: RunState, now: float, name: str = "") -> RunFigures:
    """The figures of *run*; *now* is the last moment known, in session seconds."""
    last = run.ended if run.ended is not None else now
    steps = pace(run.steps, last) if run.steps else None
    first = run.steps.first_step if run.steps else None
    return RunFigures(
        name=name or f"run {run.run}",
        run=run.run,
        command=" ".join(run.argv),
        settings=settings_of(run),
        duration_s=round(max(0.0, last - run.started), 3),
        end=ending(run) or "running",
        good=run.going or run.exit_code == 0,
        whole=not run.going and run.exit_code == 0,
        peak_in_use=run.peak_in_use,
        peak_pool=run.peak_pool,
        peak_process_total=run.peak_process_total,
        fragmentation=run.fragmentation,
        out_of_memory=run.out_of_memory,
        first_step_s=None if first is None else round(max(0.0, first - run.started), 3),
        unit=steps.unit if steps else "steps",
        steps=steps.count if steps else None,
        steps_per_s=round(steps.whole, 3) if steps and steps.whole is not None else None,
    )


def settings_of(run: RunState) -> list[str]:
    """What TensorFlow did in *run*, else what the user chose for it; as words in a fixed order."""
    chosen, devices = run.settings, list(run.effective.values())
    if not devices:
        return chosen.words()
    # Beside GPUs the limit of TensorFlow's pool on the CPU is another matter.
    gpus = [device for device in devices if device.device.startswith("GPU")]
    devices = gpus or devices
    words = []
    growths = {device.growth for device in gpus if device.growth is not None}
    if growths:
        words.append("growth " + (("on" if growths.pop() else "off") if len(growths) == 1 else "differs"))
    limits = [device.limit for device in devices if device.limit is not None]
    if limits:
        words.append("limit " + " + ".join(map(format_bytes, limits)))
    if any(device.allocator == "cuda_malloc_async" for device in devices):
        words.append("cuda_malloc_async")
    cpu_pool = chosen.cpu_pool if gpus else None
    rest = msgspec.structs.replace(chosen, growth=None, memory_limit=None, allocator=None, cpu_pool=cpu_pool)
    return words + rest.words()


def rows(first: RunFigures, second: RunFigures) -> list[Row]:
    """Every figure of the two, first to second."""
    found = [
        Row("settings", _words(first), _words(second), ""),
        Row(
            "duration",
            format_duration(first.duration_s),
            format_duration(second.duration_s),
            _seconds(first.duration_s, second.duration_s),
        ),
    ]
    for label, a, b in (
        ("peak in use", first.peak_in_use, second.peak_in_use),
        ("peak pool", first.peak_pool, second.peak_pool),
        ("peak process", first.peak_process_total, second.peak_process_total),
    ):
        found.append(Row(label, format_bytes(a), format_bytes(b), _bytes(a, b)))
    found.append(Row("first step after", *_first_steps(first, second)))
    unit = first.unit if first.steps is not None else second.unit
    found.append(Row(f"{unit} a second", _rate(first), _rate(second), _faster(first, second)))
    found.append(Row("fragmentation", _share(first.fragmentation), _share(second.fragmentation), ""))
    found.append(Row("out of memory", str(first.out_of_memory), str(second.out_of_memory), ""))
    found.append(Row("end", first.end, second.end, ""))
    return found


def sentences(first: RunFigures, second: RunFigures) -> list[str]:
    """What the second run does otherwise than the first; says so where it is nothing."""
    before, found = set(first.settings), []
    changed = [word for word in second.settings if word not in before]
    dropped = [word for word in first.settings if word not in set(second.settings)]
    head = ", ".join(changed) or (f"without {', '.join(dropped)}" if dropped else "the same settings")
    held = _more(first.peak_process_total, second.peak_process_total, "held")
    if not held:
        held = _more(first.peak_pool, second.peak_pool, "in the pool")
    use = _more(first.peak_in_use, second.peak_in_use, "in use at the peak")
    read = [run.peak_in_use is not None or run.peak_process_total is not None for run in (first, second)]
    same = "no difference worth telling in memory" if all(read) else "memory was not read in both"
    figures = [text for text in (held, use) if text] or [same]
    faster = _faster(first, second)
    figures += [faster] if faster and faster != "same" else []
    found.append(f"{head}: {', '.join(figures)}.")
    if second.out_of_memory != first.out_of_memory:
        found.append(f"Out-of-memory errors: {second.out_of_memory}, before {first.out_of_memory}.")
    if first.end != second.end:
        found.append(f"{second.name}: {second.end}; {first.name}: {first.end}.")
    elif first.whole:
        longer = second.duration_s - first.duration_s
        if abs(longer) > max(1.0, first.duration_s * NOTEWORTHY):
            found.append(f"It took {format_duration(abs(longer))} {'longer' if longer > 0 else 'less'}.")
    if first.command != second.command:
        found.append(f"Not the same command: {second.command}; before: {first.command}.")
    if not (first.whole and second.whole):
        found.append("Not both ran to a good end: each peak is of the part that was run.")
    return found


def _words(run: RunFigures) -> str:
    return " · ".join(run.settings) or "the script's own"


def _more(a: int | None, b: int | None, what: str) -> str:
    if a is None or b is None or abs(b - a) <= max(a, b) * NOTEWORTHY:
        return ""
    return f"{format_bytes(abs(b - a))} {'more' if b > a else 'less'} {what}"


def _bytes(a: int | None, b: int | None) -> str:
    if a is None or b is None:
        return ""
    return "same" if a == b else ("+" if b > a else "-") + format_bytes(abs(b - a))


def _seconds(a: float, b: float) -> str:
    return "" if int(a) == int(b) else ("+" if b > a else "-") + format_duration(abs(b - a))


def _first_steps(first: RunFigures, second: RunFigures) -> tuple[str, str, str]:
    a, b = first.first_step_s, second.first_step_s
    shown = [UNKNOWN if value is None else format_duration(value) for value in (a, b)]
    return shown[0], shown[1], "" if a is None or b is None else _seconds(a, b)


def _rate(run: RunFigures) -> str:
    return UNKNOWN if run.steps_per_s is None else format_rate(run.steps_per_s)


def _faster(first: RunFigures, second: RunFigures) -> str:
    """Only of what is counted alike."""
    a, b = first.steps_per_s, second.steps_per_s
    if not a or not b or first.unit != second.unit or first.command != second.command:
        return ""
    if abs(b - a) <= a * NOTEWORTHY:
        return "same"
    return f"{b / a - 1:.1%} faster" if b > a else f"{1 - b / a:.1%} slower"


def _share(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.0%}"
