"""The text of findings about how much a pool holds, and about limits."""

from tfmemtop.rules.limits import LooseLimit, TightLimit
from tfmemtop.rules.pool import CachedButIdle, FragmentedPool, GrownBeyondNeed, WholeCard
from tfmemtop.units import format_bytes
from tfmemtop.words.findings.code import GROWTH
from tfmemtop.words.findings.saying import Said, say
from tfmemtop.words.places import place_name


@say.register
def _(found: WholeCard) -> Said:
    if found.in_use is None or found.peak is None:
        used = "How much is in use is not known."
    else:
        now = "were in use at the end" if found.ended else "are in use now"
        used = f"{format_bytes(found.in_use)} {now}, {format_bytes(found.peak)} at the peak."
    return Said(
        f"{place_name(found.place)}: growth is off, so TensorFlow took {format_bytes(found.held)} of the card's "
        f"{format_bytes(found.whole)} at once.",
        "Without growth and without a limit TensorFlow's pool is as large as what is free on the card when TensorFlow "
        "starts, less a small reserve, whatever the script needs. nvidia-smi then shows a full card, which says "
        "nothing about how full the pool is. It costs nothing while nobody else needs the card. With growth the pool "
        "starts small and grows. It gives nothing back before the process ends or an allocation fails.",
        GROWTH,
        used,
    )


@say.register
def _(found: CachedButIdle) -> Said:
    are, keeps = "are cached but idle", "keeps it until the process ends"
    if found.ended:
        are, keeps = "were cached but idle at the end", "kept it until the process ended"
    return Said(
        f"{place_name(found.place)}: {format_bytes(found.idle)} of the pool's {format_bytes(found.pool)} {are}.",
        f"The script had {format_bytes(found.peak)} in use at its peak, and at most {format_bytes(found.recent)} "
        "lately. A deleted tensor gives its memory back to the pool, not to the card: the next tensors reuse it at "
        "once, other processes cannot have it. With growth the pool grows as needed; it never shrinks. Neither del, "
        "gc.collect nor tf.keras.backend.clear_session changes that; only the end of the process does. A later phase, "
        "such as the next validation, may need the memory again: a limit below the peak would end it with an "
        "out-of-memory error.",
        (
            "import multiprocessing",
            "",
            "# in place of prepare(): all its memory goes back when the process ends",
            'phase = multiprocessing.get_context("spawn").Process(target=prepare)',
            "phase.start()",
            "phase.join()",
        ),
        f"Nothing has used this memory for {found.span_s:.0f} s. TensorFlow {keeps}.",
    )


@say.register
def _(found: GrownBeyondNeed) -> Said:
    holds = "held" if found.ended else "holds"
    why = "The pool's regions double in size, which may be the reason."
    if found.step is not None:
        why = f"The pool's regions double in size; the last one was {format_bytes(found.step)}."
    return Said(
        f"{place_name(found.place)}: the pool {holds} {format_bytes(found.pool)}, {format_bytes(found.surplus)} more "
        "than was ever in use at once.",
        "BFC, TensorFlow's allocator, takes memory from CUDA in regions, each twice as large as the one before and at "
        "least as large as what was asked for. So the pool may become nearly twice as large as needed. A large tensor "
        "that fits into no free chunk adds a region of its own. A limit stops the last doubling early. How much lower "
        "than the pool it may be depends on the order of allocations, so it has to be tried.",
        figures=why,
    )


@say.register
def _(found: FragmentedPool) -> Said:
    on_gpu = not found.place.on_cpu
    of_gpu = (
        "the allocator cuda_malloc_async, which joins free chunks; a pool that is taken in one region (growth off, or "
        "a limit), since regions never merge; "
        if on_gpu
        else ""
    )
    return Said(
        f"{place_name(found.place)}: {format_bytes(found.free)} of the pool are free, but in chunks of at most "
        f"{format_bytes(found.largest_free)}.",
        f"{found.fragmentation:.0%} of the free memory lie outside the largest free chunk, in {found.chunks_free} free "
        f"chunks among {found.chunks_in_use} in use. A tensor needs one chunk. What helps: {of_gpu}shapes that stay "
        "the same from step to step, as by padding or a fixed batch size; making long-lived tensors (weights, "
        "optimizer slots) first.",
        ("export TF_GPU_ALLOCATOR=cuda_malloc_async",) if on_gpu else (),
        f"The pool is at its limit, so another tensor of {format_bytes(found.biggest)}, the size of the largest in "
        "use, would not fit. Whether the script will ask for one is not known.",
    )


@say.register
def _(found: TightLimit) -> Said:
    return Said(
        f"{place_name(found.place)}: the peak in use is {found.peak / found.limit:.0%} of the limit.",
        "What fits depends on the order of allocations too: free memory in pieces does not add up. Only a try can "
        "find how much more is enough. Larger batches or another model need another limit.",
        figures=f"The peak was {format_bytes(found.peak)}, the limit is {format_bytes(found.limit)}. A little more "
        "use or fragmentation, and the script may run out of memory.",
    )


@say.register
def _(found: LooseLimit) -> Said:
    return Said(
        f"{place_name(found.place)}: the limit is {found.limit / found.peak:.0f} times the peak in use so far, and "
        "without growth TensorFlow holds all of it.",
        "Without growth the pool takes its whole limit at the first allocation. The script may still need what it has "
        "not needed so far, as for a validation with larger batches: let it reach its heaviest part before you lower "
        "the limit.",
        figures=f"The limit is {format_bytes(found.limit)}, the peak {format_bytes(found.peak)}.",
    )
