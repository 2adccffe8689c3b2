"""The host's memory as a device: what a run without a pool takes. Pure."""

from tfmemtop.state.history import History
from tfmemtop.state.model import State
from tfmemtop.state.views import DevicePanel, Layer, LayerKind, Share, host_memory


def host_panel(state: State) -> DevicePanel | None:
    """The run's processes, others and what is free of the host's memory; ``None`` without a run, or a reading.

    What processes share is counted for each of them: of several processes the script's layer may be too large. It is
    never more than what the host uses.
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
