"""TensorFlow's messages about memory are parsed, in TensorFlow's own wording."""

import json
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tfmemtop.charset import json_ascii
from tfmemtop.events import OutOfMemory, decode_event, encode
from tfmemtop.safe import safe
from tfmemtop.tensorflow_text import RanOut, lines_of_exhaustion
from tfmemtop.tensorflow_text import parse_exhausted as parse

DEVICE = "/job:localhost/replica:0/task:0/device:"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "{{function_node __wrapped__Fill_device_" + DEVICE + "CPU:0}} OOM when allocating tensor with shape[200,3]"
            " and type float on " + DEVICE + "CPU:0 by allocator bfc_cpu_allocator_for_gpu [Op:Fill] name: ",
            ("CPU:0", 2_400, "Fill", [200, 3], "float"),
        ),
        (
            "{{function_node __wrapped__AddV2}} failed to allocate memory [Op:AddV2] name: ",
            (None, None, "AddV2", None, None),
        ),
        (
            "Graph execution error:\n\nOOM when allocating tensor with shape[] and type bfloat16 on " + DEVICE + "GPU:1"
            " by allocator GPU_1_bfc\n\t [[{{node model/dense/MatMul}}]]\nHint: …",
            ("GPU:1", 2, "model/dense/MatMul", [], "bfloat16"),
        ),
        (
            "OOM when allocating tensor of shape [20,3] and type float\n\t [[{{node MatVec/MatMul/a}}]] [Op:__step_9]",
            (None, 240, "__step_9", [20, 3], "float"),
        ),
        ("OOM when allocating tensor with shape[4] and type variant", (None, None, None, [4], "variant")),
        (
            "Out of memory while trying to allocate 4294967296 bytes. [Op:__inference]",
            (None, 1 << 32, "__inference", None, None),
        ),
        (
            "{{function_node __inference_multi_step_on_iterator_1674}} Out of memory while trying to allocate 65.67MiB."
            "\n\t [[{{node StatefulPartitionedCall}}]]",
            (None, int(65.67 * 2**20), "StatefulPartitionedCall", None, None),
        ),
        ("Out of memory allocating 64 bytes.", (None, 64, None, None, None)),
    ],
)  # fmt: skip
def test_what_a_message_says(message: str, expected: tuple[object, ...]) -> None:
    assert parse(message) == expected


def test_figures_without_end_are_none() -> None:
    assert parse("OOM when allocating tensor with shape[" + "9" * 5000 + ",2] and type float").requested is None
    assert (
        parse("OOM when allocating tensor with shape[" + ",".join(["4096"] * 6) + "] and type float").requested is None
    )
    assert parse("failed to allocate " + "9" * 5000 + " bytes").requested is None
    assert parse("failed to allocate " + "9" * 15 + "TiB").requested is None
    assert parse("failed to allocate 1.2.3MiB").requested is None


@pytest.mark.parametrize(
    "message",
    [
        f"OOM when allocating tensor with shape[4] and type float on {DEVICE}{'G' * 2000}:0 by allocator bfc",
        f"OOM when allocating tensor with shape[4] and type {'t' * 2000} on {DEVICE}GPU:{'0' * 2000} by allocator bfc",
        f"failed to allocate 4 bytes on device ordinal {'1' * 2000}",
        f"OOM when allocating tensor with shape[{','.join(['1'] * 2000)}] and type float",
    ],
    ids=["device", "dtype", "ordinal", "shape"],
)
def test_what_is_read_from_a_message_can_be_sent(message: str) -> None:
    event = OutOfMemory(t=1.0, pid=1, message=message, **parse(message)._asdict())
    assert decode_event(encode(event)) == event


@pytest.mark.parametrize(("end", "operation"), [("AddV2\r\nIf", "AddV2"), ("\r\nIf", None), ("a/b:0\n", "a/b")])
def test_a_line_about_a_full_pool_is_found_once_wherever_the_output_is_split(end: str, operation: str | None) -> None:
    text = "x] Allocator (bfc) ran out of memory trying to allocate 6.0MiB (rounded to 6291456)requested by op " + end
    expected = [RanOut("bfc", 6291456, operation)]
    for place in range(len(text)):
        before, after = text[:place], text[place:]
        assert [*lines_of_exhaustion("", before), *lines_of_exhaustion(before, after)] == expected


# Foreign text: what is shown of it cannot control the terminal or deceive a reader. All else is left unchanged.


@given(st.text())
@example("a\x1b[31m\r\n\x00\u202e\u200b\x9b2J\ud800\u3164")
@example("e" + "\u0301\ufe0f" * 20)
def test_nothing_steers_and_a_second_pass_changes_nothing(text: str) -> None:
    shown = safe(text)
    assert not {unicodedata.category(character) for character in shown} & {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}
    assert safe(shown) == shown
    assert safe(text * 300)[: len(shown)] == shown, "a long text is treated as a short one is"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\r\nlines\tand\u2028more", "two  lines and more"),
        ("\x1b]52;c;eA==\x07", "?]52;c;eA==?"),
        ("\x9d0;title\x9c\x7f", "?0;title??"),
        ("user\u202egpj.exe", "user?gpj.exe"),
        ("a\u200bb\u2060c\u00add", "a?b?c?d"),
        ("half \ud83d", "half ?"),
        ("☁\ufe0f", "☁"),
        ("z" + "\u0301" * 50, "z" + "\u0301" * 8),
    ],
)
def test_what_becomes_of_it(text: str, shown: str) -> None:
    assert safe(text) == shown


@given(st.text(st.characters(codec="utf-8")))
def test_json_means_the_same(text: str) -> None:
    told = json_ascii(json.dumps([text], ensure_ascii=False))
    assert json.loads(told) == [text]
    assert all(character.isprintable() for character in told)
