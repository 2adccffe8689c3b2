"""An allocation that failed: the anatomy, and each cause where it applies, and where it just does not."""

from collections.abc import Iterable

import msgspec

from tests import streams as s
from tests.findings.situations import Found, actions, asked_limits, begin, effective, found, reading, wrote
from tests.streams import GIB, MIB
from tfmemtop import events
from tfmemtop.findings.cause import Cause, Key
from tfmemtop.findings.finding import Severity
from tfmemtop.findings.remedy import Action, raise_limit
from tfmemtop.findings.review import review, verdict
from tfmemtop.findings.room import no_room
from tfmemtop.findings.rules.out_of_memory import AllocationFailed, NoRoom
from tfmemtop.reports.summary import summarise
from tfmemtop.settings import Settings
from tfmemtop.state.lookup import LimitBy

OURS = Settings(memory_limit=2 * GIB)
HIGHER, LARGER = raise_limit(2 * GIB, on_cpu=False), raise_limit(300 * MIB, on_cpu=True)


def error(
    t: float = 30.0, requested: int | None = 64 * MIB, operation: str | None = "AddV2", name: str | None = "GPU:0"
) -> events.OutOfMemory:
    message = "OOM when allocating tensor with shape[16,1048576] and type float on /device:GPU:0"
    return events.OutOfMemory(
        t=t,
        pid=100,
        message=message,
        device=name,
        requested=requested,
        operation=operation,
        shape=[16, 1048576],
        dtype="float",
    )


def moment(
    in_use: int, pool: int, largest_free: int, t: float = 29.0, name: str = "GPU:0", out_of_memory: bool = True
) -> events.MemoryMap:
    free = pool - in_use
    return events.MemoryMap(
        t=t,
        pid=100,
        device=name,
        moment=events.MapMoment.OUT_OF_MEMORY if out_of_memory else events.MapMoment.LIVE,
        pool=pool,
        in_use=in_use,
        largest_free=largest_free,
        fragmentation=(free - largest_free) / free if free else 0.0,
        regions_found=1,
        regions=[events.Region(4096, pool, in_use, 4, 3, 0)],
    )


def told(*parts: Iterable[events.Event] | events.Event) -> AllocationFailed:
    return found(*parts)[AllocationFailed]


def cause(*parts: Iterable[events.Event] | events.Event) -> Cause:
    return told(*parts).cause


def gpu(
    limit: int | None = None, settings: Settings | None = None, others: int = 0, asked_limit: int | None = None
) -> list[events.Event]:
    """Return the events of a training whose pool of 2 GiB is in use except for 40 MiB."""
    held: dict[int, int | None] = {100: 2 * GIB + 610 * MIB}
    if others:
        held[900] = others
    made = effective(True, limit=asked_limit)
    if settings and settings.memory_limit:
        made = msgspec.structs.replace(
            made, limit=settings.memory_limit, settled=[events.Settled(events.Setting.MEMORY_LIMIT, [], 2 * GIB)]
        )
    return [
        *begin(settings, others=others),
        *([asked_limits(2 * GIB)] if asked_limit else []),
        made,
        s.device_reading(29.5, held),
        reading(29.9, 2 * GIB - 40 * MIB, pool=2 * GIB, limit=limit),
    ]


def test_the_anatomy_names_what_was_asked_for_and_how_things_stood() -> None:
    stream = [*gpu(2 * GIB, OURS, others=3 * GIB), moment(2 * GIB - 40 * MIB, 2 * GIB, 30 * MIB), error()]
    text = told(stream).said.text
    assert "AddV2 asked for 64.0 MiB, [16,1048576]. 2.0 GiB were in use" in " ".join(summarise(stream, 0))
    for part in (
        "Out of memory: AddV2 asked for 64.0 MiB, [16,1048576]. 2.0 GiB were in use; your limit is 2.0 GiB.",
        "The request was for a tensor of [16,1048576] float32.",
        "GPU:0, process 100: in use 2.0 GiB",
        "cached 40.0 MiB",
        "largest free chunk 30.0 MiB",
        "limit 2.0 GiB",
        "other processes 3.0 GiB",
    ):
        assert part in text


