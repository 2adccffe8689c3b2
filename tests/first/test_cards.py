"""The first picture reads cards as pynvml does. ``tests/gpu/test_first_cards.py`` compares figures of a real GPU."""

from ctypes import Structure, sizeof

import pynvml
import pytest

from tfmemtop.first import cards


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (cards._Memory, pynvml.c_nvmlMemory_v2_t),
        (cards._Rates, pynvml.c_nvmlUtilization_t),
        (cards._Process, pynvml.c_nvmlProcessInfo_v3_t),
    ],
)
def test_its_structures_are_nvidias(ours: type[Structure], theirs: type[Structure]) -> None:
    def places(structure: type[Structure]) -> list[tuple[int, int]]:
        fields = [getattr(structure, name) for name, *_ in structure._fields_]
        return [(field.offset, field.size) for field in fields]

    assert places(ours) == places(theirs)
    assert sizeof(ours) == sizeof(theirs)


def test_it_asks_for_the_version_of_the_memory_that_it_reads() -> None:
    assert sizeof(cards._Memory) | cards._MEMORY_2 == pynvml.nvmlMemory_v2
    assert cards._TOO_SMALL == pynvml.NVML_ERROR_INSUFFICIENT_SIZE
    assert cards._CELSIUS_OF_GPU == pynvml.NVML_TEMPERATURE_GPU
    assert pynvml.NVML_VALUE_NOT_AVAILABLE_ulonglong.value == cards._UNKNOWN
