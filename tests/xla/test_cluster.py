"""The figures that are read from XLA's reports add up. A damaged report is refused, or its figures still add up."""

import gzip
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfmemtop.engine.sources.xla_assignment import Unread, read_assignment
from tfmemtop.engine.sources.xla_cluster import Origins, function_name, make_cluster
from tfmemtop.events import XlaCluster, decode_event, encode

FOLDER = Path(__file__).parent
KERAS, LOOP = "keras", "loop"
MODULES = {KERAS: "a_inference_one_step_on_data_1421__.9", LOOP: "a_inference_refine_147__XlaMustCompile_true_.12"}


def assignment(name: str) -> list[str]:
    """Return the lines of the buffer assignment of the report *name*."""
    return _lines(f"{name}.buffer-assignment")


def module(name: str) -> list[str]:
    """Return the lines of the text of its module."""
    return _lines(f"{name}.module")


def cluster(name: str, lines: list[str] | None = None, text: list[str] | None = None) -> XlaCluster:
    """Return the cluster *name*. *lines* and *text* replace its buffer assignment and the text of its module."""
    lines = assignment(name) if lines is None else lines
    text = module(name) if text is None else text
    found = make_cluster(lines, text, pid=7, name=MODULES[name], module=72, t=1.0)
    assert found is not None
    return found


def _lines(file: str) -> list[str]:
    return gzip.decompress((FOLDER / f"{file}.txt.gz").read_bytes()).decode().splitlines()


@pytest.mark.parametrize(("name", "temporary"), [(KERAS, 61_578_692), (LOOP, 135_256)])
def test_the_values_at_the_peak_fill_the_buffer_side_by_side(name: str, temporary: int) -> None:
    found = cluster(name)
    assert found.temporary == temporary  # the figure in XLA's own text
    assert 0.99 * temporary < found.peak == sum(value.size for value in found.values) <= temporary
    assert all(value.first <= found.peak_at <= value.last for value in found.values)
    for one, following in pairwise(found.values):
        assert one.offset + one.size <= following.offset


@pytest.mark.parametrize("name", [KERAS, LOOP])
def test_all_that_is_needed_is_what_xla_itself_counts(name: str) -> None:
    read, lines = read_assignment(assignment(name)), assignment(name)
    sizes = {value.key: value.size for one in read.allocations for value in one.values}
    start = next(number for number, line in enumerate(lines) if line.startswith("  Live ranges at"))
    moment = int(re.findall(r"\d+", lines[start])[0])
    told = re.findall(r"    (\S+): (\d+) bytes \(cumulative: ", "\n".join(lines[start:]))
    ours = {key for key, (first, last) in read.ranges.items() if first <= moment <= last and key in sizes}
    assert {key: sizes[key] for key in ours} == {key: int(size) for key, size in told}


def test_rows_have_the_names_that_keras_gave() -> None:
    by_operation: dict[str, int] = {}
    for value in cluster(KERAS).values:
        by_operation[value.operation] = by_operation.get(value.operation, 0) + value.size
    # 32 images: a gradient of the dense kernel, 60·60·32 × 32 floats, and 62·62·16 of the first convolution's output.
    assert by_operation["gradient_tape/sequential_1/d1_1/MatMul/MatMul_1"] == 60 * 60 * 32 * 32 * 4
    assert by_operation["sequential_1/c1_1/convolution"] == 32 * 62 * 62 * 16 * 4
    assert "" not in by_operation and "XLA_Args" not in by_operation


def test_a_loops_values_stand_once() -> None:
    at_peak = cluster(LOOP).values
    assert {value.operation for value in at_peak} == {"refine/sort/Neg", "refine/while", "refine/TopKV2"}
    assert sum(value.size for value in at_peak if value.operation == "refine/while") == 64 * 256 * 4


