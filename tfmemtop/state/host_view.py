"""The host's memory shown as a device, for a run without a pool. Pure."""

from tfmemtop.state.history import History
from tfmemtop.state.model import State
from tfmemtop.state.views import DevicePanel, Layer, LayerKind, Share, host_memory


def host_panel(state: State) -> DevicePanel | None:
    """Return a panel of the host's memory: the run's processes, others, and free; ``None`` without a run or a reading.

    Memory that processes share is counted for each of them. So with several processes the script's layer may be too
    large. It is never more than the used memory of the host.
    """
    host = host_memory(state)
    run = state.run.run if state.run else None
    mine = [process for process in state.processes.values() if process.seen.run == run and not process.gone]
    held = [process.rss for process in mine if process.rss is not None]
    if run is None or not held or host.used is None or host.total is None:
        return None
    script = min(sum(held), host.used)
    layers = (
        Layer(LayerKind.REST, Share.SCRIPT, script),
        Layer(LayerKind.OTHERS, Share.OTHERS, host.used - script),
        Layer(LayerKind.FREE, Share.FREE, max(0, host.total - host.used)),
    )
    return DevicePanel(
        key="host",
        gpu=None,
        reading=None,
        host=host,
        capacity=host.total,
        used=host.used,
        layers=layers,
        limit=None,
        peak=None,
        history=History(),
        kinds=(),
    )
