"""The settings that a user chose become the variables of TensorFlow's environment."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfmemtop.findings.starting import unusable
from tfmemtop.settings import NoSuchGpu, Settings, carry, launch_environment
from tfmemtop.units import MIB

GPUS = ["GPU-aa", "GPU-bb"]


def test_nothing_chosen_leaves_the_script_alone() -> None:
    assert set(carry(Settings(), GPUS)) == {"TFMEMTOP_SETTINGS"}
    assert set(carry(Settings(), [])) == {"TFMEMTOP_SETTINGS"}


@pytest.mark.parametrize(("growth", "word"), [("on", "true"), ("off", "false")])
def test_growth_in_the_only_words_tensorflow_takes(growth: str, word: str) -> None:
    assert carry(Settings(growth=growth), GPUS)["TF_FORCE_GPU_ALLOW_GROWTH"] == word  # type: ignore[arg-type]


def test_gpus_go_by_uuid_in_the_order_asked_for() -> None:
    assert carry(Settings(gpus=(1, 0)), GPUS)["CUDA_VISIBLE_DEVICES"] == "GPU-bb,GPU-aa"
    assert carry(Settings(gpus=()), GPUS)["CUDA_VISIBLE_DEVICES"] == "-1"


def test_a_limit_acts_inside_the_process_on_a_gpu_and_on_the_pool_without_one() -> None:
    settings = Settings(memory_limit=512 * MIB)
    on_gpu, without = carry(settings, GPUS), carry(settings, [])
    assert json.loads(on_gpu["TFMEMTOP_SETTINGS"])["memory_limit"] == 512 * MIB
    assert "TF_CPU_BFC_MEM_LIMIT_IN_MB" not in on_gpu
    assert json.loads(without["TFMEMTOP_SETTINGS"])["memory_limit"] is None
    assert without["TF_CPU_ALLOCATOR_USE_BFC"] == "true"
    assert without["TF_CPU_BFC_MEM_LIMIT_IN_MB"] == "512"


def test_a_pool_of_its_own_beats_the_limit_on_the_cpu() -> None:
    settings = Settings(memory_limit=512 * MIB, cpu_pool=256 * MIB)
    assert carry(settings, [])["TF_CPU_BFC_MEM_LIMIT_IN_MB"] == "256"


@pytest.mark.parametrize(
    ("settings", "uuids", "message"),
    [
        (Settings(gpus=(2,)), GPUS, "there is no GPU 2: this machine has 2"),
        (Settings(gpus=(0,)), [], "there is no GPU 0: this machine has none"),
        (Settings(allocator="cuda_malloc_async"), [], "cuda_malloc_async needs a GPU"),
    ],
)
def test_what_the_machine_lacks_is_refused(settings: Settings, uuids: list[str], message: str) -> None:
    with pytest.raises(NoSuchGpu) as caught:
        carry(settings, uuids)
    assert unusable(caught.value).startswith(message)


def test_the_users_environment_stays_and_own_variables_win() -> None:
    base = {"HOME": "/home/me", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
    settings = Settings(growth="on", environment={"TF_FORCE_GPU_ALLOW_GROWTH": "false", "X": "1"})
    made = launch_environment(base, settings, GPUS)
    assert (made["HOME"], made["X"], made["TF_FORCE_GPU_ALLOW_GROWTH"]) == ("/home/me", "1", "false")
    assert base == {"HOME": "/home/me", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}, "each launch starts from it afresh"


@given(st.integers(1, 1 << 50))
def test_a_pool_is_never_none_nor_more_than_asked_for(size: int) -> None:
    limit = int(carry(Settings(cpu_pool=size), [])["TF_CPU_BFC_MEM_LIMIT_IN_MB"])
    assert limit >= 1
    assert limit == 1 or limit * MIB <= size