def test_a_graph_is_called_by_its_function() -> None:
    graph = error(operation="__inference_train_step_140")
    assert "tf.function `train_step` asked" in told(gpu(2 * GIB, OURS), graph).said.headline


def test_an_operation_in_a_graph_is_named_with_its_layer_and_its_own_line() -> None:
    graph = msgspec.structs.replace(
        error(operation="__inference_train_step_140"), message="OOM [[{{node model/dense_1/MatMul}}]]"
    )
    stands = events.Waiting(t=29.0, pid=100, operation=None, file="/home/ada/train.py", line=12)
    assert "MatMul of `model/dense_1` at train.py:12 asked" in told(gpu(2 * GIB, OURS), stands, graph).said.headline
    line = events.AllocatorLine(
        t=29.9,
        pid=100,
        at=29.9,
        allocator="bfc",
        size=64 * MIB,
        operation="StatefulPartitionedCall/model/dense_1/MatMul",
    )
    made = events.OperationLine("StatefulPartitionedCall/model/dense_1/MatMul", "/home/ada/net.py", 7, "w @ x")
    known = [line, events.OperationLines(t=29.0, pid=100, lines=[made])]
    assert "at net.py:7 asked" in told(gpu(2 * GIB, OURS), stands, *known, graph).said.headline


def test_a_line_that_waited_long_before_is_named_where_the_script_ended_there() -> None:
    """The operations of one call wait one after another, each for 10 s."""

    def names_line(line: int) -> bool:
        stands = events.Waiting(t=3.0, pid=100, operation=None, file="/home/ada/train.py", line=12)
        ended = events.ScriptError(
            t=30.1, pid=100, kind="ResourceExhaustedError", message="OOM", file="/home/ada/train.py", line=line
        )
        return "train.py:12" in told(gpu(2 * GIB, OURS), stands, error(), ended).said.headline

    assert names_line(12) and not names_line(13)


def test_what_asked_is_named_by_the_call_in_the_script_and_xla_by_its_error() -> None:
    def headline(message: str, code: str = "", operation: str = "__inference_f_140") -> str:
        failed = msgspec.structs.replace(error(operation=operation), message=message)
        stands = events.Waiting(t=29.0, pid=100, operation=None, file="/home/ada/train.py", line=12, code=code)
        return told(gpu(2 * GIB, OURS), stands, failed).said.headline

    rows = "OOM [[{{node gradient_tape/MatMul/pfor/MatMul}}]]"
    assert "tape.jacobian at train.py:12 asked" in headline(rows, "j = tape.jacobian(y, model.w)")
    assert "here in MatMul" in headline(rows) and "a Jacobian or a vectorized map at train.py:12 asked" in headline(
        rows
    )
    assert "tape.jacobian at train.py:12 asked" in headline(
        "OOM", "tape.jacobian(y, x)", "gradient_tape/MatMul/pfor/Tile"
    )
    compiled = headline("Out of memory while trying to allocate 64.00MiB. [Op:__inference_f_140]")
    assert "XLA asked for 64.0 MiB" in compiled and "for the compiled tf.function `f` at train.py:12" in compiled
    inner = "Out of memory while trying to allocate 64.00MiB. [[{{node StatefulPartitionedCall}}]]"
    assert "for the compiled part of tf.function `f` at train.py:12" in headline(inner)
    assert "the compiled step at train.py:12" in headline(inner, operation="__inference_multi_step_on_iterator_140")


def test_where_memory_ran_out_comes_before_who_keeps_it() -> None:
    stands = events.Waiting(t=29.0, pid=100, operation="AddV2", file="/home/ada/train.py", line=12)
    kept = events.Alike("losses", 900, [1024], "float32", "GPU:0", 1900 * MIB)
    look = events.Census(t=29.5, pid=100, kinds={"GPU:0": {"tensors": 0}}, largest=[], tensors=9, alike=[kept])
    text = told(gpu(2 * GIB, OURS), stands, look, error()).said.text
    assert text.startswith("Out of memory at train.py:12: `losses` keeps 900 tensors of [1024] float32: 1.9 GiB")


