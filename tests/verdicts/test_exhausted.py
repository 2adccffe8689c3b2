"""An allocation that failed: the anatomy, and each verdict where it holds and where it just does not."""

import signal
from collections.abc import Iterable

import msgspec

from tests import streams as s
from tests.streams import GIB, MIB
from tests.verdicts.situations import asked, begin, effective, found, reading, wrote
from tfmemtop import events
from tfmemtop.settings import Settings
from tfmemtop.summary import summarise
from tfmemtop.verdicts import Finding

OURS = Settings(memory_limit=2 * GIB)


def error(
    t: float = 30.0, requested: int | None = 64 * MIB, operation: str | None = "AddV2", name: str | None = "GPU:0"
) -> events.OutOfMemory:
    message = "OOM when allocating tensor with shape[16,1048576] and type float on /device:GPU:0"
    return events.OutOfMemory(t=t, pid=100, message=message, device=name, requested=requested, operation=operation)


def moment(
    in_use: int, pool: int, largest_free: int, t: float = 29.0, name: str = "GPU:0", out_of_memory: bool = True
) -> events.MemoryMap:
    free = pool - in_use
    return events.MemoryMap(
        t=t,
        pid=100,
        device=name,
        moment="out_of_memory" if out_of_memory else "live",
        pool=pool,
        in_use=in_use,
        largest_free=largest_free,
        fragmentation=(free - largest_free) / free if free else 0.0,
        regions_found=1,
        regions=[events.Region(4096, pool, in_use, 4, 3, 0)],
    )


def told(*parts: Iterable[events.AnyEvent] | events.AnyEvent) -> Finding:
    return found(*parts)["out-of-memory"]


def gpu(
    limit: int | None = None, settings: Settings | None = None, others: int = 0, asked_limit: int | None = None
) -> list[events.AnyEvent]:
    """A training whose pool of 2 GiB is in use but for 40 MiB."""
    held: dict[int, int | None] = {100: 2 * GIB + 610 * MIB}
    if others:
        held[900] = others
    made = effective(True, limit=asked_limit)
    if settings and settings.memory_limit:
        made = msgspec.structs.replace(made, limit=settings.memory_limit, settled=["limit 2.0 GiB"])
    return [
        *begin(settings, others=others),
        *([asked("set_logical_device_configuration", "GPU:0, [(memory_limit=2048)]")] if asked_limit else []),
        made,
        s.device_reading(29.5, held),
        reading(29.9, 2 * GIB - 40 * MIB, pool=2 * GIB, limit=limit),
    ]


def test_the_anatomy_names_what_was_asked_for_and_how_things_stood() -> None:
    text = told(gpu(2 * GIB, OURS, others=3 * GIB), moment(2 * GIB - 40 * MIB, 2 * GIB, 30 * MIB), error()).text
    for part in (
        "Out of memory on GPU:0 in process 100",
        "AddV2 asked for 64.0 MiB, a tensor of [16,1048576] float",
        "in use 2.0 GiB",
        "cached 40.0 MiB",
        "largest free chunk 30.0 MiB",
        "limit 2.0 GiB",
        "other processes 3.0 GiB",
    ):
        assert part in text


def test_held_back_by_the_users_limit() -> None:
    finding = told(gpu(2 * GIB, OURS), error())
    assert "Held back by the limit of 2.0 GiB that you set here" in finding.text
    assert "[L]" in finding.remedy and "2.0 GiB" in finding.remedy and "[R]" in finding.remedy


def test_held_back_by_the_scripts_limit() -> None:
    assert "that the script set" in told(gpu(2 * GIB, asked_limit=2 * GIB), error()).text


def test_a_limit_that_tensorflow_chose_for_a_session_is_nobodys() -> None:
    # Of a TF1 session the hook tells the allocator's own limit, which no call asked for.
    session: list[events.AnyEvent] = [
        effective(True, limit=2 * GIB),
        reading(29.95, 2 * GIB - 40 * MIB, pool=2 * GIB, limit=2 * GIB),
    ]
    text = told(gpu(), session, error()).text
    assert "Held back" not in text and "Truly full" in text


def test_held_by_others_though_the_script_set_a_limit() -> None:
    text = told(gpu(100 * GIB, asked_limit=100 * GIB, others=137 * GIB), error(requested=GIB)).text
    assert "Held by others: other processes have 137.0 GiB of the card" in text


def test_full_by_what_the_process_has_beside_this_pool() -> None:
    second = s.device_reading(29.6, {100: 139 * GIB})
    finding = told(gpu(100 * GIB, asked_limit=100 * GIB), second, error(requested=GIB))
    assert "The card was full: 984.0 MiB more were needed, and 409.0 MiB of it were free" in finding.text
    assert "other pools, its CUDA context and libraries hold the rest." in finding.text
    room = s.device_reading(29.6, {100: 138 * GIB})
    assert "The card was full" not in told(gpu(100 * GIB, asked_limit=100 * GIB), room, error(requested=GIB)).text


