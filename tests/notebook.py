"""Real kernels of the kernelspec that ``tfmemtop kernel install`` writes, through Jupyter's own client."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S, until
from tests.starting import PROGRAM
from tfmemtop.engine.stream.folders import SessionInfo, sessions


class Notebook:
    """A running kernel of the kernelspec *name*. *start* are the arguments for its start.

    Its connection file is *connection*, or one that Jupyter names.
    """

    def __init__(self, name: str = "tfmemtop", connection: str = "", **start: Any) -> None:
        from jupyter_client.manager import KernelManager

        self.manager = KernelManager(kernel_name=name, connection_file=connection)
        self.manager.start_kernel(**start)
        self.client = self._connect()

    def _connect(self) -> Any:
        client = self.manager.blocking_client()
        client.start_channels()
        client.wait_for_ready(timeout=PATIENCE_S)
        return client

    @property
    def pid(self) -> int:
        """The process that the manager started."""
        pid: int = self.manager.provisioner.process.pid
        return pid

    def restart(self) -> None:
        """Restart the kernel, as Jupyter's button does."""
        self.client.stop_channels()
        self.manager.restart_kernel()
        self.client = self._connect()

    def run(self, cell: str, printed: Callable[[], None] = lambda: None) -> str:
        """Run *cell*. Return what it printed, and the exception that it raised. *printed* is called when it prints."""
        said: list[str] = []

        def hear(message: dict[str, Any]) -> None:
            content = message["content"]
            if message["msg_type"] == "stream":
                said.append(content["text"])
                printed()
            elif message["msg_type"] in ("execute_result", "display_data"):
                said.append(content["data"].get("text/plain", "") + "".join(sorted(content["data"])))
            elif message["msg_type"] == "error":
                said.append(f"{content['ename']}: {content['evalue']}")

        self.client.execute_interactive(cell, output_hook=hear, timeout=PATIENCE_S)
        return "".join(said)

    def session(self) -> SessionInfo:
        """Wait for the session of this kernel, and return it."""
        found: SessionInfo = until(lambda: next((each for each in sessions() if each.kernel == self.pid), None))
        return found

    def end(self, *, now: bool = False) -> None:
        """End the kernel; with *now*, without waiting for it to end by itself."""
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=now)


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with all of Jupyter's own folders, and with the kernelspec installed."""
    pytest.importorskip("ipykernel")
    home = tmp_path_factory.mktemp("jupyter")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_DATA_DIR", str(home / "data"))
        patch.setenv("JUPYTER_RUNTIME_DIR", str(home / "runtime"))
        patch.setenv("JUPYTER_CONFIG_DIR", str(home / "config"))
        patch.setenv("IPYTHONDIR", str(home / "ipython"))
        patch.setenv("XDG_STATE_HOME", str(home / "state"))
        patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        subprocess.run([PROGRAM, "kernel", "install"], check=True, timeout=PATIENCE_S)
        yield home
