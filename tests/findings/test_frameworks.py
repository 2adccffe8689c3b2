"""JAX, PyTorch and CuPy in a run: what their out-of-memory errors mean, and what they take of a card."""

import msgspec
import pytest
from msgspec.structs import replace

from tests import streams as s
from tests.findings.situations import Found, actions, begin, effective, found, initialised, reading, wrote
from tests.streams import GIB, MIB
from tfmemtop import events
from tfmemtop.findings.cause import Key
from tfmemtop.findings.finding import Severity
from tfmemtop.findings.judgement import Judged, findings, judged
from tfmemtop.findings.missing import no_map, no_window
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.review import review
from tfmemtop.findings.rules.framework_memory import FrameworkExhausted, FrameworkFailed, parse_framework_exhausted
from tfmemtop.findings.rules.frameworks import CardShared, JaxPreallocated, OtherPools
from tfmemtop.frameworks import FrameworkName, UsedFramework
from tfmemtop.reports.answers import answers
from tfmemtop.reports.why import page
from tfmemtop.settings import Settings
from tfmemtop.state.waiting import waiting
from tfmemtop.ui.waiting import stage

FAILED = events.RunEnd(t=40.0, run=1, exit_code=1, signal=None)


def torch_says(
    requested: str = "4.00 GiB",
    free: str = "1.50 GiB",
    process: str = "78.00 GiB",
    allocated: str = "76.00 GiB",
    cached: str = "512.00 MiB",
    allowed: str = "",
) -> str:
    return (
        f"CUDA out of memory. Tried to allocate {requested}. GPU 0 has a total capacity of 80.00 GiB of which "
        f"{free} is free. Including non-PyTorch memory, this process has {process} memory in use. {allowed}"
        "Of the allocated memory "
        f"{allocated} is allocated by PyTorch, and {cached} is reserved by PyTorch but unallocated."
    )


def raised(message: str, kind: str = "OutOfMemoryError", line: int = 12) -> events.ScriptError:
    return events.ScriptError(t=39.0, pid=100, kind=kind, message=message, file="/home/ada/train.py", line=line)


def failed(message: str, kind: str = "OutOfMemoryError") -> FrameworkFailed:
    return found(begin(), raised(message, kind), FAILED)[FrameworkFailed]


def test_pytorch_is_out_of_memory_on_a_full_card_at_a_line() -> None:
    one = failed(torch_says())
    assert one.whole_cause.key is Key.LIMIT_TOO_SMALL
    assert one.said.headline.startswith(
        "Out of memory: PyTorch at train.py:12 asked for 4.0 GiB. Of the card's 80.0 GiB"
    )
    assert "PyTorch had 76.0 GiB allocated" in one.said.headline
    assert actions(one) == [Action.REDUCE_BATCH]


def test_pytorch_failed_though_there_was_room() -> None:
    one = failed(torch_says(free="6.00 GiB"))
    assert one.whole_cause.key is Key.UNKNOWN and "full" not in one.said.headline


def test_pytorch_had_enough_but_in_pieces() -> None:
    one = failed(torch_says(allocated="60.00 GiB", cached="16.00 GiB"))
    assert (one.whole_cause.key, one.whole_cause.bytes) == (Key.FRAGMENTATION, 16 * GIB)
    assert actions(one)[0] is Action.EXPAND_SEGMENTS


def test_pytorch_reached_the_limit_that_was_set_for_it() -> None:
    one = failed(
        torch_says(allocated="18.00 GiB", free="58.00 GiB", process="19.00 GiB", allowed="20.00 GiB allowed; ")
    )
    assert one.whole_cause.key is Key.LIMIT_TOO_SMALL
    assert "Its limit is 20.0 GiB" in one.said.headline
    assert actions(one)[0] is Action.MORE_FOR_TORCH


def test_other_processes_or_other_libraries_hold_what_pytorch_lacked() -> None:
    others = failed(torch_says(process="40.00 GiB", allocated="38.00 GiB"))
    assert (others.whole_cause.key, others.whole_cause.bytes) == (Key.OTHERS, 38 * GIB + 512 * MIB)
    worker = (
        s.process(3.0, 200, run=1, command="python -c spawn"),
        s.device_reading(38.0, {100: 40 * GIB, 200: 38 * GIB}),
    )
    own = found(begin(), worker, raised(torch_says(process="40.00 GiB", allocated="38.00 GiB")), FAILED)
    assert own[FrameworkFailed].whole_cause.key is not Key.OTHERS, "the run's own"
    beside = failed(torch_says(process="78.00 GiB", allocated="2.00 GiB"))
    assert (beside.whole_cause.key, beside.whole_cause.bytes) == (Key.OTHER_FRAMEWORK, 75 * GIB + 512 * MIB)