def test_fusions_and_copies_follow_what_they_are_of() -> None:
    origins = Origins(
        [
            "%inner (p: f32[8]) -> f32[8] {",
            "  %p = f32[8]{0} parameter(0)",
            '  ROOT %m = f32[8]{0} multiply(%p, %p), metadata={op_type="Mul" op_name="model/scale/Mul"}',
            "}",
            "ENTRY %main (a: f32[8]) -> f32[8] {",
            '  %a = f32[8]{0} parameter(0), metadata={op_name="XLA_Args"}',
            "  %copy.1 = f32[8]{0} copy(%a)",
            '  %dot.1 = f32[8]{0} dot(%copy.1, %a), metadata={op_name="model/dense/MatMul" '
            'source_file="/home/me/train.py" source_line=12}',
            "  %copy.2 = f32[8]{0} copy(f32[8]{0} %dot.1)",
            "  %fusion.3 = f32[8]{0} fusion(copy.2), kind=kLoop, calls=%inner",
            "  lonely = f32[] constant(1)",
            "}",
        ]
    )
    assert origins.of("fusion.3").operation == "model/scale/Mul"
    assert origins.of("copy.2") == origins.of("dot.1") == ("model/dense/MatMul", "/home/me/train.py", 12)
    assert origins.of("copy.1").operation == "model/dense/MatMul"  # the copy of a parameter gets the name of its user
    assert origins.of("lonely") == origins.of("nobody") == ("", "", 0)


def test_without_the_modules_text_values_have_xlas_names() -> None:
    found = cluster(KERAS, text=[])
    assert found.peak == cluster(KERAS).peak and {value.operation for value in found.values} == {""}


def test_the_form_of_tensorflow_2_22_says_the_same() -> None:
    """2.22.0rc0 writes the page of each allocation, and three files one after the other."""
    lines = [re.sub(r"^(allocation \d+: size \d+)", r"\1, page 0", line) for line in assignment(LOOP)]
    assert lines != assignment(LOOP) and cluster(LOOP, lines) == cluster(LOOP)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("a_inference_one_step_on_data_1421__.9", "one_step_on_data"),
        ("a_inference_train_41300__XlaMustCompile_true_config_proto_1_executor_type_2_.282", "train"),
        ("cluster_0__XlaCompiledKernel_true__.7", "0__XlaCompiledKernel_true"),
    ],
)
def test_the_functions_name(module: str, name: str) -> None:
    assert function_name(module) == name


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("size 61578692, preallocated-temp", "size 61578691, preallocated-temp", "Total bytes used"),
        ("Total bytes used: 107454236", "Total: 107454236", "Total bytes used"),
        ("allocation 0: size 14745600", "allocation 0: of 14745600", "allocation"),
        ("(size=14745600,offset=29491200): f32[115200", "(size=14745600,offset=61578000): f32[115200", "value"),
        ("(size=14745600,offset=29491200): f32[115200", "(size=14745600,offset=29491000): f32[115200", "offset"),
        ("  BufferLiveRange:", "  LiveRanges:", "BufferLiveRange"),
        ("    MatMul_1.4{}:", "    MatMul_1.5{}:", "BufferLiveRange"),
    ],
)
def test_what_does_not_add_up_is_not_read(old: str, new: str, part: str) -> None:
    text = "\n".join(assignment(KERAS))
    assert old in text
    with pytest.raises(Unread, match=re.escape(part)):
        cluster(KERAS, text.replace(old, new).splitlines())


def _sound(found: XlaCluster | None) -> None:
    """Check that the figures add up, and that the cluster survives encoding as an event."""
    if found is not None:
        assert sum(value.size for value in found.values) == found.peak <= found.temporary
        assert decode_event(encode(found)) == found


LINES, TEXT = assignment(LOOP), module(LOOP)
DIGITS = st.sampled_from(
    ["", "0", "9", "99999999999999999999999", "-1", "{", "}", "<", "(", ": size ", "\x00", "é", "@0>"]
)


@given(st.data())
def test_damaged_text_is_refused_or_adds_up(data: st.DataObject) -> None:
    lines, text = list(LINES), list(TEXT)
    for _ in range(data.draw(st.integers(1, 4))):
        page = lines if data.draw(st.booleans()) else text
        place = data.draw(st.integers(0, len(page) - 1))
        line = page[place]
        match data.draw(st.sampled_from(["cut", "drop", "double", "swap", "change"])):
            case "cut":
                del page[place + 1 :]
            case "drop":
                page[place] = ""
            case "double":
                page.insert(place, line)
            case "swap":
                other = data.draw(st.integers(0, len(page) - 1))
                page[place], page[other] = page[other], line
            case "change":
                at = data.draw(st.integers(0, len(line)))
                page[place] = line[:at] + data.draw(DIGITS) + line[at + data.draw(st.integers(0, 3)) :]
    try:
        _sound(make_cluster(lines, text, pid=7, name="f", module=1, t=0.0))
    except Unread as error:
        assert str(error)
