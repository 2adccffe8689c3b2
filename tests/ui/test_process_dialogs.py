"""The dialogs for details of a process and for signals: what they show, and that nothing is sent by accident."""

from typing import Any

import pytest
from msgspec.structs import replace
from textual.screen import Screen

from tests import streams as s
from tests.streams import GIB, MIB
from tests.ui.process_data import seen, small
from tests.ui.shown import Recorded, rows
from tests.ui.test_dialog import Host, opened
from tfmemtop import events
from tfmemtop.events.machine import Workload
from tfmemtop.experiments.session.session import Session
from tfmemtop.state import State, apply
from tfmemtop.ui.screens.details import DetailsScreen, describe
from tfmemtop.ui.screens.questions import SignalScreen
from tfmemtop.units import format_bytes


def screen_text(screen: Screen[Any]) -> list[str]:
    width, height = screen.size
    return ["".join(s.text for s in strip) for strip in screen._compositor.render_strips()][:height] or [" " * width]


def page(state: State, pid: int, width: int = 100) -> str:
    lines = rows(describe(state, pid, width))
    assert all(len(line) <= width for line in lines)
    return "\n".join(lines)


def rich_state() -> State:
    state = small()
    stream: list[events.Event] = [
        s.requested(3.1, events.Call.SET_MEMORY_GROWTH, ["GPU:0"], growth=True),
        s.requested(
            3.2,
            events.Call.SET_MEMORY_GROWTH,
            ["GPU:0"],
            growth=False,
            line=40,
            error="RuntimeError: Physical devices cannot be modified after being initialized",
        ),
        events.Initialised(
            t=3.15, pid=100, file="/a/train.py", line=20, code="x = tf.ones(3)", variables={"TF_GPU_ALLOCATOR": "bfc"}
        ),
        events.Effective(
            t=3.3,
            pid=100,
            device="GPU:0",
            physical=0,
            uuid="GPU-0",
            growth=True,
            limit=2 * GIB,
            allocator="bfc",
            settled=[events.Settled(events.Setting.MEMORY_LIMIT, [], 2 * GIB)],
        ),
        events.OutOfMemory(
            t=4.0, pid=100, message="failed to allocate memory [Op:AddV2]", requested=64 * MIB, operation="AddV2"
        ),
    ]
    for event in stream:
        apply(state, event)
    return state


def test_details_tell_who_what_was_asked_for_and_what_took_effect() -> None:
    told = page(rich_state(), 100)
    for part in (
        "Its memory on GPU 0",
        "1 ▒ context         ~520.0 MiB  25%  the usual size, not measured",
        "python train.py",
        "TensorFlow    2.21.0",
        "/usr/bin/python3",
        "set_memory_growth(GPU:0, True)",
        "/home/ada/train.py:12",
        "raised RuntimeError: Physical devices cannot be modified after being initialized",
        "made by       /a/train.py:20",
        "x = tf.ones(3)",
        "under         TF_GPU_ALLOCATOR=bfc",
        "growth on, limit 2.0 GiB, bfc",
        "set by tfmemtop: limit 2.0 GiB",
        "asked for 64.0 MiB, by AddV2",
        "failed to allocate memory [Op:AddV2]",
    ):
        assert part in told
    assert "The hook" not in told  # the hook is loaded, so the page has nothing to report about it


def test_details_name_the_container_pod_job_and_notebook_the_numbers_there_and_what_may_not_be_read() -> None:
    state = small()
    of = {"container": "ff90ed5efd65" + 52 * "0", "name": "trainer", "pod": "train-0", "pod_uid": "019c1fe8"}
    job = {"job": "812", "step": "0", "job_name": "mnist", "notebook": "a.ipynb"}
    workload = Workload(engine="containerd", namespace="ml", **of, **job)
    apply(state, replace(seen(200), workload=workload, inner_pids=(7,), unread=("/proc/200/environ",)))
    told = page(state, 200)
    for line in (
        "number        200; in its container 7",
        "container     trainer, ff90ed5efd65, containerd",
        "pod           train-0, namespace ml, uid 019c1fe8",
        "job           812, step 0, mnist",
        "notebook      a.ipynb",
        "not readable  /proc/200/environ; names of its container",
    ):
        assert line in told
    assert "not readable" not in page(small(), 200)