def test_where_the_message_has_no_figures_no_cause_is_guessed() -> None:
    cupy = failed("Out of memory allocating 1,073,741,824 bytes (allocated so far: 2,147,483,648 bytes).")
    assert cupy.whole_cause.key is Key.UNKNOWN
    assert "CuPy at train.py:12 asked for 1.0 GiB" in cupy.said.headline
    assert "allocated so far: 2,147,483,648 bytes" in cupy.said.figures


def test_it_is_the_verdict_of_the_run() -> None:
    state = s.fold([*begin(), raised(torch_says()), FAILED])
    cause, finding = judged(state, findings(state), going=False)
    assert isinstance(finding, FrameworkFailed)
    assert (cause.key, cause.text) == (Key.LIMIT_TOO_SMALL, finding.said.headline)


def test_without_the_hook_the_output_tells() -> None:
    traceback = f"Traceback (most recent call last):\r\ntorch.OutOfMemoryError: {torch_says()}\r\n"
    told: Found = found(begin(), wrote(traceback), FAILED)
    assert told[FrameworkFailed].said.headline.startswith("Out of memory: PyTorch asked for 4.0 GiB.")


def test_an_error_that_the_script_survived_or_another_one_is_no_verdict() -> None:
    printed = wrote(f"skipped a batch: {torch_says()}\r\n")
    assert FrameworkFailed not in found(begin(), printed, events.RunEnd(t=40.0, run=1, exit_code=0, signal=None))
    after = found(begin(), printed, raised("no such file", "ValueError"), FAILED)
    assert FrameworkFailed not in after
    assert after[Judged].cause.key is Key.NOT_MEMORY


# What frameworks take of a card. The card of these streams has 140 GiB.


def jax(
    t: float, held: int, in_use: int, limit: int = 105 * GIB, settings: dict[str, str] | None = None
) -> events.Framework:
    return framework(t, FrameworkName.JAX, held, in_use, limit, settings)


def framework(
    t: float,
    name: FrameworkName,
    held: int,
    in_use: int,
    limit: int | None = None,
    settings: dict[str, str] | None = None,
) -> events.Framework:
    return s.framework(t, 100, name, in_use, held, peak=in_use, limit=limit, settings=settings)


TENSORFLOW_TOOK_ALL = [
    *begin(),
    initialised(9, "x = tf.ones(3)", t=1.9),
    effective(False),
    reading(3.0, 64 * MIB, 64 * MIB, 134 * GIB),
]


def test_tensorflow_took_the_card_before_jax_began() -> None:
    one = found(TENSORFLOW_TOOK_ALL, jax(5.0, 2 * MIB, 0))[CardShared]
    assert one.said.headline == (
        "GPU 0: TensorFlow took 134.0 GiB of the card's 140.0 GiB at train.py:9 (x = tf.ones(3)) before JAX began, "
        "which itself preallocates 75 % of the card."
    )
    assert actions(one) == [Action.HIDE_FROM_TENSORFLOW, Action.GROWTH_ON, Action.JAX_GROWTH_ON]
    assert 'tf.config.set_visible_devices([], "GPU")' in " ".join(one.said.code)
    assert one.severity is Severity.WARNING
    model = events.Census(t=4.0, pid=100, kinds={"GPU:0": {"variables": 4 * MIB}}, largest=[])
    computes = found(TENSORFLOW_TOOK_ALL, model, jax(5.0, 2 * MIB, 0))[CardShared]
    assert actions(computes) == [Action.GROWTH_ON, Action.JAX_GROWTH_ON], "TensorFlow computes there, too"
    assert "set_memory_growth" in " ".join(computes.said.code)


def test_jax_took_three_quarters_before_tensorflow_and_pytorch_began() -> None:
    first = jax(1.2, 105 * GIB, GIB)
    beside = found(begin(), first, effective(True), reading(3.0, 64 * MIB, 64 * MIB, 1026 * MIB))[CardShared]
    assert (beside.first.title, beside.other.title) == ("JAX", "TensorFlow")
    assert actions(beside) == [Action.JAX_GROWTH_ON]
    torch = found(begin(), first, framework(9.0, FrameworkName.PYTORCH, GIB, GIB))[CardShared]
    assert "JAX took 105.0 GiB of the card's 140.0 GiB before PyTorch began." in torch.said.headline


