"""What JAX, PyTorch, CuPy and RMM hold beside TensorFlow, or in its place: account, layers, rows, metrics, text."""

from pathlib import Path

import pytest

from tests import streams as s
from tests.streams import GIB, MIB
from tfmemtop import events
from tfmemtop.engine.metrics.families import families
from tfmemtop.events import recording
from tfmemtop.findings.review import review
from tfmemtop.findings.rules.frameworks import OtherPools
from tfmemtop.frameworks import FrameworkName
from tfmemtop.reports.account import account as account_lines
from tfmemtop.reports.shared.data import PagePlace
from tfmemtop.reports.shared.places import places
from tfmemtop.state import State, apply
from tfmemtop.state.account import Account, accounts
from tfmemtop.state.pool_views import allocators
from tfmemtop.state.views import GPU_LAYERS, DevicePanel, LayerKind, at_moment, panels

RECORDINGS = Path(__file__).parents[1] / "recordings"

JAX, PYTORCH, CUPY, RMM = FrameworkName
PID = 100

BEGUN: list[events.Event] = [s.session(), s.device(), s.run(), s.process(0.2, PID), s.hook(1.0, PID, None)]
TENSORFLOW: list[events.Event] = [s.effective(2.0, PID), s.allocator(2.1, PID, 1024 * MIB, pool=1026 * MIB)]
OTHERS: list[events.Event] = [
    s.framework(2.2, PID, JAX, 1024 * MIB, 1026 * MIB, peak=1025 * MIB, limit=60 * GIB),
    s.framework(2.2, PID, PYTORCH, 512 * MIB, 514 * MIB, peak=512 * MIB),
    s.framework(2.2, PID, CUPY, 255 * MIB, 256 * MIB),
    s.framework(2.2, PID, RMM, 60 * MIB, None, peak=62 * MIB),
]
HELD = {JAX: 1026 * MIB, PYTORCH: 514 * MIB, CUPY: 256 * MIB, RMM: 60 * MIB}
TOTAL = 1026 * MIB + sum(HELD.values()) + 600 * MIB


def stream_of(*streams: list[events.Event], total: int = TOTAL) -> list[events.Event]:
    after: list[events.Event] = [s.device_reading(3.0, {PID: total}), s.alive(3.0, PID)]
    return [event for stream in (BEGUN, *streams, after) for event in stream]


def seen(*streams: list[events.Event], total: int = TOTAL) -> State:
    return s.fold(stream_of(*streams, total=total))


def the_account(state: State) -> Account:
    (found,) = accounts(state, PID)
    return found


def the_panel(state: State) -> DevicePanel:
    (found,) = panels(state)
    return found


def sizes(panel: DevicePanel) -> dict[str, int]:
    return {layer.name: layer.size for layer in panel.layers if layer.name not in ("free", "others")}


def test_the_import_of_another_framework_loses_nothing_of_tensorflow() -> None:
    growth = events.PoolGrowth(t=2.15, pid=PID, device="GPU:0", at=2.1, before=0, after=1026 * MIB)
    before, after = seen(TENSORFLOW, [growth]), seen(TENSORFLOW, [growth, s.hook(2.2, PID)])
    assert the_account(after) == the_account(before) and allocators(after) == allocators(before)
    hooked = after.processes[PID].hooked
    assert hooked is not None and hooked.effective and list(hooked.pools["GPU:0"].growths) == [growth]


def test_outside_is_only_what_has_no_name() -> None:
    account = the_account(seen(TENSORFLOW, OTHERS))
    assert account.by_framework == HELD
    assert account.context is not None and account.outside is not None
    assert account.context + account.outside == 600 * MIB
    without = the_account(seen(TENSORFLOW))
    assert without.outside == account.outside + sum(HELD.values())


def test_the_parts_add_up_in_the_text() -> None:
    lines = account_lines(seen(TENSORFLOW, OTHERS))
    text = "\n".join(lines)
    assert "JAX" in text and "1.0 GiB in use" in text
    shares = {line.split()[0]: line.split()[1] for line in lines if line.startswith("  ")}
    assert (shares["PyTorch"], shares["CuPy"], shares["RMM"]) == ("514.0", "256.0", "60.0")
    assert "PyTorch holds 514.0 MiB" in text


def test_readings_that_do_not_fit_into_the_total_are_of_another_moment() -> None:
    state = seen(TENSORFLOW, OTHERS)
    grown = s.framework(3.1, PID, JAX, 8 * GIB, 9 * GIB)
    for event in (grown, s.device_reading(4.0, {PID: TOTAL})):
        apply(state, event)
    assert the_account(state).by_framework == HELD