def test_held_back_by_the_users_limit() -> None:
    finding = told(gpu(2 * GIB, OURS), error())
    assert finding.cause.key is Key.LIMIT_TOO_SMALL and finding.anatomy.limit_by is LimitBy.TFMEMTOP
    assert actions(finding) == [HIGHER, Action.NEED_LESS, Action.FIND_LIMIT]
    by_script = told(gpu(2 * GIB, asked_limit=2 * GIB), error())
    assert by_script.anatomy.limit_by is LimitBy.SCRIPT and actions(by_script)[0] == HIGHER
    assert "you" in finding.cause.text and "script" in by_script.cause.text
    beside = told(gpu(2 * GIB, asked_limit=2 * GIB), effective(True, 6 * GIB, name="GPU:1"), error())
    unknown = told(
        gpu(2 * GIB, asked_limit=2 * GIB), effective(True, 6 * GIB, name="GPU:1"), error(requested=None, operation=None)
    )
    for one in (beside, unknown):
        assert "memory_limit of GPU:0" in actions(one)[0].text, "--memory-limit is for all devices of the card"
    # The card has no more to give, whatever the limit.
    no_more = told(gpu(2 * GIB, OURS, others=137 * GIB + 300 * MIB), error(requested=GIB))
    assert HIGHER not in actions(no_more)


def test_a_limit_that_tensorflow_chose_for_a_session_is_nobodys() -> None:
    # For a TF1 session the hook reports the allocator's own limit, which no call requested.
    session: list[events.Event] = [
        effective(True, limit=2 * GIB),
        reading(29.95, 2 * GIB - 40 * MIB, pool=2 * GIB, limit=2 * GIB),
    ]
    assert actions(told(gpu(), session, error())) == [Action.NEED_LESS]


def test_held_by_others_though_the_script_set_a_limit() -> None:
    others = cause(gpu(100 * GIB, asked_limit=100 * GIB, others=137 * GIB), error(requested=GIB))
    assert others.key is Key.OTHERS and others.bytes == 137 * GIB


def test_full_by_what_the_process_has_beside_this_pool() -> None:
    second = s.device_reading(29.6, {100: 139 * GIB})
    full = told(gpu(100 * GIB, asked_limit=100 * GIB), second, error(requested=GIB))
    assert full.cause.key is Key.LIMIT_TOO_SMALL and full.cause.bytes == 984 * MIB
    assert actions(full) == [Action.LEAVE_ROOM]
    room = s.device_reading(29.6, {100: 138 * GIB})
    assert cause(gpu(100 * GIB, asked_limit=100 * GIB), room, error(requested=GIB)).key is Key.UNKNOWN


def test_fragmented_if_it_would_have_fitted_in_one_piece() -> None:
    finding = told(gpu(2 * GIB), moment(2 * GIB - 100 * MIB, 2 * GIB, 63 * MIB), error())
    assert (finding.cause.key, finding.cause.bytes) == (Key.FRAGMENTATION, 100 * MIB)
    assert "63.0 MiB" in finding.cause.text and Action.USE_CUDA_ALLOCATOR in actions(finding)
    code = "grads = tape.gradient(loss, model.trainable_variables)"
    line = events.Waiting(t=29.0, pid=100, operation=None, file="/a/train.py", line=9, code=code)
    in_a_loop = told(gpu(2 * GIB), line, moment(2 * GIB - 100 * MIB, 2 * GIB, 63 * MIB), error())
    assert actions(in_a_loop) == [Action.USE_CUDA_ALLOCATOR, Action.TAPE_EACH_STEP]
    # Here the pieces together were too small.
    too_small = moment(2 * GIB - 63 * MIB, 2 * GIB, 20 * MIB)
    assert cause(gpu(2 * GIB), too_small, error()).key is Key.LIMIT_TOO_SMALL


