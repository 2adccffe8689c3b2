"""The line in the output of a script whose engine has ended before the script."""

import signal

from tfmemtop.engine.process.keeper import farewell


def test_a_signal_without_a_name_is_told_by_its_number() -> None:
    assert (
        farewell(-(signal.SIGRTMIN + 1)) == f"[tfmemtop was ended by signal {signal.SIGRTMIN + 1}; the script goes on]"
    )


def test_an_engine_that_failed_by_itself_is_told() -> None:
    assert farewell(1) == "[tfmemtop has failed; the script goes on]"
