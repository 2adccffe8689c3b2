"""The command line as typed: what it means, and what is said when it means nothing."""

from pathlib import Path

import pytest

from tfmemtop.commands.arguments import Arguments, parse
from tfmemtop.commands.limits import Machine, bounds, resolve
from tfmemtop.options import Refusal

GIB = 1 << 30
TWO_GPUS = Machine(uuids=["GPU-a", "GPU-b"], totals=[80 * GIB, 40 * GIB], host_memory=64 * GIB)
NO_GPU = Machine(uuids=[], totals=[], host_memory=16 * GIB)


def arguments(line: str) -> Arguments:
    found = parse(line.split())
    assert isinstance(found, Arguments)
    return found


def test_everything_after_the_dashes_is_the_command() -> None:
    found = arguments("--growth on -- python -u train.py --growth off -- -V --help")
    assert found.subcommand == "live"
    assert found.command == ("python", "-u", "train.py", "--growth", "off", "--", "-V", "--help")
    assert found.settings.growth == "on"


def test_nothing_at_all_watches_only() -> None:
    assert arguments("").subcommand == "live"
    assert arguments("").command == ()


@pytest.mark.parametrize(
    "line",
    [
        "record -o run.jsonl --growth off -- x",
        "--growth off record -o run.jsonl -- x",
        "-o run.jsonl record --growth=off -- x",
    ],
)
def test_options_stand_before_or_after_the_subcommand(line: str) -> None:
    found = arguments(line)
    assert (found.subcommand, found.record, found.settings.growth) == ("record", Path("run.jsonl"), "off")


def test_files_to_compare_and_to_explain() -> None:
    found = arguments("compare a.jsonl b.jsonl --json")
    assert (found.subcommand, found.targets, found.json) == ("compare", ("a.jsonl", "b.jsonl"), True)
    assert (arguments("why a.jsonl").subcommand, arguments("why a.jsonl").target) == ("why", "a.jsonl")


def test_what_fit_is_to_find() -> None:
    found = arguments("fit --seconds 2.5 --from 1G --to 50% --tries 5 --growth off --json -- python train.py")
    assert (found.subcommand, found.command, found.json) == ("fit", ("python", "train.py"), True)
    assert (found.seconds, found.steps, found.tries) == (2.5, None, 5)
    assert bounds(found, TWO_GPUS) == (GIB, 20 * GIB, 40 * GIB)
    assert bounds(found, NO_GPU) == (GIB, 8 * GIB, 16 * GIB)
    assert bounds(arguments("fit --gpus none -- x"), TWO_GPUS) == (None, None, 64 * GIB)
    assert (arguments("fit -- x").seconds, arguments("fit -- x").tries) == (30.0, 8)
    assert (arguments("fit --steps 100 -- x").seconds, arguments("fit --steps 100 -- x").steps) == (None, 100)