def test_threads_that_ask_at_once_are_told_to_take_turns() -> None:
    def asked(threads: int, file: str = "/a/serve.py", free: int = 63) -> AllocationFailed:
        line = events.Waiting(t=29.0, pid=100, operation=None, file=file, line=9, at_once=threads)
        return told(gpu(2 * GIB), line, moment(2 * GIB - free * MIB, 2 * GIB, 20 * MIB), error())

    many, one = asked(16), asked(1)
    assert "16 threads" in many.whole_cause.text and actions(many) == [Action.FEWER_CALLS, *actions(one)]
    assert actions(asked(16, file="")) == actions(one), "no line of the script is known that all of them run"
    pieces = asked(16, file=f"/a/{'long' * 12}.py", free=100)
    assert pieces.cause.key is Key.FRAGMENTATION and "fragmented" in pieces.whole_cause.evidence[0], (
        "no room in the text"
    )


def test_a_pool_in_pieces_is_not_the_cause_where_more_is_needed_than_ever_before() -> None:
    anatomy = told(gpu(2 * GIB, OURS), moment(1900 * MIB, 2000 * MIB, 63 * MIB), error()).anatomy
    assert no_room(anatomy, peak=1964 * MIB).key is Key.FRAGMENTATION
    assert no_room(anatomy, peak=1900 * MIB).key is Key.LIMIT_TOO_SMALL
    anatomy = told(gpu(2 * GIB, OURS), moment(1960 * MIB, 2040 * MIB, 63 * MIB), error()).anatomy
    assert no_room(anatomy, peak=2 * GIB).key is Key.LIMIT_TOO_SMALL, "it was full, but for a few chunks"


def test_held_by_others_who_lowered_the_limit() -> None:
    finding = told(gpu(2 * GIB, others=100 * GIB), error())
    assert finding.cause.key is Key.OTHERS and "limit of TensorFlow's pool was 2.0 GiB" in finding.cause.text
    assert actions(finding) == [Action.RUN_WHEN_FREE, Action.USE_OTHER_GPU]
    some = cause(gpu(2 * GIB, others=4 * GIB), error())
    assert some.key is Key.OTHERS and "24.0 MiB" in some.evidence[0]
    # Here the others hold less than what was lacking.
    assert cause(gpu(2 * GIB, others=500 * MIB), error(requested=4 * GIB)).key is Key.LIMIT_TOO_SMALL


def test_truly_full() -> None:
    finding = told(gpu(2 * GIB), error())
    assert (finding.cause.key, finding.cause.bytes) == (Key.LIMIT_TOO_SMALL, 2072 * MIB)
    assert actions(finding) == [Action.NEED_LESS]


def test_what_was_asked_for_is_read_from_tensorflows_own_line() -> None:
    line = (
        "2026-01-01 W bfc_allocator.cc:501] Allocator (bfc) ran out of memory trying to allocate 64.00MiB "
        "(rounded to 67108864)requested by op AddV2\n"
    )
    bare = events.OutOfMemory(t=30.0, pid=100, message="failed to allocate memory [Op:AddV2]", operation="AddV2")
    for pieces in ([line], [line[:90], line[90:]]):
        anatomy = told(gpu(2 * GIB), [wrote(piece, 29.95) for piece in pieces], bare).anatomy
        assert (anatomy.device, anatomy.operation, anatomy.asked) == ("GPU:0", "AddV2", 64 * MIB)
    assert told(gpu(2 * GIB), bare, wrote(line, 30.2)).anatomy.asked == 64 * MIB


def test_the_same_line_in_the_output_and_from_the_probe_counts_once() -> None:
    line = (
        "2026-01-01 W bfc_allocator.cc:501] Allocator (bfc) ran out of memory trying to allocate 64.00MiB "
        "(rounded to 67108864)requested by op \r\nIf the cause"
    )
    kept = events.AllocatorLine(t=30.3, pid=100, at=29.9, allocator="bfc", size=64 * MIB)
    for parts in ([wrote(line, 29.95), kept], [kept, wrote(line, 30.4)]):
        run = s.fold([*gpu(2 * GIB), *parts]).run
        assert run is not None and [(one.at, one.pid) for one in run.complaints] == [(29.9, 100)]
    others = [msgspec.structs.replace(kept, pid=900), msgspec.structs.replace(kept, at=20.0)]
    state = s.fold([*gpu(2 * GIB), s.process(30.1, 900), s.alive(30.2, 100, 900), kept, *others])
    assert state.run is not None and len(state.run.complaints) == 3
    assert told(gpu(2 * GIB), kept, error(requested=None)).anatomy.asked == 64 * MIB


