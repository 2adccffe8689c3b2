"""What XLA asked for, where its buffer found no room: by its own report what the buffer would have held."""

from msgspec.structs import replace

from tests import windows as w
from tests.findings.test_exhausted import OURS, error, gpu, told
from tests.streams import GIB, MIB
from tfmemtop import events
from tfmemtop.findings.cause import Cause
from tfmemtop.findings.contents import named_part
from tfmemtop.findings.remedy import Action
from tfmemtop.state.attribution import Kind
from tfmemtop.state.holders import Part

ASKED = "Out of memory while trying to allocate 64.00MiB. [Op:__inference_multi_step_on_iterator_140]"


def cause(shape: str, *, buffer: int | None = 64 * MIB, message: str = ASKED) -> Cause:
    """Return why XLA found no room, where its report has two values of *shape* in a *buffer* of so many bytes."""
    values = [events.XlaValue(f"dot.{at}", "head/MatMul", shape, 0, 30 * MIB, 2, 7, "t.py", 9) for at in range(2)]
    cluster = events.XlaCluster(
        t=4.0, pid=100, name="one_step_on_data", temporary=buffer or 0, peak=60 * MIB, peak_at=5, values=values
    )
    failed = replace(error(operation="__inference_multi_step_on_iterator_140"), message=message)
    known = [cluster] if buffer is not None else []
    return told(gpu(2 * GIB, OURS), w.census(), w.step().done(), *known, failed).cause


def test_what_the_buffer_would_have_held_is_told_by_its_operation_and_shape() -> None:
    rows = cause("f32[30,262144]{1,0}")
    assert "hold 2× MatMul of `head` [30,262144] 60.0 MiB" in rows.evidence[0]
    assert any("hold 2× MatMul of `head`" in text for text in rows.mostly)
    assert Action.REDUCE_BATCH in rows.remedies and Action.XLA_REPORT not in rows.remedies
    kernels = cause("f32[1024,1024]{1,0}")
    assert Action.SMALLER_MODEL in kernels.remedies and Action.REDUCE_BATCH not in kernels.remedies


def test_of_another_buffer_nothing_is_told() -> None:
    assert "MatMul" not in " ".join(cause("f32[8]", buffer=65 * MIB).evidence)
    assert "MatMul" in " ".join(cause("f32[8]", buffer=64 * MIB + MIB // 4).evidence), "XLA's text is rounded"


def test_without_a_report_the_next_run_can_have_one() -> None:
    assert Action.XLA_REPORT in cause("", buffer=None).remedies
    assert Action.XLA_REPORT not in cause("", buffer=None, message="OOM when allocating").remedies


def test_memory_of_a_compiled_step_has_no_name_of_kerass_own() -> None:
    name = "multi_step_on_iterator"
    buffer = Part(Kind.XLA, "", name, None, "", "", bytes=9, requested=9, count=2)
    assert "".join(named_part(buffer)) == "2 buffers of the compiled step"
    assert "".join(named_part(replace(buffer, operation="f", count=1))) == "1 buffer of the compiled tf.function `f`"
    assert "2 results" in named_part(replace(buffer, kind=Kind.RESULTS))[0]
    weights = replace(buffer, kind=Kind.VARIABLES, layer="head", shape=(3, 4), count=1)
    assert "".join(named_part(weights)) == "variables of `head` [3,4]"
