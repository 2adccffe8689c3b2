"""Machines that are not available here, played back at the one place where NVML is called.

The tests go from there up to the real screen and to --once. The lines expected of each machine are those that a user
would look for: the figures that are known, and why the others are missing.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests import streams as s
from tests.contained import contained
from tests.nvml_tables import GIB, MIB, TABLES, Table, card, play, row
from tests.starting import ran
from tests.ui.shown import Recorded, drawn, text_of
from tfmemtop import events
from tfmemtop.cli import once
from tfmemtop.cli.main import main
from tfmemtop.engine.sources.foreign import Foreign
from tfmemtop.engine.sources.nvml import Nvml
from tfmemtop.engine.sources.processes import Namespace, pid_namespace, uses_gpu
from tfmemtop.events import WhyLacking
from tfmemtop.ui import UiOptions
from tfmemtop.ui.app import TfmemtopApp


@dataclass
class Case:
    """What the screen and --once must show for a *table*, in a run whose process *pid* has a hook.

    ``local``: the processes in this PID namespace that use a GPU, if its numbers differ from the machine's own.
    ``once`` has parts of lines; ``*`` stands for the user, as the machine may have a process of that number.
    """

    table: str
    once: list[str]
    screen: tuple[str, ...] = ()
    nowhere: tuple[str, ...] = ("1844674407", "4294967", "-5")
    pid: int = 441
    pool: int = 1200 * MIB
    local: set[int] | None = None


CASES = {
    "H100": Case(
        "H100",
        ["0  NVIDIA H100 80GB HBM3  1.6G  77.6G  79.6G   93%     60%   379W  42°C", "0  441", "1.6G   93     93"],
        screen=(
            "GPU 0 NVIDIA H100 80GB HBM3",
            "util 93% · mem 60% · 379 W · 42 °C",
            "1.6 of 79.6 GiB",
            "context+outside 434.0M",
        ),
    ),
    "no figures by process": Case(
        "no shares",
        ["GPU 0: the driver does not report memory per process here", "0  441  *  —    —"],
        screen=(
            "the driver does not report memory per process here",
            "in use 600.0M",
            "cached 600.0M",
            "rest+others",
        ),
    ),
    "MIG": Case(
        "MIG",
        [
            "0  NVIDIA H100 80GB HBM3 MIG 1g.10gb  2.0G  8.0G  10.0G     —       —      —  42°C",
            "1  NVIDIA H100 80GB HBM3 MIG 1g.10gb  3.0G",
            "GPU 0: the driver does not report utilisation, power",
        ],
        screen=(
            "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
            "2.0 of 10.0 GiB",
            "3.0 of 10.0 GiB",
            "context+outside 848.0M",
        ),
        nowhere=("MIG MIG",),
    ),
    "MIG, not root": Case(
        "MIG, not root", ["GPU 0: the card is divided (MIG), and the driver reports memory per process to root only"]
    ),
    "WSL": Case(
        "WSL",
        ["GPU 0: under WSL the driver does not report memory per process"],
        screen=(
            "under WSL the driver does not report memory per process",
            "2.0 of 24.0 GiB",
            "cached 600.0M",
        ),
    ),
    "GB10": Case("GB10", ["GPU 0: this GPU has no memory of its own", "0  NVIDIA GB10  8.6G  113.1G  121.7G    0%"]),
    "vGPU": Case("vGPU", ["GPU 0: the driver does not report power, temperature here"]),
    "a very old driver": Case("a very old driver", ["GPU 0: this driver is too old to report memory per process"]),
    "another library than the kernel's module": Case(
        "another library than the kernel's module",
        [],
        screen=(
            "does not fit the loaded kernel module",
            "restart the machine",
        ),
    ),
    "no permission": Case("no permission", [], screen=("No permission to talk to the NVIDIA driver",)),
    "nonsense": Case(
        "nonsense",
        [
            "GPU 0: the driver reports impossible figures, which are not shown: used 18446744073709551615, free",
            "—  80.0G     —       —      —     —",
        ],
        nowhere=("900.0G", "65535W", "-3%", "90.0G"),
    ),
    "in a container: the driver leaves others out": Case(
        "beside others, 580",
        ["0    2", "GPU 0: processes outside this container hold 1.6 GiB"],
        screen=(
            "3.2 of 79.6 GiB",
            "context+outside 434.0M",
            "processes outside this container hold 1.6 GiB",
        ),
        pid=2,
        local={2},
        nowhere=("cannot be told",),
    ),
    "in a container: nobody of here is listed": Case(
        "from inside, 580",
        ["GPU 0: processes outside this container hold 1.6 GiB"],
        screen=(
            "1.6 of 79.6 GiB",
            "so which of them are here is unknown",
            "cached 600.0M",
        ),
        pid=2,
        local=set(),
    ),
    "in a container: the number of here without a size": Case(
        "from inside, 560", ["0  324  —           —    —"], pid=324, local={324}, nowhere=(" 0B", "—    0      0")
    ),
    "in a container: the host's numbers, ours the only one": Case(
        "one of the host's numbers", ["GPU 0: processes outside"], pid=17, local=set()
    ),
    "in a container: the host's numbers, ours the only one large enough": Case(
        "the host's numbers",
        ["GPU 0: processes outside this container hold 33.0 GiB"],
        screen=(
            "context+outside 2.0G",
            "processes outside this container hold 3.0 GiB",
        ),
        pid=17,
        pool=28 * GIB,
        local=set(),
    ),
}


class _Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def reader(table: Table) -> Nvml:
    return Nvml(play(table), lambda: table.host, table.wsl)


def translator(local: set[int] | None, clock: Callable[[], float] | None = None) -> Foreign:
    namespace: Namespace = "first" if local is None else "other"
    return Foreign(lambda: local or (), namespace, lambda pid: pid in (local or ()), clock or _Clock())


def hooked_run(case: Case) -> list[events.Event]:
    """Return the events of a run with a hook inside, and of two readings of the table's cards."""
    clock = _Clock()
    nvml, foreign = reader(TABLES[case.table]), translator(case.local, clock)
    first = nvml.read()
    uuid = first.devices[0].uuid if first.devices else None
    told: list[events.Event] = [
        s.session(),
        *first.devices,
        s.run(),
        s.process(0.3, case.pid),
        s.alive(1.0, case.pid),
        s.hook(1.1, case.pid),
        s.effective(1.2, case.pid, uuid=uuid),
        s.allocator(1.3, case.pid, case.pool // 2, pool=case.pool),
    ]
    for event in told:
        foreign.take(event)
    clock.now = 10.0
    for reading in (first, nvml.read()):
        told += [replace(trouble, t=9.0) for trouble in reading.troubles]
        told += [foreign.translate(one) for one in reading.readings]
    return told


@pytest.mark.screens
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.screen])
async def test_the_screen_is_right_and_says_why_a_figure_lacks(name: str) -> None:
    case = CASES[name]
    app = TfmemtopApp(Recorded(hooked_run(case)), UiOptions())
    async with app.run_test(size=(200, 60)) as pilot:
        shown = " ".join(text_of(await drawn(pilot)).split())
    for line in case.screen:
        assert " ".join(line.split()) in shown
    for text in case.nowhere:
        if not text.startswith(("184", "4294")):  # these are quoted in the text as impossible values
            assert text not in shown


