"""Windows of allocations are opened for findings even if no screen is connected."""

import asyncio
from typing import Any

import pytest

from tests import streams as s
from tests import windows as w
from tests.findings.situations import begin, effective, reading
from tests.patience import PATIENCE_S
from tfmemtop import events
from tfmemtop.engine.sources import windows
from tfmemtop.engine.sources.windows import FindingWindows
from tfmemtop.engine.stream import Stream
from tfmemtop.findings.rules.leaks import WindowWishes


@pytest.mark.parametrize("first", [w.step(1).done(t=4.0, opened=events.Opened.START), w.census(t=4.0)])
async def test_a_leak_has_a_window_opened_though_nobody_looks(
    first: events.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "LOOK_S", 0.01)
    stream, sent = Stream(), asyncio.Queue[tuple[int, dict[str, Any]]]()

    following = FindingWindows(stream, lambda pid, command: sent.put_nowait((pid, command)))
    following.begin()
    rise = [reading(5.0 + i, s.GIB + i * s.MIB, pool=2 * s.GIB) for i in range(240)]
    try:
        for event in [*begin(), effective(True), first, *rise]:
            stream.publish(event)
        assert await asyncio.wait_for(sent.get(), PATIENCE_S) == (100, {"do": "holders", "finding": True})
        assert sent.empty()
    finally:
        following.close()


async def test_a_failure_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> list[int]:
        raise ValueError("on purpose")

    monkeypatch.setattr(windows, "LOOK_S", 0.01)
    monkeypatch.setattr(WindowWishes, "due", fails)
    stream, told = Stream(), asyncio.Queue[events.Notice]()
    stream.listen(lambda event: told.put_nowait(event) if isinstance(event, events.Notice) else None)

    following = FindingWindows(stream, lambda *_: None)
    following.begin()
    stream.publish(w.step(1).done(t=4.0, opened=events.Opened.START))
    notice = await asyncio.wait_for(told.get(), PATIENCE_S)
    assert notice.kind is events.NoticeKind.FINDINGS_WITHOUT_WINDOWS
    assert notice.detail == "ValueError: on purpose" and told.empty()
