"""The command line as typed: how it is parsed, and the error message if it is not valid."""

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.nvml_tables import Table, card, memory, play
from tfmemtop.cli import NAMES, Refusal, fit
from tfmemtop.cli.launch import ask_machine, bounds, resolve, with_sizes
from tfmemtop.cli.main import main
from tfmemtop.cli.parser import parse, parsers
from tfmemtop.engine.sources.nvml import Nvml
from tfmemtop.limits import Machine
from tfmemtop.settings import carry

GIB = 1 << 30
TWO_GPUS = Machine(uuids=["GPU-a", "GPU-b"], totals=[80 * GIB, 40 * GIB], host_memory=64 * GIB)
ONE_UNKNOWN = Machine(uuids=["GPU-a", "GPU-b"], totals=[80 * GIB, None], host_memory=64 * GIB)
NO_GPU = Machine(uuids=[], totals=[], host_memory=16 * GIB)


def arguments(line: str) -> Any:
    """Return the parsed arguments of *line*. Each command has a class of its own for them."""
    return parse(line.split()).arguments


def command(line: str) -> str:
    """Return the name of the command in *line*."""
    return parse(line.split()).run.__module__.removeprefix("tfmemtop.cli.")


def test_everything_after_the_dashes_is_the_command() -> None:
    line = "--growth on -- python -u train.py --growth off -- -V --help"
    assert command(line) == "live"
    assert arguments(line).command == ("python", "-u", "train.py", "--growth", "off", "--", "-V", "--help")
    assert arguments(line).settings.growth == "on"


@pytest.mark.parametrize("name", ["tfmemtop", *NAMES])
def test_every_command_has_a_help_of_its_own_with_an_example_that_is_valid(name: str) -> None:
    parser = parsers()[name].load()
    program, *words = shlex.split(parser.example)
    assert program == "tfmemtop"
    assert parse(words).run.__module__ == f"tfmemtop.cli.{'live' if name == 'tfmemtop' else name}"
    shown = parser.format_help()
    assert f"example: {parser.example}" in shown and shown.startswith("usage: tfmemtop ")
    summary = (parser.description or "").partition("\n")[0]
    assert summary in shown and len(summary) < 90 and summary.endswith(".")


def test_the_help_lists_every_command_with_its_summary() -> None:
    known = parsers()
    shown = " ".join(known["tfmemtop"].load().format_help().split())
    for name in NAMES:
        assert f"{name} {(known[name].load().description or '').partition(chr(10))[0]}" in shown


@pytest.mark.parametrize(
    "line",
    [
        "record -o run.jsonl --growth off -- x",
        "--growth off record -o run.jsonl -- x",
    ],
)
def test_options_stand_before_or_after_the_subcommand(line: str) -> None:
    found = arguments(line)
    assert (command(line), found.output, found.settings.growth) == ("record", Path("run.jsonl"), "off")


def test_an_options_value_is_not_taken_for_a_subcommand() -> None:
    assert (command("record -o fit -- x"), arguments("record -o fit -- x").output) == ("record", Path("fit"))
    assert (command("--record fit -- x"), arguments("--record fit -- x").record) == ("live", Path("fit"))


def limits(line: str, machine: Machine) -> tuple[int | None, ...]:
    found = arguments(line)
    assert isinstance(found, fit.FitArguments)
    return bounds(found.settings, found.smallest, found.largest, machine)


def test_what_fit_is_to_find() -> None:
    line = "fit --seconds 2.5 --from 1G --to 50% --tries 5 --growth off --json -- python train.py"
    found = arguments(line)
    assert (command(line), found.command, found.json) == ("fit", ("python", "train.py"), True)
    assert (found.goal, found.tries) == ((2.5, None), 5)
    assert limits(line, TWO_GPUS) == (GIB, 20 * GIB, 40 * GIB)
    assert limits(line, NO_GPU) == (GIB, 8 * GIB, 16 * GIB)
    assert limits("fit --gpus none -- x", TWO_GPUS) == (None, None, 64 * GIB)
    assert (arguments("fit -- x").goal, arguments("fit -- x").tries) == ((30.0, None), 8)
    assert arguments("fit --steps 100 -- x").goal == (None, 100)


