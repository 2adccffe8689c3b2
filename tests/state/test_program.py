"""The words of a command line that identify the program, without the interpreter and its path."""

import pytest

from tfmemtop.state.program import program


@pytest.mark.parametrize(
    "command, shown",
    [
        ("/opt/venv/bin/python3 train.py --epochs 3", "train.py --epochs 3"),
        ("/usr/bin/python3.11 -u -X dev /home/ada/work/train.py", "train.py"),
        ("python -m trainer.task --gpus 2", "-m trainer.task --gpus 2"),
        ("python -Im trainer", "-m trainer"),
        ("python -c pass", "-c pass"),
        ("python -", "python -"),
        ("/opt/venv/bin/python3", "python3"),
        ("/usr/local/cuda/bin/nccl-test -g 2", "nccl-test -g 2"),
        ("pythonista /x/y.py", "pythonista /x/y.py"),
        ("/home/ada/run.sh train.py", "run.sh train.py"),
        ("", ""),  # a kernel's thread
    ],
)
def test_what_tells_a_program_from_others(command: str, shown: str) -> None:
    assert " ".join(program(command.split())) == shown