def test_of_requests_that_failed_together_the_line_about_the_errors_own_counts() -> None:
    kept = [events.AllocatorLine(t=29.95, pid=100, at=29.9, allocator="bfc", size=size) for size in (64 * MIB, GIB)]
    assert told(gpu(2 * GIB), *kept, error()).anatomy.asked == 64 * MIB
    assert told(gpu(2 * GIB), kept[1], error()).anatomy.asked == 64 * MIB


def test_without_a_size_no_verdict_is_made_up() -> None:
    bare = events.OutOfMemory(t=30.0, pid=100, message="failed to allocate memory [Op:AddV2]", operation="AddV2")
    unknown = cause(gpu(2 * GIB), bare)
    assert unknown.key is Key.UNKNOWN and "requested size" in unknown.text and unknown.bytes is None


def test_old_figures_are_called_old() -> None:
    assert "30 s older than the failure" in told(gpu(2 * GIB), error(t=60.0)).said.text
    live = moment(2 * GIB - 100 * MIB, 2 * GIB, 38 * MIB, t=12.0, out_of_memory=False)
    assert "read 18 s before the failure" in told(gpu(2 * GIB), live, error()).said.text
    larger = moment(2 * GIB - 100 * MIB, 2 * GIB, 63 * MIB, t=12.0, out_of_memory=False)
    assert "largest free" not in told(gpu(2 * GIB), larger, error()).said.text, "only 40 MiB were free"


def test_figures_are_those_of_the_failure_not_of_now() -> None:
    finding = told(gpu(2 * GIB, OURS), error(), reading(40.0, 10 * MIB, pool=2 * GIB, limit=2 * GIB))
    assert finding.anatomy.in_use == 2008 * MIB and actions(finding)[0] == HIGHER


def test_cudas_own_pool_is_not_judged() -> None:
    parts = [*begin(), effective(True, allocator="cuda_malloc_async"), reading(29.9, GIB, limit=130 * GIB)]
    unknown = cause(parts, error())
    assert unknown.key is Key.UNKNOWN and "CUDA's own pool" in unknown.text


def test_while_tensorflow_waits_a_limit_is_already_told_from_the_figures() -> None:
    written = moment(2 * GIB - 100 * MIB, 2 * GIB, 63 * MIB, t=29.95)
    stands = events.Waiting(t=30.0, pid=100, operation="MatMul", file="/home/ada/train.py", line=12)
    finding = found(gpu(2 * GIB, OURS), written, stands)[NoRoom]
    text = finding.said.text
    for part in ("MatMul at train.py:12", "more than 63.0 MiB", "less than 100.0 MiB, the pool is", "2.0 GiB"):
        assert part in text
    assert actions(finding)[0] == HIGHER
    whole = moment(2 * GIB - 100 * MIB, 2 * GIB, 99 * MIB, t=29.95)
    pending = found(gpu(2 * GIB, OURS), whole, stands)[NoRoom]
    assert pending.cause.key is Key.LIMIT_TOO_SMALL and "fragmented" not in pending.said.text
    # If no limit was set, more than one reason is possible.
    assert found(gpu(2 * GIB), written, stands)[NoRoom].cause.key is Key.UNKNOWN
    assert "AddV2 at train.py:12" in told(gpu(2 * GIB, OURS), written, stands, error()).said.text


