"""Settings in words: what the user chose, what TensorFlow does, and how the next run differs."""

from msgspec import structs

from tests import streams as s
from tests.streams import GIB
from tfmemtop import events
from tfmemtop.reports.settings import changes, chosen, in_effect
from tfmemtop.settings import Settings
from tfmemtop.state import figures as facts


def said(stream: list[events.Event]) -> list[str]:
    (run,) = s.fold(stream).runs
    return in_effect(facts.effective_settings(run))


def begin(settings: Settings | None = None) -> list[events.Event]:
    return [s.session(), s.run(settings=settings), s.process(0.5, 100), s.hook(1.0, 100)]


def test_every_choice_has_its_words() -> None:
    settings = Settings(
        growth="on",
        memory_limit=4 << 30,
        allocator="bfc",
        gpus=(0, 2),
        cpu_pool=2 << 30,
        environment={"XLA_FLAGS": "x"},
    )
    assert chosen(settings) == ["growth on", "limit 4.0 GiB", "bfc", "GPUs 0,2", "CPU pool 2.0 GiB", "XLA_FLAGS=x"]
    assert chosen(Settings(gpus=())) == ["no GPU"]
    assert chosen(Settings()) == []


def test_a_secret_is_not_shown() -> None:
    words = chosen(Settings(environment={"WANDB_API_KEY": "s3cret", "TF_X": "1"}))
    assert words == ["TF_X=1", "WANDB_API_KEY=•••"]


def test_what_tensorflow_does_counts_once_it_is_known_and_other_choices_stay() -> None:
    settings = Settings(growth="on", memory_limit=8 * GIB, gpus=(1,), environment={"BATCH": "64"})
    assert said(begin(settings)) == ["growth on", "limit 8.0 GiB", "GPUs 1", "BATCH=64"]
    effective = structs.replace(s.effective(1.2, 100, limit=4 * GIB), growth=False)
    assert said([*begin(settings), effective]) == ["growth off", "limit 4.0 GiB", "bfc", "GPUs 1", "BATCH=64"]


def test_beside_a_gpu_the_limit_of_the_cpus_pool_is_not_told() -> None:
    beside = s.effective(2.1, 100, name="CPU:0", uuid=None, limit=GIB)
    assert said([*begin(), s.effective(1.2, 100, limit=4 * GIB), beside]) == ["growth on", "limit 4.0 GiB", "bfc"]
    assert said([*begin(), beside]) == ["growth on", "limit 1.0 GiB", "bfc"]


def test_the_next_run_without_the_cpu_pool_of_the_command_line_is_told() -> None:
    assert changes([], Settings(), [], Settings(cpu_pool=GIB)) == ["CPU pool as the script says"]


def test_the_next_run_is_told_by_what_it_has_otherwise() -> None:
    now, new = Settings(growth="on", memory_limit=GIB, gpus=(0,)), Settings(allocator="bfc")
    assert changes(["python", "b.py"], new, ["python", "a.py"], now) == [
        "growth as the script says",
        "limit as the script says",
        "bfc",
        "all GPUs",
        "other arguments",
    ]
    assert changes(["a"], now, ["a"], now) == []