def test_what_steers_tensorflow_stands_first_and_control_characters_do_nothing() -> None:
    state = small()
    assert "being read" in page(state, 100)
    variables = {"HOME": "/a", "TF_X": "1", "CUDA_VISIBLE_DEVICES": "0", "BAD": "a\x1b[2J  b", "XLA_FLAGS": "x" * 300}
    apply(state, events.Environment(t=5.0, pid=100, variables=variables))
    told = page(state, 100, 60)
    places = [told.index(name) for name in ("CUDA_VISIBLE_DEVICES=0", "TF_X=1", "XLA_FLAGS=xxx", "BAD=", "HOME=/a")]
    assert places == sorted(places)
    assert "BAD=a?[2J  b" in told
    assert told.count("x") >= 300
    apply(state, events.Environment(t=6.0, pid=100, variables={}, error="permission denied"))
    assert "could not be read: permission denied." in page(state, 100)


def watching(state: State) -> Recorded:
    """Return a live source whose state is *state*."""
    source = Recorded([])
    source.state = state
    return source


@pytest.mark.parametrize("size", [(60, 16)])
async def test_details_ask_for_the_environment_scroll_and_stay_live(size: tuple[int, int]) -> None:
    source = watching(rich_state())
    state, sent = source.state, source.sent
    async with Host().run_test(size=size) as pilot:
        dialog = DetailsScreen(Session(source), 100)
        await opened(pilot, dialog)
        assert sent == [events.ReadEnvironment(pid=100), events.CensusNow(pid=100)]
        assert any("Process 100" in line for line in screen_text(dialog))
        apply(state, events.Environment(t=5.0, pid=100, variables={f"V{i}": "x" for i in range(60)} | {"ZZ": "last"}))
        dialog.refresh_state(state)
        await pilot.pause()
        await pilot.press("end")
        assert any("ZZ=last" in line for line in screen_text(dialog))
        assert "Esc close" in screen_text(dialog)[-_below(size) - 2]
        await pilot.press("pageup", "home")
        assert any("Its memory on GPU 0" in line for line in screen_text(dialog))
        await pilot.press("q")
        assert isinstance(pilot.app, Host) and pilot.app.results == [None]


def _below(size: tuple[int, int]) -> int:
    """Return how many lines are below a centred box of nine tenths of the terminal's height."""
    return size[1] - size[1] * 9 // 10 - (size[1] - size[1] * 9 // 10) // 2


@pytest.mark.parametrize(
    ("keys", "number"),
    [
        (("down", "enter"), 9),
        (("9", "enter"), 15),
        (("escape",), None),
    ],
)
async def test_only_enter_sends_and_what_is_chosen(keys: tuple[str, ...], number: int | None) -> None:
    async with Host().run_test(size=(80, 24)) as pilot:
        await opened(pilot, SignalScreen([100], ["python train.py"]))
        app = pilot.app
        assert isinstance(app, Host)
        for key in keys[:-1]:
            await pilot.press(key)
            assert app.results == []
        await pilot.press(keys[-1])
        assert app.results == [number]


async def test_whom_a_signal_goes_to_is_named_and_a_click_sends_nothing() -> None:
    async with Host().run_test(size=(60, 16)) as pilot:
        pids = list(range(1000, 1040))
        dialog = SignalScreen(pids, [f"python w{pid}.py\x1b[2J" for pid in pids])
        await opened(pilot, dialog)
        named = ""
        for _ in range(20):
            named += "".join(screen_text(dialog))
            await pilot.press("up")
        assert all(str(pid) in named for pid in pids)
        assert "python w1000.py?[2J" in named and "To these 40 processes:" in named
        assert "send SIGTERM to all 40" in named
        assert "\x1b" not in named
        await pilot.click(offset=(12, 11))
        assert isinstance(pilot.app, Host) and pilot.app.results == []