def test_each_is_a_layer_of_the_bar_and_of_the_graph() -> None:
    panel = the_panel(seen(TENSORFLOW, OTHERS))
    expected = {"in use": 1024 * MIB, "cached": 2 * MIB, **{name.title: size for name, size in HELD.items()}}
    assert sizes(panel) == {**expected, "context+outside": 600 * MIB}
    assert panel.limit is None and panel.kinds == GPU_LAYERS
    (sample,) = s.columns(panel.history, 1.0, 1, 3.0)
    assert sample is not None
    then = at_moment(panel, 3.0, sample)
    assert sizes(then) == sizes(panel)


@pytest.mark.parametrize("name", [JAX, PYTORCH])
def test_one_alone_on_the_card_is_shown_as_tensorflow_is(name: FrameworkName) -> None:
    alone: list[events.Event] = [s.framework(2.2, PID, name, 3 * GIB, 4 * GIB, peak=3 * GIB, limit=60 * GIB)]
    state = seen(alone, total=4 * GIB + 500 * MIB)
    panel = the_panel(state)
    assert sizes(panel) == {"in use": 3 * GIB, "cached": GIB, "context+outside": 500 * MIB}
    assert (panel.limit, panel.peak) == (60 * GIB, 3 * GIB)
    account = the_account(state)
    assert (account.context, account.outside, account.by_framework) == (500 * MIB, 0, {name: 4 * GIB})
    assert state.run is not None and state.run.limit_on["GPU 0"] == 60 * GIB


def test_one_without_figures_is_a_row_and_nothing_else() -> None:
    state = seen(TENSORFLOW, [s.framework(2.2, PID, JAX, None, None)])
    assert [row.device for row in allocators(state)] == ["GPU:0", "JAX:0"]
    assert the_account(state).by_framework == {} and "JAX" not in sizes(the_panel(state))


def test_one_on_a_card_that_nvml_does_not_know_is_on_none() -> None:
    state = seen(TENSORFLOW, [s.framework(2.2, PID, JAX, GIB, GIB, uuid="GPU-7")])
    assert allocators(state)[-1].gpu is None and the_account(state).by_framework == {}


def test_what_has_ended_holds_nothing_more() -> None:
    state = seen(TENSORFLOW, OTHERS)
    for event in (
        events.HookEnd(t=4.0, pid=PID, reason=events.HookEnding.EXIT),
        s.allocator(4.0, PID, 0, pool=0),
        s.device_reading(4.1, {PID: 300 * MIB}),
    ):
        apply(state, event)
    assert not {layer.kind for layer in the_panel(state).layers} & {LayerKind.JAX, LayerKind.CUPY}
    assert the_account(state).by_framework == HELD  # the account before


def test_the_series_of_the_metrics_add_up() -> None:
    found = {
        (sample.name.removeprefix("tfmemtop_"), sample.labels.get("device", "")): sample.value
        for family in families(seen(TENSORFLOW, OTHERS))
        for sample in family.samples
    }
    assert found["in_use_bytes", "PyTorch:0"] == 512 * MIB and found["peak_bytes", "JAX:0"] == 1025 * MIB
    assert found["limit_bytes", "JAX:0"] == 60 * GIB and ("peak_bytes", "CuPy:0") not in found
    pools = sum(size for (name, _), size in found.items() if name == "pool_bytes")
    assert pools + found["context_bytes", ""] + found["outside_bytes", ""] == TOTAL
    assert found["process_total_bytes", ""] == TOTAL


def test_a_page_to_share_has_the_layers_that_are_there() -> None:
    def place_of(*streams: list[events.Event]) -> PagePlace:
        (place,) = places(seen(*streams))
        return place

    place, plain = place_of(TENSORFLOW, OTHERS), place_of(TENSORFLOW)
    newest = {layer.name: layer.bytes[-1] for layer in place.layers}
    assert {name.title: newest[name.title] for name in HELD} == {name.title: size for name, size in HELD.items()}
    assert not {layer.name for layer in plain.layers} & {name.title for name in HELD}


def test_all_four_beside_tensorflow_on_an_h100_are_named_while_it_runs() -> None:
    """Figures of the frameworks themselves. What has no name are kernels."""
    stream = [event for event in recording.read(RECORDINGS / "h100-frameworks.jsonl").events() if event.t < 14.0]
    state = s.fold(stream)
    (account,) = [account for pid in state.processes for account in accounts(state, pid) if account.pools]
    sizes = {JAX: 1026 * MIB, PYTORCH: 768 * MIB, CUPY: 256 * MIB, RMM: 256 * MIB}
    assert account.by_framework == sizes and account.total == 3976 * MIB
    assert account.context_exact and account.outside is not None and account.outside < 0.04 * account.total
    (named,) = [held.finding for held in review(stream).held if isinstance(held.finding, OtherPools)]
    assert named.holder == "JAX, PyTorch, CuPy, RMM"