def test_every_option_arrives() -> None:
    found = arguments(
        "--growth script --memory-limit 4G --allocator cuda_malloc_async --gpus 1,0 --cpu-pool 50% "
        "--interval 0.5 --record r --readonly --ascii -- x"
    )
    assert found.settings.growth is None
    assert found.settings.allocator == "cuda_malloc_async"
    assert found.settings.gpus == (1, 0)
    assert (found.memory_limit, found.cpu_pool, found.interval) == ("4G", "50%", 0.5)
    assert (found.record, found.readonly, found.ascii) == (Path("r"), True, True)
    options = found.ui_options({"NO_COLOR": "1"})
    assert (options.ascii, options.readonly, options.color) == (True, True, False)
    assert arguments("--gpus none -- x").settings.gpus == ()


FOUR_GPUS = Machine(
    uuids=["GPU-a", "GPU-b", "GPU-c", "GPU-d"],
    totals=[80 * GIB] * 4,
    free={0: 10 * GIB, 1: 70 * GIB, 3: 79 * GIB},  # the environment hides GPU 2
    host_memory=64 * GIB,
)


@pytest.mark.parametrize(
    ("line", "gpus", "said"),
    [
        ("--gpus free -- x", (3,), "GPU 3 has the most free memory, 79.0 GiB of 80.0 GiB"),
        ("record --gpus FREE:2 -- x", (3, 1), "GPUs 3, 1 have the most free memory, 79.0 GiB of 80.0 GiB and 70.0 GiB"),
        ("fit --gpus free -- x", (3,), "--gpus free: GPU 3 has the most free memory"),
    ],
)
def test_the_gpus_with_the_most_free_memory_are_chosen_and_a_line_says_why(
    line: str, gpus: tuple[int, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert resolve(arguments(line), FOUR_GPUS).gpus == gpus
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("visible", "free"),
    [
        (None, {0: 76, 1: 36}),
        ("1", {1: 36}),
        ("GPU-a", {0: 76}),
        ("", {}),
    ],
)
def test_a_gpu_that_the_environment_hides_is_not_chosen(
    visible: str | None, free: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [card(UUID="GPU-a", MemoryInfo_v2=memory(80 * GIB, GIB, 3 * GIB))]
    tables += [card(UUID="GPU-b", MemoryInfo_v2=memory(40 * GIB, GIB, 3 * GIB))]
    monkeypatch.setattr("tfmemtop.engine.sources.nvml.Nvml", lambda: Nvml(play(Table(tables))))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert ask_machine().free == {index: size * GIB for index, size in free.items()}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("python train.py --lr 3 -V", "put -- before the command: tfmemtop -- python train.py --lr 3 -V"),
        ("record -o f python", "record does not understand 'python'; put -- before the command"),
        ("python -- x", "'python' before -- is not a command of tfmemtop"),
        ("--", "there is no command after --"),
        ("fit", "fit needs a command; for example: tfmemtop fit -- python train.py"),
        ("fit --seconds 5 --steps 5 -- x", "give --seconds or --steps, not both"),
        ("fit --seconds 0 -- x", "--seconds: '0' is not a number of seconds from 1 to 86400"),
        ("fit --tries 51 -- x", "--tries: '51' is not a whole number from 1 to 50"),
        ("convert a", "convert needs OUT; for example: tfmemtop convert run.jsonl.gz run.jsonl"),
        ("compare a b -- x", "compare takes no command"),
        ("--once attach", "attach has no option --once"),
        ("--once --readonly", "--readonly has no effect with --once"),
        ("--json", "use tfmemtop --once --json"),
        ("--growth on", "--growth needs a command"),
        ("--growth maybe -- x", "--growth: invalid choice: 'maybe'"),
        ("--grow on -- x", "no option --grow; did you mean --growth?"),
        ("reply run.jsonl", "there is no command 'reply'; did you mean replay? To run a program of that name: tfm"),
        ("--gpus", "--gpus: expected one argument"),
        ("--gpus 0,0 -- x", "--gpus: '0,0' names a GPU twice"),
        ("--gpus a -- x", "give numbers as nvidia-smi shows them"),
    ],
)
def test_what_is_not_valid_is_refused_in_one_line(line: str, said: str) -> None:
    with pytest.raises(Refusal) as caught:
        parse(line.split())
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("line", "machine", "limit", "pool"),
    [
        ("--memory-limit 4G -- x", TWO_GPUS, 4 * GIB, None),
        ("--memory-limit 50% -- x", TWO_GPUS, 20 * GIB, None),
        ("--memory-limit 50% --gpus 0 -- x", TWO_GPUS, 40 * GIB, None),
        ("--memory-limit 50% -- x", NO_GPU, 8 * GIB, None),
        ("--memory-limit 50% -- x", ONE_UNKNOWN, 40 * GIB, None),
        ("--memory-limit 1.9M -- x", TWO_GPUS, 1 << 20, None),  # rounded down: TensorFlow counts limits in MiB
        ("--cpu-pool 25% -- x", TWO_GPUS, None, 16 * GIB),
    ],
)
def test_a_share_is_one_of_the_smallest_gpu_or_of_the_host(
    line: str, machine: Machine, limit: int | None, pool: int | None
) -> None:
    settings = resolve(arguments(line), machine)
    assert (settings.memory_limit, settings.cpu_pool) == (limit, pool)