def test_every_option_arrives() -> None:
    found = arguments(
        "--growth script --memory-limit 4G --allocator cuda_malloc_async --gpus 1,0 --cpu-pool 50% "
        "--interval 0.5 --record r --readonly --ascii -- x"
    )
    assert found.settings.growth is None
    assert found.settings.allocator == "cuda_malloc_async"
    assert found.settings.gpus == (1, 0)
    assert (found.memory_limit, found.cpu_pool, found.interval_s) == ("4G", "50%", 0.5)
    assert (found.record, found.readonly, found.ascii) == (Path("r"), True, True)
    options = found.ui_options({"NO_COLOR": "1"})
    assert (options.ascii, options.readonly, options.color) == (True, True, False)
    assert arguments("--gpus none -- x").settings.gpus == ()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("python train.py --lr 3 -V", "put -- before the command: tfmemtop -- python train.py --lr 3 -V"),
        ("--gpus 0 --ascii python -m x", "put -- before the command: tfmemtop --gpus 0 --ascii -- python -m x"),
        ("record -o f python", "record cannot make sense of 'python': put -- before the command"),
        ("--", "there is no command after --"),
        ("record -o f --", "there is no command after --"),
        ("record -- x", "record needs a file"),
        ("record -o f", "record needs a command"),
        ("replay", "replay needs a file"),
        ("replay a b", "replay cannot make sense of 'b'"),
        ("why", "why needs a file; for example: tfmemtop why run.jsonl"),
        ("why a b", "why cannot make sense of 'b'"),
        ("why a --json", "--json has no meaning with why"),
        ("fit", "fit needs a command; for example: tfmemtop fit -- python train.py"),
        ("fit python train.py", "fit cannot make sense of 'python': put -- before the command"),
        ("fit --seconds 5 --steps 5 -- x", "give --seconds or --steps, not both"),
        ("fit --seconds 0 -- x", "give seconds from 1 to 86400"),
        ("fit --steps 1.5 -- x", "--steps 1.5: give a whole number from 1 to"),
        ("fit --tries 51 -- x", "--tries 51: give a whole number from 1 to 50"),
        ("fit --memory-limit 1G -- x", "--memory-limit has no meaning with fit"),
        ("--from 1G -- x", "--from belongs to fit"),
        ("record -o f --tries 3 -- x", "--tries has no meaning with record"),
        ("compare", "compare needs a file; for example: tfmemtop compare before.jsonl after.jsonl"),
        ("compare a b c", "compare cannot make sense of 'c'"),
        ("compare a b -- x", "compare takes no command"),
        ("attach -- x", "attach takes no command"),
        ("demo -- x", "demo takes no command"),
        ("--once -- x", "--once takes no command"),
        ("--once attach", "--once stands alone"),
        ("--json", "--json belongs to --once"),
        ("-o f -- x", "-o belongs to record"),
        ("--record f record -o g -- x", "--record has no meaning with record"),
        ("attach --growth on", "--growth has no meaning with attach"),
        ("replay f --memory-limit 1G", "--memory-limit has no meaning with replay"),
        ("--growth on", "--growth needs a command to act on"),
        ("--growth maybe -- x", "invalid choice: 'maybe'"),
        ("--grow on -- x", "unknown option --grow"),
        ("--gpus", "expected one argument"),
        ("--gpus 0,0 -- x", "a GPU is named twice"),
        ("--gpus -1 -- x", "--gpus"),
        ("--gpus a -- x", "give numbers as nvidia-smi shows them"),
        ("--interval 0.01 -- x", "give seconds from 0.02 to 60"),
        ("--interval nan -- x", "give seconds from 0.02 to 60"),
        ("--interval soon -- x", "give seconds from 0.02 to 60"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line(line: str, said: str) -> None:
    with pytest.raises(Refusal) as caught:
        parse(line.split())
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_an_empty_command_is_refused() -> None:
    with pytest.raises(Refusal, match="the command after -- is empty"):
        parse(["--", ""])


@pytest.mark.parametrize(
    ("line", "machine", "limit", "pool"),
    [
        ("--memory-limit 4G -- x", TWO_GPUS, 4 * GIB, None),
        ("--memory-limit 50% -- x", TWO_GPUS, 20 * GIB, None),
        ("--memory-limit 50% --gpus 0 -- x", TWO_GPUS, 40 * GIB, None),
        ("--memory-limit 50% -- x", NO_GPU, 8 * GIB, None),
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
        ("--memory-limit 20G -- x", NO_GPU, "--memory-limit: 20G is more than this machine has, 16.0 GiB"),
        ("--cpu-pool 1T -- x", TWO_GPUS, "--cpu-pool: 1T is more than this machine has, 64.0 GiB"),
        ("--memory-limit lots -- x", TWO_GPUS, "--memory-limit: 'lots' is no size; give one such as 4G"),
        ("--memory-limit 4 -- x", TWO_GPUS, "less than 1 MiB"),
        ("fit --to 60G -- x", TWO_GPUS, "--to: 60G is more than GPU 1 has, 40.0 GiB"),
        ("fit --from 2G --to 1G -- x", NO_GPU, "--from 2G is more than --to 1G"),
        ("--gpus 2 -- x", TWO_GPUS, "there is no GPU 2: this machine has 2"),
        ("--gpus 0 -- x", NO_GPU, "there is no GPU 0: this machine has none"),
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
        resolve(arguments(line), machine)
        bounds(arguments(line), machine)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
