"""The settings that a user chose become the variables of TensorFlow's environment."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tfmemtop.engine.process.launch import FLAGS, Refused, with_report
from tfmemtop.events import XlaMissing
from tfmemtop.frameworks import FrameworkName, UsedFramework, share
from tfmemtop.limits import needs_gpus
from tfmemtop.settings import Settings, carry, launch_environment
from tfmemtop.units import MIB

GPUS = ["GPU-aa", "GPU-bb"]


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


GIB = 1 << 30


def test_the_driver_is_asked_only_for_what_needs_gpus() -> None:
    assert not needs_gpus(Settings(growth="on", cpu_pool=GIB, environment={"A": "b"}))
    assert all(map(needs_gpus, (Settings(gpus=()), Settings(memory_limit=GIB), Settings(allocator="bfc"))))


# XLA gets our flags, and the user's own flags do not change.


PLACE = Path("/run/user/1/tfmemtop/abcde/xla")
OURS = f"--xla_dump_to={PLACE}/0 --xla_dump_hlo_as_text --xla_dump_max_hlo_modules=1000"


@pytest.mark.parametrize("users", ["--xla_gpu_autotune_level=2", " --a='b c'\t--d=e ", "--a='never closed"])
def test_the_users_flags_follow_ours_letter_by_letter(users: str) -> None:
    found = with_report({FLAGS: users}, PLACE)
    assert isinstance(found, dict) and found[FLAGS] == f"{OURS} {users}"


@pytest.mark.parametrize(
    ("users", "detail"),
    [
        ("--xla_a=1 --xla_dump_to=/mine --xla_b=2", "--xla_dump_to=/mine"),
        ("--xla_dump_hlo_pass_re=.*", "--xla_dump_hlo_pass_re=.*"),
        ("-xla_dump_to=/mine\n--xla_dump_hlo_as_dot", "-xla_dump_to=/mine --xla_dump_hlo_as_dot"),
    ],
)
def test_where_the_user_has_xla_write_already_nothing_changes(users: str, detail: str) -> None:
    assert with_report({FLAGS: users}, PLACE) == Refused(XlaMissing.USERS_FOLDER, detail)


def test_flags_in_a_file_stay_there() -> None:
    assert with_report({FLAGS: "/home/me/flags"}, PLACE) == Refused(XlaMissing.USERS_FILE, "/home/me/flags")


@pytest.mark.parametrize("path", ["/my files/xla", "/it's/xla"])
def test_a_path_that_flags_would_take_apart_is_refused(path: str) -> None:
    assert with_report({}, Path(path)) == Refused(XlaMissing.NO_FOLDER, path)


# JAX and PyTorch, where the run before used them.


JAX = UsedFramework(FrameworkName.JAX)
TORCH, OLD_TORCH = (UsedFramework(FrameworkName.PYTORCH, version) for version in ("2.13.0+cu130", "2.9.1"))
CARD = 80 << 30


def to(settings: Settings, *frameworks: UsedFramework, **base: str) -> dict[str, str]:
    """Return the variables of JAX and PyTorch in the environment of a run that used *frameworks* before."""
    made = launch_environment(base, replace(settings, frameworks=frameworks), GPUS, CARD)
    return {name: value for name, value in made.items() if name.startswith(("XLA_", "PYTORCH_"))}


def test_jax_takes_growth_limit_and_allocator() -> None:
    assert to(Settings(growth="on"), JAX) == {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    assert to(Settings(growth="off"), JAX) == {"XLA_PYTHON_CLIENT_PREALLOCATE": "true"}
    assert to(Settings(memory_limit=20 << 30), JAX) == {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.250000"}
    assert to(Settings(allocator="cuda_malloc_async"), JAX) == {"XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async"}
    assert to(Settings(allocator="bfc"), JAX) == {"XLA_PYTHON_CLIENT_ALLOCATOR": "bfc"}
    assert to(Settings(), JAX, TORCH) == {}


def test_a_user_who_knows_the_new_name_of_jax_fraction_gets_no_second_one() -> None:
    """JAX refuses to use the GPU if both are set."""
    users = {"XLA_CLIENT_MEM_FRACTION": "0.9"}
    assert to(Settings(memory_limit=8 << 30), JAX, **users) == {"XLA_CLIENT_MEM_FRACTION": "0.100000"}


def test_pytorch_takes_limit_and_allocator_beside_the_users_own_options() -> None:
    users = {"PYTORCH_CUDA_ALLOC_CONF": "roundup_power2_divisions:[256:1,512:2], backend:native"}
    chosen = Settings(growth="on", memory_limit=20 << 30, allocator="cuda_malloc_async")
    assert to(chosen, TORCH, **users) == {
        "PYTORCH_CUDA_ALLOC_CONF": "roundup_power2_divisions:[256:1,512:2],per_process_memory_fraction:0.250000,"
        "backend:cudaMallocAsync"
    }
    assert to(Settings(growth="off"), TORCH) == {}, "its pool always grows"


def test_a_limit_for_an_older_pytorch_is_not_passed_on_since_it_would_end_the_process() -> None:
    assert to(Settings(memory_limit=20 << 30), OLD_TORCH) == {}
    assert OLD_TORCH.takes == {"allocator"}
    assert "limit" not in UsedFramework(FrameworkName.PYTORCH).takes, "the version is not known"


@given(st.integers(1, 1 << 50), st.integers(1, 1 << 50))
def test_a_share_of_the_card_is_never_more_than_the_limit(limit: int, card: int) -> None:
    assert 0 <= float(share(limit, card)) <= min(1.0, limit / card)