@pytest.mark.parametrize("name", CASES)
def test_once_prints_it_too(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    case = CASES[name]
    table = TABLES[case.table]
    real = once.read
    monkeypatch.setattr(once, "read", lambda _, outside: real(reader(table), translator(case.local)))
    for flags in (["--once"], ["--once", "--json"]):
        assert main(flags) == 0
    printed, said = capsys.readouterr()
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    for line in case.once:
        assert any(fnmatchcase(each, f"*{' '.join(line.split())}*") for each in lines), (line, printed)
    if not table.cards:
        assert "GPUs cannot be read" in said or "no permission" in said
    told = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    for reading in (each for each in told if each["type"] == "device_reading"):
        figures = [reading["used"], reading["free"], *(process[1] for process in reading["processes"])]
        assert all(figure is None or 0 <= figure < 1 << 50 for figure in figures)
        assert reading["processes"] == [] or all(0 < process[0] < 1 << 22 for process in reading["processes"])


def test_a_card_lost_in_the_middle_is_told_and_the_other_goes_on() -> None:
    nvml = reader(TABLES["lost in the middle"])
    before = nvml.read()
    assert [one.used is None for one in before.readings] == [False, False]
    nvml.read()
    after = nvml.read()
    assert [one.used is None for one in after.readings] == [True, False]
    assert [(lost.kind, lost.about) for lost in after.troubles if lost.kind] == [(events.NoticeKind.GPU_LOST, 0)]
    assert WhyLacking.CARD_LOST in [lacking.why for lacking in after.readings[0].lacking]


def test_a_driver_that_lists_no_gpu_says_so() -> None:
    reading = reader(TABLES["no cards"]).read()
    assert [trouble.kind for trouble in reading.troubles] == [events.NoticeKind.NO_GPU]
    assert reading.devices == [] and reading.readings == []


def test_a_count_of_billions_is_a_figure_that_lacks() -> None:
    library = play(TABLES["H100"])

    def listed(*_: object) -> None:
        raise MemoryError  # as pynvml does: it makes a list of that length

    library.nvmlDeviceGetComputeRunningProcesses_v3 = library.nvmlDeviceGetGraphicsRunningProcesses_v3 = listed
    (reading,) = Nvml(library).read().readings
    assert reading.used == TABLES["H100"].cards[0]["MemoryInfo_v2"].used


def test_a_hooked_process_stays_known_while_others_come_and_go() -> None:
    clock = _Clock()
    foreign = translator(set(), clock)
    foreign.take(events.Device(t=0, index=0, uuid="GPU-0", name="", total=80 * GIB, reserved=0))
    foreign.take(s.effective(0, 17, uuid="GPU-0"))
    foreign.take(s.allocator(0, 17, GIB, pool=GIB))

    def listed(*rows: object) -> dict[int, int | None]:
        (reading,) = Nvml(play(Table([card(ComputeRunningProcesses_v3=list(rows))]))).read().readings
        return {process.pid: process.used for process in foreign.translate(reading).processes}

    assert listed(row(4001, 2 * GIB)) == {}, "its context may be too young to be listed"
    clock.now = 5.0
    assert listed(row(4001, 2 * GIB)) == {17: 2 * GIB}
    assert listed(row(4001, 2 * GIB), row(4002, 9 * GIB)) == {17: 2 * GIB}
    foreign.take(events.HookEnd(t=9, pid=17, reason=events.HookEnding.EXIT))
    assert listed(row(4001, 2 * GIB)) == {}


@pytest.mark.programs
def test_a_process_in_a_namespace_of_its_own_knows_it() -> None:
    ask = "from tfmemtop.engine.sources.processes import pid_namespace; print(pid_namespace())"
    here = ran([sys.executable, "-c", ask], check=True).stdout.strip()
    assert here == pid_namespace()
    apart = contained(sys.executable, "-c", ask)
    done = ran(apart, check=True)
    assert done.stdout.strip() == "other"


@pytest.mark.parametrize(
    ("opened", "uses"),
    [
        (["/dev/pts/0", "/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm"], True),
        (["/dev/dxg"], True),
        (["/dev/pts/0", "/home/nvidia/x"], False),
        ([], False),
    ],
)
def test_who_has_a_gpu_open(tmp_path: Path, opened: list[str], uses: bool) -> None:
    folder = tmp_path / "proc" / "7" / "fd"
    folder.mkdir(parents=True)
    for number, target in enumerate(opened):
        (folder / str(number)).symlink_to(target)
    assert uses_gpu(7, tmp_path) is uses
    assert uses_gpu(8, tmp_path) is False