def test_scratch_memory_is_called_harmless_where_tensorflow_says_so() -> None:
    line = (
        "2026-01-01 W bfc_allocator.cc:291] Allocator (bfc) ran out of memory trying to allocate 2.25GiB with "
        "freed_by_count=0. The caller indicates that this is not a failure, but this may mean that there could be "
        "performance gains if more memory were available."
    )
    written = moment(2 * GIB - 100 * MIB, 2 * GIB, 63 * MIB, t=29.9)
    finding = found(gpu(2 * GIB), written, wrote(line, 29.95))[NoRoom]
    assert finding.severity is Severity.INFO and finding.cause.key is Key.SCRATCH
    assert finding.anatomy.asked == int(2.25 * GIB)
    # TensorFlow does not wait for scratch memory, so there may be only the line.
    assert found(gpu(2 * GIB), wrote(line, 29.95))[NoRoom].cause.key is Key.SCRATCH
    waits = events.Waiting(t=29.9, pid=100, operation="ReluGrad", file="/home/ada/train.py", line=52)
    assert "ReluGrad" not in found(gpu(2 * GIB), waits, wrote(line, 29.95)).text(NoRoom), "it waits in another pool"
    waiting = found(gpu(2 * GIB), wrote(line, 29.5), written)[NoRoom]
    assert waiting.cause.key is not Key.SCRATCH and not waiting.matters, "another request waits, since just now"
    # An error with another cause has another size.
    assert told(gpu(2 * GIB), written, wrote(line, 29.95), error()).anatomy.asked == 64 * MIB


def test_a_failed_scratch_allocation_is_no_error() -> None:
    scratch = moment(2 * GIB - 100 * MIB, 2 * GIB, 63 * MIB)
    soon = found(gpu(2 * GIB), scratch, s.alive(31.0, 100, 900))
    assert AllocationFailed not in soon and "If no error follows" in soon.text(NoRoom)
    later = found(gpu(2 * GIB), scratch, s.alive(60.0, 100, 900))
    assert AllocationFailed not in later and NoRoom not in later


def test_a_run_that_was_ended_while_requests_waited_is_told_so_and_a_short_wait_is_not() -> None:
    def ended(*times: float, code: int | None = None) -> Found:
        waits = [moment(2 * GIB - 100 * MIB, 2 * GIB, 63 * MIB, t=t) for t in times]
        end = events.RunEnd(t=60.0, run=1, exit_code=code, signal=15 if code is None else None)
        return found(gpu(2 * GIB, OURS), waits, s.alive(59.0, 100, 900), end)

    def times(since: int, until: int) -> list[float]:
        return [float(t) for t in range(since, until, 5)]

    assert "At the end" in ended(*times(20, 60))[NoRoom].said.text
    assert "then went on" in ended(*times(5, 30), code=0)[NoRoom].said.text
    assert NoRoom not in ended(50.0) and NoRoom not in ended(*times(5, 30), code=1)
    assert NoRoom not in ended(20.0, 30.0, 40.0, 50.0), "short waits, between which the run went on"


def test_a_run_is_told_to_wait_only_while_its_pool_is_copied_again() -> None:
    def cause(now: float, *, alive: bool, until: int = 46) -> Cause:
        waits = [moment(2 * GIB - 100 * MIB, 2 * GIB, 63 * MIB, t=float(t)) for t in range(30, until, 2)]
        told = verdict(review([*gpu(2 * GIB, OURS), *waits, s.alive(now, 100, 900)], alive=alive))
        assert told is not None
        return told

    assert "The run waits" in cause(45.0, alive=True).text and "waits" not in cause(51.0, alive=True).text
    assert "then went on" in cause(55.0, alive=True, until=48).text
    failed = events.ScriptError(t=30.5, pid=100, kind="InvalidArgumentError", message="", file="", line=0, code="")
    gone = events.HookEnd(t=31.0, pid=100, reason=events.HookEnding.EXIT)
    short = [*gpu(2 * GIB, OURS), moment(2 * GIB - 100 * MIB, 2 * GIB, 63 * MIB, t=30.0)]
    assert NoRoom in found(short, failed, gone) and NoRoom not in found(short, gone), "the process ends for seconds"
    assert "At the end" in cause(47.0, alive=False, until=48).text, "the recording breaks off"


def test_while_tensorflow_waits_the_pool_is_told_and_then_the_error() -> None:
    written = moment(2 * GIB - 100 * MIB, 2 * GIB, 63 * MIB, t=20.0)
    assert found(gpu(2 * GIB), written)[NoRoom].anatomy.largest_free == 63 * MIB
    after = found(gpu(2 * GIB), written, error())
    assert after[AllocationFailed].cause.key is Key.FRAGMENTATION and NoRoom not in after