@pytest.mark.parametrize(
    "settings", [{"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}]
)
def test_frameworks_that_take_what_they_need_share_a_card_without_a_word(settings: dict[str, str]) -> None:
    growing = jax(5.0, 2 * GIB, GIB, settings=settings)
    after = found(begin(), effective(True), reading(3.0, 64 * MIB, 64 * MIB, 1026 * MIB), growing)
    assert CardShared not in after
    assert JaxPreallocated not in after


def test_what_other_frameworks_hold_beside_tensorflow_has_their_names() -> None:
    """As measured on an H100: the script of tests/field, ``three_frameworks.py``."""
    growing = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    beside = [
        jax(5.0, 1026 * MIB, GIB, settings=growing),
        framework(6.0, FrameworkName.PYTORCH, 512 * MIB, 512 * MIB),
        framework(7.0, FrameworkName.CUPY, 256 * MIB, 256 * MIB),
    ]
    mine = [*begin(), effective(True), reading(3.0, 768 * MIB, 768 * MIB, 1026 * MIB)]
    one = found(mine, beside)[OtherPools]
    assert one.said.headline.endswith("JAX holds 1.0 GiB, PyTorch 512.0 MiB, CuPy 256.0 MiB.")
    assert one.severity is Severity.INFO
    state = s.fold([*mine, *beside, events.RunEnd(t=40.0, run=1, exit_code=0, signal=None)])
    cause, _ = judged(state, findings(state), going=False)
    assert (cause.key, cause.holder) == (Key.OTHER_FRAMEWORK, "JAX, PyTorch, CuPy")
    assert cause.text.startswith("No memory problem found.")
    assert OtherPools not in found(mine, beside[2:])


def test_growth_that_could_not_reach_jax_before_is_not_offered_as_if_it_were_off() -> None:
    chosen = found(begin(settings=Settings(growth="on")), jax(5.0, 105 * GIB, 2 * GIB))
    assert actions(chosen[JaxPreallocated]) == [Action.JAX_AGAIN]


def test_jax_alone_preallocates_what_it_does_not_use() -> None:
    one = found(begin(), jax(5.0, 105 * GIB, 2 * GIB))[JaxPreallocated]
    assert one.severity is Severity.WARNING
    assert actions(one) == [Action.JAX_GROWTH_ON]
    small = jax(5.0, 14 * GIB, 2 * GIB, settings={"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.1"})
    assert JaxPreallocated not in found(begin(), small)


@pytest.mark.parametrize("share", ["inf", "nan", "most"])
def test_a_share_that_is_no_share_is_not_told(share: str) -> None:
    after = jax(5.0, 2 * MIB, 0, settings={"XLA_PYTHON_CLIENT_MEM_FRACTION": share})
    assert found(TENSORFLOW_TOOK_ALL, after)[CardShared].said.headline.endswith("before JAX began.")


NO_ROOM = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8.00GiB."


def jax_failed(*before: events.Event) -> FrameworkFailed:
    return found(begin(), before, raised(NO_ROOM, "JaxRuntimeError"), FAILED)[FrameworkFailed]


def test_jax_failed_at_its_limit_or_since_tensorflow_had_the_card() -> None:
    limited = jax_failed(jax(38.0, 105 * GIB, 100 * GIB))
    assert limited.whole_cause.key is Key.LIMIT_TOO_SMALL
    assert "Its limit is 105.0 GiB, and 100.0 GiB were in use." in limited.said.headline
    assert actions(limited) == [Action.MORE_FOR_JAX, Action.REDUCE_BATCH]
    after = found(TENSORFLOW_TOOK_ALL, jax(5.0, 2 * MIB, 0), raised(NO_ROOM, "JaxRuntimeError"), FAILED)
    beside = after[FrameworkFailed]
    assert (beside.whole_cause.key, beside.whole_cause.holder, beside.whole_cause.bytes) == (
        Key.OTHER_FRAMEWORK,
        "TensorFlow",
        134 * GIB,
    )
    assert "train.py:9 (x = tf.ones(3))" in beside.said.text
    assert 'tf.config.set_visible_devices([], "GPU")' in " ".join(beside.said.code)
    assert jax_failed(jax(38.0, 105 * GIB, GIB)).whole_cause.key is Key.UNKNOWN


def test_a_run_without_tensorflow_has_a_verdict_and_what_is_tensorflows_is_said_to_be() -> None:
    growing = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    state = s.fold(
        [
            *begin(),
            hook(JAX="0.10.2"),
            jax(5.0, 3 * GIB, 2 * GIB, settings=growing),
            events.RunEnd(t=40.0, run=1, exit_code=0, signal=None),
        ]
    )
    cause, _ = judged(state, findings(state), going=False)
    assert cause.key is Key.NONE
    assert "JAX had at most 2.0 GiB in use" in cause.text
    assert "TensorFlow's pools only" in no_map(state, None)[0]
    assert "TensorFlow's pools only" in no_window(state, None)[0]


def hook(t: float = 1.1, **versions: str) -> events.Hook:
    frameworks = [UsedFramework(FrameworkName[name], version) for name, version in versions.items()]
    return msgspec.structs.replace(s.hook(t, 100), tensorflow=None, tensorflow_path=None, frameworks=frameworks)


def test_on_the_cpu_there_is_nothing_to_measure_and_none_of_the_five_questions() -> None:
    stream = [
        s.session(),
        s.run(),
        s.process(0.6, 100),
        hook(JAX="0.10.2"),
        events.RunEnd(t=40.0, run=1, exit_code=0, signal=None),
    ]
    seen = review(stream)
    (told,) = [line for line in page(seen, "x.jsonl") if line.startswith("Nothing was measured")]
    assert told == "Nothing was measured: on the CPU, there is no pool of JAX."
    assert answers(seen) == []
    waits = waiting(seen.state)
    assert waits is not None
    assert stage(waits) == "The script used JAX 0.10.2, and not TensorFlow."


TORCH = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 80.00 GiB "
    "of which 1.50 GiB is free. {who}Of the allocated memory 60.00 GiB is allocated by PyTorch, {pools}and 512.00 MiB "
    "is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)


def parsed(text: str) -> FrameworkExhausted:
    found = parse_framework_exhausted(text)
    assert found is not None
    assert found.message in text
    return found


def test_pytorch_names_card_process_and_pool() -> None:
    others = "Process 7 has 16.00 GiB memory in use. "
    who = f"{others}Including non-PyTorch memory, this process has 62.00 GiB memory in use. "
    found = parsed(TORCH.format(who=who, pools=""))
    assert found.message.startswith("CUDA out of memory") and found.message.endswith("PyTorch but unallocated.")
    assert replace(found, message="") == FrameworkExhausted(
        FrameworkName.PYTORCH,
        "",
        4 * GIB,
        card=80 * GIB,
        free=3 * GIB // 2,
        allocated=60 * GIB,
        cached=512 * MIB,
        process=62 * GIB,
    )
    assert parsed(TORCH.format(who=who, pools="").replace("1.50 GiB", "0 bytes")).free == 0


def test_pytorch_names_its_limit_and_may_not_name_the_process() -> None:
    pools = "with 1.00 GiB allocated in private pools (e.g., CUDA Graphs), "
    found = parsed(TORCH.format(who="20.00 GiB allowed; ", pools=pools))
    assert (found.allowed, found.process, found.cached) == (20 * GIB, None, 512 * MIB)


XLA = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: "


@pytest.mark.parametrize(
    "text",
    [
        XLA + "Out of memory while trying to allocate 1073741824 bytes.",
        XLA + "Out of memory allocating 1073741824 bytes.\nBufferAssignment OOM Debugging.",
        XLA + "Failed to allocate request for 1.00GiB (1073741824B) on device ordinal 0",
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1.00GiB.",
    ],
)
def test_jax_names_only_the_request(text: str) -> None:
    assert replace(parsed(text), message="") == FrameworkExhausted(FrameworkName.JAX, "", GIB)


def test_cupy() -> None:
    text = "OutOfMemoryError: Out of memory allocating 1,073,741,824 bytes (allocated so far: 1,024 bytes)."
    assert replace(parsed(text), message="") == FrameworkExhausted(FrameworkName.CUPY, "", GIB, allocated=1024)


def test_the_last_failure_counts_and_tensorflows_own_is_none() -> None:
    later = "JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2.00GiB."
    both = TORCH.format(who="", pools="") + "\n" + later
    assert replace(parsed(both), message="") == FrameworkExhausted(FrameworkName.JAX, "", 2 * GIB)
    assert parse_framework_exhausted("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 64 bytes.") is None