@pytest.mark.parametrize(
    ("line", "machine", "said"),
    [
        ("--memory-limit 60G -- x", TWO_GPUS, "--memory-limit: 60G is more than GPU 1 has, 40.0 GiB"),
        ("--cpu-pool 1T -- x", TWO_GPUS, "--cpu-pool: 1T is more than this machine has, 64.0 GiB"),
        ("--memory-limit 2048 -- x", TWO_GPUS, "2048 MiB is 2048M"),
        (
            "--cpu-pool 1G --memory-limit 2G -- x",
            NO_GPU,
            "without a GPU, --memory-limit sets the size of the CPU pool: give it or --cpu-pool, not both",
        ),
        ("--memory-limit lots -- x", TWO_GPUS, "--memory-limit: 'lots' is not a size; give one such as 4G"),
        ("fit --from 2G --to 1G -- x", NO_GPU, "--from 2G is more than --to 1G"),
        ("--gpus 2 -- x", TWO_GPUS, "there is no GPU 2: this machine has 2"),
        ("--gpus free -- x", NO_GPU, "free: there is no GPU whose free memory is known"),
        ("record --gpus free:4 -- x", FOUR_GPUS, "free:4: there are only 3 GPUs whose free memory is known"),
        ("--allocator cuda_malloc_async -- x", NO_GPU, "cuda_malloc_async needs a GPU"),
        (
            "--memory-limit 50% -- x",
            Machine(uuids=["GPU-a"], totals=[None], host_memory=GIB),
            "the size of the whole is not known here",
        ),
        (
            "--gpus 0 -- x",
            Machine(uuids=[], totals=[], host_memory=GIB, trouble="the driver's library does not fit"),
            "this machine has none (the driver's library does not fit)",
        ),
    ],
)
def test_what_the_machine_lacks_is_said_in_one_line(line: str, machine: Machine, said: str) -> None:
    with pytest.raises(Refusal) as caught:
        limits(line, machine) if line.startswith("fit") else resolve(arguments(line), machine)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


# The file of options that the user has set for every run.


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of options, in a folder of the test's own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "tfmemtop").mkdir()
    return tmp_path / "tfmemtop" / "config.toml"


