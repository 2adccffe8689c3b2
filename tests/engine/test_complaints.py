"""The log of a session stays bounded, however much a driver writes into it."""

import os
from pathlib import Path

from tfmemtop.engine.stream.complaints import LONGEST, shorten


def test_a_log_keeps_its_beginning_and_its_end_and_those_who_write_go_on(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    shorten(log)
    assert not log.exists()
    driver = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(driver, b"the first error\n")
    for number in range(3):
        shorten(log)
        assert log.stat().st_size <= LONGEST
        for line in range(40_000):
            os.write(driver, b"%d: a line of %d, which comes again and again\n" % (line, number))
        assert log.stat().st_size > LONGEST
    shorten(log)
    os.write(driver, b"the last error\n")
    os.close(driver)
    kept = log.read_bytes()
    assert kept.startswith(b"the first error\n0: a line of 0,")
    assert kept.endswith(b"\n39999: a line of 2, which comes again and again\nthe last error\n")
    assert kept.count(b"\n[...]\n") == 1 and len(kept) <= LONGEST
