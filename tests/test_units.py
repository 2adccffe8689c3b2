"""Sizes and durations, as a user types them and as they are shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfmemtop.units import format_bytes, format_duration, format_short, parse_size


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "—"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (1024**2 - 1, "1.0 MiB"),
        (150754820096, "140.4 GiB"),
        (-2048, "-2.0 KiB"),
    ],
)
def test_bytes_as_shown(count: int | None, text: str) -> None:
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4G", 4 << 30),
        ("3500M", 3500 << 20),
        ("1.5 GiB", 3 << 29),
        ("4096", 4096),
        (" 2 tb ", 2 << 40),
        ("50%", 500),
        ("12.5 %", 125),
    ],
)
def test_sizes_as_typed(text: str, size: int) -> None:
    assert parse_size(text, whole=1000) == size


@pytest.mark.parametrize(
    "text",
    [
        "",
        "4X",
        "-4G",
        "4 G B",
        "0",
        "101%",
        "1e9",
        "4G\n5",
        "0.001%",
        "9" * 400,
        "9" * 400 + "%",
    ],
)
def test_what_is_no_size_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_size(text, whole=1000)
    said = str(caught.value)
    assert repr(text) in said
    assert "\n" not in said


def test_a_share_of_what_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError) as caught:
        parse_size("50%")
    assert "not known here" in str(caught.value)


@given(st.integers(0, 1 << 59))
def test_the_short_form_fits_its_column_and_reads_back_nearly(count: int) -> None:
    short = format_short(count)
    assert len(short) <= 7
    if count:
        assert abs(parse_size(short) - count) <= max(1, count * 0.05 + 52)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "00:00:00"), (59.9, "00:00:59"), (3725, "01:02:05"), (86399, "23:59:59"), (93784, "1d 02:03")],
)
def test_durations(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
