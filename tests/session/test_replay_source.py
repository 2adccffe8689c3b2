"""The replay of a recording: at each time, its state is the one that a live screen would have at that time."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import streams as s
from tfmemtop import events as ev
from tfmemtop.cli.main import main
from tfmemtop.events.recording import writer as writing
from tfmemtop.experiments.session import Batch
from tfmemtop.experiments.session.replay import ReplaySource
from tfmemtop.state import State, apply

SESSION = s.session()


def reading(t: float, rss: int = 0) -> ev.ProcessReadings:
    return ev.ProcessReadings(t=t, processes=[], host_used=rss)


EVENTS: list[ev.Event] = [SESSION]
for second in range(1, 31):
    EVENTS += [reading(float(second), second), ev.Output(t=second + 0.5, run=1, text=f"epoch {second}\n")]


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Player:
    """Does a screen's part of a replay: takes batches.

    ``resets`` counts how often the state was replaced, ``folded`` the events that were taken.
    """

    def __init__(self, path: Path) -> None:
        self.clock = Clock()
        self.source = ReplaySource(path, self.clock)
        self.state = self.source.state
        self.resets = self.folded = 0
        self._batches: AsyncIterator[Batch] = self.source.batches()

    async def settle(self) -> State:
        """Take batches until every event up to the position is folded, and return the state."""
        while True:
            self.source._wake.set()  # else the iteration waits for a key, or for the next event's time
            self.folded += len(await anext(self._batches))
            self.resets += self.source.state is not self.state
            self.state = self.source.state
            if not self.source.seeking:
                return self.state


def expected(position_s: float, events: list[ev.Event] = EVENTS) -> State:
    state = State()
    for event in events:
        if event.t <= position_s:
            apply(state, event)
    return state


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return s.written(tmp_path_factory.mktemp("replay") / "run.jsonl", EVENTS)


@pytest.fixture
def player(path: Path) -> Player:
    return Player(path)


@pytest.fixture
def damaged(path: Path, tmp_path: Path) -> Path:
    lines = path.read_bytes().splitlines(keepends=True)
    for number in (7, 30):
        lines[number] = b"\xff" + lines[number]
    (tmp_path / "damaged.jsonl").write_bytes(b"".join(lines))
    return tmp_path / "damaged.jsonl"


async def test_it_plays_at_the_pace_of_the_clock_times_the_speed(player: Player) -> None:
    assert player.source.length_s == 30.5
    await player.settle()
    player.clock.now += 2.2
    assert (await player.settle()) == expected(2.2)
    player.source.change_speed(1)
    player.source.change_speed(1)
    player.clock.now += 2
    assert (await player.settle()) == expected(10.2)
    assert player.source.position_s == pytest.approx(10.2)
    player.source.change_speed(-1)
    assert player.source.speed == 2


async def test_going_back_folds_anew_and_forward_does_not(player: Player) -> None:
    await player.settle()
    player.source.toggle_pause()
    player.source.seek(20)
    assert player.source.seeking
    assert (await player.settle()) == expected(20)
    assert player.resets == 0
    player.source.seek_by(-5)
    assert (await player.settle()) == expected(15)
    assert player.resets == 1


async def test_a_step_goes_to_the_next_reading_and_back_to_the_one_before(player: Player) -> None:
    await player.settle()
    player.source.step(1)
    assert (await player.settle()) == expected(1.0)
    player.source.step(1)
    player.source.step(1)  # two key presses before the screen handles them
    assert (await player.settle()).host_used == 2
    player.source.step(1)
    assert (await player.settle()).host_used == 3
    player.source.step(-1)
    assert player.source.seeking and player.state.host_used == 3, "it is searched in a thread"
    assert (await player.settle()).host_used == 2
    player.source.step(-1)
    player.source.step(-1)
    assert (await player.settle()) == expected(0)
    assert player.source.paused


async def test_at_its_end_it_stays_and_plays_again_from_the_beginning(player: Player) -> None:
    await player.settle()
    player.clock.now += 1000
    assert (await player.settle()) == expected(99)
    assert player.source.paused and player.source.position_s == player.source.length_s
    player.source.toggle_pause()
    assert (await player.settle()) == expected(0)
    player.clock.now += 5
    assert (await player.settle()) == expected(5)


_moves = st.lists(
    st.one_of(st.floats(-5, 40).map(lambda t: ("seek", t)), st.sampled_from([-1, 1]).map(lambda d: ("step", d)))
)


@given(_moves)
def test_wherever_it_goes_the_state_is_that_of_the_time(path: Path, moves: list[tuple[str, float]]) -> None:
    async def go() -> None:
        player = Player(path)
        player.source.toggle_pause()
        await player.settle()
        for kind, value in moves:
            player.source.seek(value) if kind == "seek" else player.source.step(int(value))
            assert (await player.settle()) == expected(player.source.position_s)

    asyncio.run(go())


async def test_a_long_way_is_folded_in_slices(tmp_path: Path) -> None:
    many: list[ev.Event] = [SESSION, *(reading(n / 1000, n) for n in range(10_000))]
    player = Player(s.written(tmp_path / "long.jsonl", many))
    player.source.seek(9)
    batch = await anext(player.source.batches())
    assert isinstance(batch, list) and 0 < len(batch) <= 2000
    assert player.source.seeking and player.source.folded_s < player.source.position_s


async def test_damaged_lines_are_counted_once_however_often_it_is_played(damaged: Path) -> None:
    player = Player(damaged)
    for position in (10, 0, 10, 4, 8, 3, 30):
        player.source.seek(position)
        await player.settle()
    assert player.source.damaged == 2


LONG: list[ev.Event] = [SESSION, s.run(0.5), s.process(0.6, 7), s.device(), s.hook(0.7, 7), s.effective(0.8, 7)]
for second in range(1, 4001):
    LONG += [s.alive(float(second), 7), s.allocator(second + 0.5, 7, second << 20)]


@pytest.fixture(scope="module")
def chunked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of a compressed recording of more than an hour."""
    folder = tmp_path_factory.mktemp("replay")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "CHUNK", 100_000)
        assert main(["convert", str(s.written(folder / "run.jsonl", LONG)), str(folder / "run.jsonl.gz")]) == 0
    return folder / "run.jsonl.gz"


def seen(state: State) -> tuple[object, ...]:
    """Return what a screen shows of *state*: the figures, and the graph of the last minutes."""
    history = s.columns(state.devices[0].history, 240, 60, state.now)
    hooked = state.processes[7].hooked
    return state.now, state.processes[7].reading, hooked and hooked.allocators, state.run and state.run.peaks, history


async def test_a_compressed_recording_is_not_folded_from_its_beginning(chunked: Path) -> None:
    player = Player(chunked)
    player.source.toggle_pause()
    await player.settle()
    for t in (3900.2, 50.2, 2500.7, 4000.5):
        player.source.seek(t)
        player.folded = 0
        assert seen(await player.settle()) == seen(expected(t, LONG))
        assert player.folded < 2500, "events, of 8000"
