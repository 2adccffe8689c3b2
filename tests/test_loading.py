"""What the rooms may load. Which rooms may import which is checked by import-linter (pyproject.toml)."""

import subprocess
import sys
from pathlib import Path

import pytest

STARTED_WITHOUT = ("textual", "rich", "asyncio", "psutil", "pynvml")

PACKAGE = Path(__file__).parents[1] / "tfmemtop"


def test_the_hooks_folder_offers_no_other_name() -> None:
    assert [path.name for path in (PACKAGE / "inject").iterdir() if path.name != "__pycache__"] == ["sitecustomize.py"]


@pytest.mark.programs
@pytest.mark.parametrize(
    ("program", "forbidden"),
    [
        ("from tfmemtop.cli.main import main; main(['--help'])", STARTED_WITHOUT),
        ("from tfmemtop.cli.main import main; main(['--version'])", STARTED_WITHOUT),
        ("from tfmemtop.cli.main import main; main(['--once'])", ("textual", "rich")),
        # before the script starts
        ("import tfmemtop.cli.live", ("textual", "rich", "asyncio", "tfmemtop.findings.judgement", "tfmemtop.state")),
        (
            "import tfmemtop.engine.main, tfmemtop.cli.record",
            ("textual", "rich", "tensorflow", "tfmemtop.engine.metrics"),
        ),
        ("import tfmemtop.engine.metrics", ("tfmemtop.findings", "tfmemtop.state", "prometheus_client")),
        ("import tfmemtop.engine.process.keeper", ("msgspec", "asyncio", "subprocess")),
        (
            "import tfmemtop.ui.main",
            ("tensorflow", "pynvml", "psutil", "markdown_it", "linkify_it", "pygments", "pyte"),
        ),
        ("import tfmemtop.state, tfmemtop.findings", ("textual", "rich", "pynvml", "psutil")),
    ],
)
def test_what_is_not_needed_is_not_loaded(program: str, forbidden: tuple[str, ...]) -> None:
    check = f"{program}\nimport sys\nprint([name for name in {forbidden!r} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"