def test_what_is_in_use_is_told_by_kind() -> None:
    state = rich_state()
    hooked = state.processes[100].hooked
    assert hooked is not None
    reading = hooked.allocators["GPU:0"]
    assert reading.in_use is not None and reading.in_use > 30 * MIB and reading.peak is not None
    kernel = events.Variable("dense/kernel\x1b[31m", "variables", [1024, 2048], "float32", "GPU:0", 8 * MIB)
    kinds = {"GPU:0": {"optimizer": 16 * MIB, "variables": 9 * MIB}}
    apply(state, events.Census(t=4.0, pid=100, kinds=kinds, largest=[kernel]))
    shown = " ".join(page(state, 100).split())
    assert "2 █ variables 9.0 MiB 0% 3 █ optimizer 16.0 MiB 1% 4 █ rest in use" in shown
    assert f"{format_bytes(reading.in_use - 25 * MIB)} 6% activations, temporaries, tensors" in shown
    assert "dense/kernel?[31m [1024, 2048] float32 on GPU:0" in shown

    image = events.Variable("", "tensors", [3, 2**20], "float32", "GPU:0", 12 * MIB)
    host = {"tensors": 4}
    found = {"GPU:0": {**kinds["GPU:0"], "tensors": 14 * MIB}, "CPU:0": host}
    apply(state, events.Census(t=4.0, pid=100, kinds=found, largest=[image, kernel], tensors=3, cost_us=24_400))
    # This census counts the variables and does not look for tensors. The tensors found before stay until the next look.
    apply(state, events.Census(t=16.0, pid=100, kinds=kinds, largest=[kernel]))
    shown = " ".join(page(state, 100).split())
    assert "live tensors 14.0 MiB 1% found 12 s ago" in shown and "on CPU:0" not in shown
    assert f"{format_bytes(reading.in_use - 39 * MIB)} 5% activations, temporaries" in shown
    assert shown.index("unnamed tensor [3, 1048576]") < shown.index("dense/kernel?")
    over = reading.in_use + 3 * MIB - 25 * MIB
    apply(state, events.Census(t=16.5, pid=100, kinds={"GPU:0": {"tensors": over}}, largest=[], tensors=1))
    apply(state, events.Census(t=16.5, pid=100, kinds=kinds, largest=[]))
    shown = " ".join(page(state, 100).split())
    assert "2 █ in use" in shown and "rest in use" not in shown, "more tensors than what is in use are of another time"
    apply(state, events.Census(t=17.0, pid=100, kinds=kinds, largest=[], hidden=events.Unseen.REMOTE))
    shown = " ".join(page(state, 100).split())
    assert "Live tensors: The script uses TensorFlow on other machines." in shown and "live tensors 1" not in shown
    assert f"{format_bytes(reading.in_use - 25 * MIB)} 6% activations, temporaries, tensors" in shown


def page_of(dialog: DetailsScreen) -> str:
    return " ".join(segment.text for line in dialog.body(100) for segment in line)


async def test_live_tensors_are_looked_for_on_a_key() -> None:
    source = watching(rich_state())
    state, sent = source.state, source.sent
    async with Host().run_test(size=(120, 40)) as pilot:
        dialog = DetailsScreen(Session(source), 100)
        await opened(pilot, dialog)
        assert "[T] also looks for live tensors" in page_of(dialog)
        await pilot.press("t")
        assert sent[2:] == [events.CensusNow(pid=100, tensors=True)]
        await pilot.press("escape")
        apply(state, events.Census(t=4.0, pid=100, kinds={}, largest=[], tensors=3, cost_us=24_400))
        dialog = DetailsScreen(Session(source, readonly=True), 100)
        await opened(pilot, dialog)
        await pilot.press("T")
        assert len(sent) == 5 and "The last look took" not in page_of(dialog)