def options(line: str) -> dict[str, object]:
    return vars(parse(line.split()).arguments)


def test_what_the_file_says_holds_until_it_is_typed_otherwise(configured: Path) -> None:
    configured.write_text('growth = "on"\nmemory-limit = "50%"\ninterval = 2\nreadonly = true\nascii = false\n')
    found = options("-- true")
    assert (found["growth"], found["memory_limit"], found["interval"], found["readonly"]) == ("on", "50%", 2.0, True)
    assert not found.get("ascii")
    found = options("--growth script --interval 0.1 -- true")
    assert (found["growth"], found["memory_limit"], found["interval"]) == ("script", "50%", 0.1)


def test_each_command_takes_what_it_has(configured: Path) -> None:
    configured.write_text('growth = "on"\nmemory-limit = "1G"\nreadonly = true\non-end = "true"\n')
    assert options("record -o file -- true")["on_end"] == "true"
    assert "readonly" not in options("record -o file -- true")
    assert options("fit -- true")["growth"] == "on" and "memory_limit" not in options("fit -- true")
    assert options("attach")["readonly"] is True
    watching = options("")  # nothing is run
    assert watching["readonly"] is True and "growth" not in watching and "on_end" not in watching
    assert options("demo")["growth"] == "on"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('record = "file"', "there is no option 'record'; see tfmemtop help config"),
        ('growth = "maybe"', "--growth: invalid choice: 'maybe'"),
        ("growth = true", 'growth has to be a number, or text in quotes such as "4G"'),
        ('ascii = "yes"', "ascii has to be true or false"),
        ("interval = 0", "--interval: '0' is not a number of seconds from 0.02 to 60"),
        ("growth = ", "Invalid value"),
        ("x = '" + "y" * 70000 + "'", "larger than 64 KiB"),
        ("\udcff", "can't decode byte 0xff"),
    ],
)
def test_a_mistake_is_refused_in_one_line_that_names_the_file(configured: Path, text: str, said: str) -> None:
    configured.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(Refusal) as refused:
        parse(["--", "true"])
    assert str(refused.value).startswith(f"{configured}: ") and said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_settings_count_where_no_session_can_be_kept(
    configured: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    configured.write_text('growth = "on"\n')
    monkeypatch.setenv("XDG_STATE_HOME", str(configured))
    assert options("-- true")["growth"] == "on"
    assert capsys.readouterr().err == f"tfmemtop: {configured}/tfmemtop: Not a directory; kept sessions are left out\n"


def test_help_is_shown_whatever_the_file_says(configured: Path) -> None:
    configured.write_text("nonsense")
    for line in ("--help", "help", "record --help", "--version"):
        assert main(line.split()) == 0


def test_options_go_to_jax_and_pytorch_in_the_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "torch-2.13.0.dist-info").mkdir()
    (tmp_path / "torch-2.13.0.dist-info" / "METADATA").write_text("Name: torch\nVersion: 2.13.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "true")
    line = "--growth on --allocator bfc --memory-limit 20G -- x"
    monkeypatch.setattr("tfmemtop.engine.sources.nvml.Nvml", lambda: Nvml(play(Table([card()]))))
    beside, elsewhere = (with_sizes(arguments(line), [program]) for program in (sys.executable, "sh"))
    assert "XLA_PYTHON_CLIENT_PREALLOCATE=true to false" in capsys.readouterr().err
    made = carry(beside, ["GPU-a"], 80 * GIB)
    assert made["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false" and made["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.250000"
    assert "per_process_memory_fraction" in made["PYTORCH_CUDA_ALLOC_CONF"]
    assert carry(elsewhere, ["GPU-a"], 80 * GIB)["PYTORCH_CUDA_ALLOC_CONF"] == "backend:native", "no known version"
    assert not with_sizes(arguments("--gpus 0 -- x"), [sys.executable]).frameworks