def test_not_held_back_where_the_card_has_no_more() -> None:
    text = told(gpu(2 * GIB, OURS, others=137 * GIB + 300 * MIB), error(requested=GIB)).text
    assert "Held back" not in text


def test_fragmented_if_it_would_have_fitted_in_one_piece() -> None:
    finding = told(gpu(2 * GIB), moment(2 * GIB - 100 * MIB, 2 * GIB, 63 * MIB), error())
    assert "Fragmented: 100.0 MiB of the pool were free" in finding.text and "63.0 MiB" in finding.text
    assert "[A] cuda_malloc_async" in finding.remedy


def test_not_fragmented_if_the_pieces_together_were_too_small() -> None:
    assert "Fragmented" not in told(gpu(2 * GIB), moment(2 * GIB - 63 * MIB, 2 * GIB, 20 * MIB), error()).text


def test_held_by_others_who_lowered_the_limit() -> None:
    finding = told(gpu(2 * GIB, others=100 * GIB), error())
    assert "Held by others: other processes have 100.0 GiB of the card" in finding.text
    assert "24.0 MiB of that were lacking" in finding.text and "[V]" in finding.remedy


def test_not_held_by_others_who_hold_less_than_lacked() -> None:
    text = told(gpu(2 * GIB, others=500 * MIB), error(requested=4 * GIB)).text
    assert "Held by others" not in text and "Truly full" in text


def test_truly_full() -> None:
    finding = told(gpu(2 * GIB), error())
    assert "Truly full: with 2.0 GiB in use it would have come to 2.0 GiB" in finding.text and "[E]" in finding.remedy


def test_what_was_asked_for_is_read_from_tensorflows_own_line() -> None:
    line = (
        "2026-01-01 W bfc_allocator.cc:501] Allocator (bfc) ran out of memory trying to allocate 64.00MiB "
        "(rounded to 67108864)requested by op AddV2\n"
    )
    bare = events.OutOfMemory(t=30.0, pid=100, message="failed to allocate memory [Op:AddV2]", operation="AddV2")
    for pieces in ([line], [line[:90], line[90:]]):
        text = told(gpu(2 * GIB), [wrote(piece, 29.95) for piece in pieces], bare).text
        assert "on GPU:0" in text and "AddV2 asked for 64.0 MiB" in text
    late = told(gpu(2 * GIB), bare, wrote(line, 30.2)).text
    assert "asked for 64.0 MiB" in late


def test_without_a_size_no_verdict_is_made_up() -> None:
    bare = events.OutOfMemory(t=30.0, pid=100, message="failed to allocate memory [Op:AddV2]", operation="AddV2")
    text = told(gpu(2 * GIB), bare).text
    assert "not known is how much was asked for" in text


def test_old_figures_are_called_old() -> None:
    assert "may be wrong" in told(gpu(2 * GIB), error(t=60.0)).text
    live = moment(2 * GIB - 100 * MIB, 2 * GIB, 63 * MIB, t=12.0, out_of_memory=False)
    assert "was read 18 s before" in told(gpu(2 * GIB), live, error()).text


def test_figures_are_those_of_the_failure_not_of_now() -> None:
    text = told(gpu(2 * GIB, OURS), error(), reading(40.0, 10 * MIB, pool=2 * GIB, limit=2 * GIB)).text
    assert "in use 2.0 GiB" in text and "Held back" in text


def test_cudas_own_pool_is_not_judged() -> None:
    parts = [*begin(), effective(True, allocator="cuda_malloc_async"), reading(29.9, GIB, limit=130 * GIB)]
    assert "does not tell how it is cut up" in told(parts, error()).text


def test_while_tensorflow_waits_a_limit_is_already_told_from_the_figures() -> None:
    written = moment(2 * GIB - 100 * MIB, 2 * GIB, 63 * MIB, t=29.95)
    stands = events.Waiting(t=30.0, pid=100, operation="MatMul", file="/home/ada/train.py", line=12)
    text = found(gpu(2 * GIB, OURS), written, stands)["running-out"].text
    assert "No room on GPU:0 in process 100: MatMul at train.py:12 asked for more than 63.0 MiB" in text
    assert "Fragmented, if less than 100.0 MiB was asked for. Else: Held back by the limit of 2.0 GiB" in text
    whole = moment(2 * GIB - 100 * MIB, 2 * GIB, 99 * MIB, t=29.95)
    assert "Fragmented" not in found(gpu(2 * GIB, OURS), whole, stands)["running-out"].text
    # Without anybody's limit there is more than one reason left.
    text = found(gpu(2 * GIB), written, stands)["running-out"].text
    assert "Else: What is in use and what was asked for are together too much." in text
    after = told(gpu(2 * GIB, OURS), written, stands, error())
    assert "AddV2 at train.py:12 asked for 64.0 MiB" in after.text


