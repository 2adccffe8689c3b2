"""The text of findings about leaks, and about the tensors that hold the memory."""

from tfmemtop.events import Alike
from tfmemtop.rules.callsite import Callsite
from tfmemtop.rules.host_growth import HostGrowth
from tfmemtop.rules.leaks import Leak, scalars
from tfmemtop.state.growing import Grown
from tfmemtop.units import format_bytes
from tfmemtop.words.counting import counted, rough, rough_time, spoken
from tfmemtop.words.findings.saying import Said, say
from tfmemtop.words.places import line_of, place_name
from tfmemtop.words.requests import tensor_text

WHY_IT_LEAKS = (
    "It may be intended, such as a cache that fills. The usual reasons: losses, outputs or metrics kept in a list as "
    "tensors; a tf.function that is traced again and again, because of Python numbers or changing shapes; variables or "
    "models made in a loop; a persistent tape that is never deleted."
)


def holding(group: Alike) -> str:
    """Return what tensors that are held alike hold: ``690 tensors of 1.0 MiB in losses hold 690.0 MiB.``"""
    tensors = counted(group.count, "tensor")
    if group.shape is not None:
        tensors += f" of {format_bytes(group.bytes // group.count)}"
    if group.holder:
        tensors += f" in {group.holder}"
    elif group.shape is not None:
        tensors += f", each {tensor_text(group.shape, group.dtype)},"
    return f"{tensors} hold {format_bytes(group.bytes)}."


def kept_by_windows(grown: Grown | None) -> str:
    """Return which allocations grow from window to window; empty if none is known to grow."""
    if grown is None:
        return ""
    shape = "" if grown.shape is None else f", each {tensor_text(list(grown.shape), grown.dtype)}"
    name = grown.operation.rpartition("PartitionedCall/")[2]
    by = f"operation {name}" if name else "an operation without a name"
    layer = f" of layer {grown.layer}" if grown.layer else ""
    line = f" ({line_of(Callsite(grown.line.file, grown.line.line, grown.line.code))})" if grown.line else ""
    tensors = f"{counted(grown.count, 'tensor')} of {format_bytes(grown.each)}{shape}"
    freed = "it was not freed" if grown.count == 1 else "none was freed"
    text = f"In {spoken(grown.span_s)}, {by}{layer}{line} made {tensors}, and {freed}."
    return f"{text} Python holds them as {grown.python_name}." if grown.python_name else text


def keep_less(holder: Alike | None) -> tuple[str, ...]:
    """Return lines of code that store less than the tensors of *holder*, which may be a list or a dict."""
    named = holder.holder if holder and holder.holder else ""
    where = f" in {named}" if all(part.isidentifier() for part in named.split(".")) else ""
    if scalars(holder):
        return (f"float(loss)  # store this number{where}; the tensor's memory goes back to the pool",)
    return (f"tensor.numpy()  # store this{where}; it lies in the host's memory, not in the pool",)


@say.register
def _(found: Leak) -> Said:
    rises, has = ("rose", "It rose") if found.ended else ("is rising", "It has been rising")
    pace = f"{format_bytes(int(found.rise * 60))} a minute"
    if found.each is not None:
        pace = f"{format_bytes(found.each)} a {found.unit.rstrip('s')}"
    figures = f"{has} steadily for {spoken(max(1.0, found.span_s))}, also at its lowest points."
    if found.left_s is not None:
        steps = f" ({rough(found.left_steps)} {found.unit})" if found.left_steps is not None else ""
        full = "At that pace it would have been full" if found.ended else "At this pace the memory is full"
        figures += f" {full} in {rough_time(found.left_s)}{steps}."
    if found.holder is not None:
        figures += f" {holding(found.holder)}"
    if found.grown is not None:
        figures += f" {kept_by_windows(found.grown)}"
    return Said(
        f"{place_name(found.place)}: memory in use {rises} by {pace}, which looks like a leak.",
        f"In {found.windows} equal stretches of time the lowest use rose from {format_bytes(found.lows[0])} to "
        f"{format_bytes(found.lows[1])}, the highest from {format_bytes(found.highs[0])} to "
        f"{format_bytes(found.highs[1])}. {WHY_IT_LEAKS}",
        keep_less(found.holder),
        figures,
    )


@say.register
def _(found: HostGrowth) -> Said:
    rise, retraced = found.rise, found.retraced
    rises, fills = ("rose", "It would have filled") if found.ended else ("is rising", "At this pace it fills")
    headline = (
        f"Process {found.pid}: host memory {rises} by {format_bytes(int(rise.rate * 60))} a minute, "
        f"{format_bytes(found.each)} a {found.unit.rstrip('s')}."
    )
    if retraced is not None:
        times = counted(retraced.traces_so_far, "time")
        headline += (
            f" {line_of(retraced.defined)}: {retraced.function} was traced {times}, and each graph stays in memory."
        )
    pools = " Its pools did not grow." if found.pools else ""
    figures = f"It rose steadily for {spoken(rise.span_s)}.{pools}"
    if found.left_s is not None:
        figures += f" {fills} the host in {rough_time(found.left_s)}."
    return Said(
        headline,
        f"It rose from {format_bytes(rise.first)} to {format_bytes(rise.last)}, and was not given back. The usual "
        "reasons: a tf.function that is traced again and again; XLA, which compiles anew for each new shape and keeps "
        "what it compiled; Keras's predict called in a loop; data or results kept in Python. A dataset's cache in "
        "memory rises too, up to its size.",
        figures=figures,
    )