def test_scratch_memory_is_called_harmless_where_tensorflow_says_so() -> None:
    line = (
        "2026-01-01 W bfc_allocator.cc:291] Allocator (bfc) ran out of memory trying to allocate 2.25GiB with "
        "freed_by_count=0. The caller indicates that this is not a failure, but this may mean that there could be "
        "performance gains if more memory were available."
    )
    written = moment(2 * GIB - 100 * MIB, 2 * GIB, 63 * MIB, t=29.9)
    finding = found(gpu(2 * GIB), written, wrote(line, 29.95))["running-out"]
    assert finding.level == "info" and "asked for 2.2 GiB" in finding.text and "harmless" in finding.text
    # An error that comes of something else has another size.
    assert "asked for 64.0 MiB" in told(gpu(2 * GIB), written, wrote(line, 29.95), error()).text


def test_a_failed_scratch_allocation_is_no_error() -> None:
    scratch = moment(2 * GIB - 100 * MIB, 2 * GIB, 63 * MIB)
    soon = found(gpu(2 * GIB), scratch, s.alive(31.0, 100, 900))
    assert "out-of-memory" not in soon and "if no error follows" in soon["running-out"].text
    later = found(gpu(2 * GIB), scratch, s.alive(60.0, 100, 900))
    assert "out-of-memory" not in later and "running-out" not in later


def test_while_tensorflow_waits_the_pool_is_told_and_then_the_error() -> None:
    written = moment(2 * GIB - 100 * MIB, 2 * GIB, 63 * MIB, t=20.0)
    assert "largest free chunk 63.0 MiB" in found(gpu(2 * GIB), written)["running-out"].text
    after = found(gpu(2 * GIB), written, error())
    assert "Fragmented" in after["out-of-memory"].text and "running-out" not in after


def on_cpu(pool: int, peak: int, limit: int = 300 * MIB) -> list[events.AnyEvent]:
    last = s.allocator(5.0, 100, in_use=peak, peak=peak, pool=pool, name="CPU:0")
    return [
        s.session(),
        s.run(),
        s.process(0.3, 100),
        s.alive(1.0, 100),
        s.hook(1.1, 100),
        msgspec.structs.replace(last, limit=limit),
    ]


def test_the_cpu_pools_limit_comes_from_the_environment() -> None:
    failed = error(t=5.05, requested=100 * MIB, name="CPU:0")
    text = told(on_cpu(300 * MIB, 250 * MIB), failed).text
    assert "the limit of 300.0 MiB that the environment set: the machine had 56.0 GiB free" in text


def died(number: int | None, code: int | None = None) -> events.RunEnd:
    return events.RunEnd(t=6.0, run=1, exit_code=code, signal=number)


def test_a_crash_near_the_cpu_pools_limit_is_told_with_doubt() -> None:
    for end in (died(signal.SIGSEGV), died(None, 139)):
        finding = found(on_cpu(298 * MIB, 200 * MIB), end)["crashed-when-full"]
        assert "may have run out of its CPU pool" in finding.text and "limit of 300.0 MiB" in finding.text


def waiting(seconds: int, moves: int = 0) -> list[events.AnyEvent]:
    """A pool of 260 MiB, of a limit of 300 MiB, whose use stands still, or *moves* by so many bytes."""
    still = [
        s.allocator(5.0 + i / 4, 100, 216 * MIB + moves * i, pool=260 * MIB, name="CPU:0") for i in range(4 * seconds)
    ]
    return [*on_cpu(260 * MIB, 216 * MIB), *(msgspec.structs.replace(one, limit=300 * MIB) for one in still)]


def test_a_crash_after_tensorflow_waited_for_room_is_told_with_doubt() -> None:
    end = events.RunEnd(t=16.0, run=1, exit_code=None, signal=signal.SIGSEGV)
    text = found(waiting(10), end)["crashed-when-full"].text
    assert "stood still for 10 s" in text and "may have run out" in text
    assert "crashed-when-full" not in found(waiting(10, moves=256), end)
    assert "crashed-when-full" not in found(waiting(6), end)


def test_a_crash_far_from_the_limit_is_not() -> None:
    assert "crashed-when-full" not in found(on_cpu(260 * MIB, 200 * MIB), died(signal.SIGSEGV))
    assert "crashed-when-full" not in found(on_cpu(298 * MIB, 200 * MIB), died(signal.SIGTERM))


def test_the_summary_of_a_recording_says_the_same() -> None:
    stream = [*gpu(2 * GIB, OURS), error()]
    assert told(stream).text in summarise(stream).lines()
