"""A script that prints without end, or prints what costs a terminal most, delays neither the screen nor a key."""

import time

from tests.ui.test_output_panel import SESSION, Desk, run
from tests.ui.test_output_terminal import shown
from tfmemtop import events as ev
from tfmemtop.state import apply

FRAME_S = 2.0
"""Seconds of CPU time in which one write must be drawn, on a slow machine too. Without a bound it took minutes."""

STORMS = {
    "lines": "y\r\n",
    "long lines": "x" * 500 + "\r\n",
    "repeats": "x\x1b[9999b",
    "repeats of a wide character": "漢\x1b[9999b",
    "wide characters": "漢字",
    "accents": "e\u0301\u0302\u0303\u0304\u0305",
    "attributes": "\x1b[" + "1;38;2;1;2;3;" * 40 + "mx",
    "inserted lines": "\x1b[H\x1b[9999L",
    "deleted lines": "\x1b[H\x1b[9999M",
    "inserted characters": "\x1b[H\x1b[9999@",
    "deleted characters": "\x1b[H\x1b[9999P",
    "erased characters": "\x1b[H\x1b[9999X",
    "erasing": "\x1b[2J",
    "alternate screens": "\x1b[?1049h\x1b[?1049l",
    "insert mode": "\x1b[4hx\x1b[H",
    "tabs": "\r\t\t\t\t",
    "a title without end": "\x1b]0;" + "x" * 60_000,
    "resets": "\x1bc",
}


async def test_a_frame_takes_no_longer_whatever_is_printed() -> None:
    app, taken_s = Desk(), {}
    async with app.run_test(size=(200, 60)):
        app.take(SESSION)
        for number, (name, storm) in enumerate(STORMS.items(), 1):
            app.take(run(number))  # a new run, so that the terminal begins anew
            begun = time.thread_time()
            app.write(storm * (60_000 // len(storm)), run=number)
            taken_s[name] = time.thread_time() - begun
    assert {name: seconds for name, seconds in taken_s.items() if seconds > FRAME_S} == {}


async def test_a_flood_is_followed_at_its_newest_and_what_was_left_out_is_said() -> None:
    app, number = Desk(), 0
    async with app.run_test(size=(200, 60)) as pilot:
        app.take(SESSION, run(1))
        for _ in range(20):
            for _ in range(40):
                apply(app.state, ev.Output(t=1.0, run=1, text="".join(f"{number + n:999}\r\n" for n in range(100))))
                number += 100
            app.panel.show(app.state)
        while app.panel.behind:
            await pilot.pause()
        assert str(number - 1) in [line.strip() for line in app.lines]
        assert app.panel.terminal.scrolled_off < 2 * number / 3
        said = [text for text in shown(app.panel.terminal, 0, 5000) if "left out" in text]
        assert said and all(text.endswith(f"left out, see {SESSION.output_path}") for text in said)


async def test_what_is_left_out_of_a_run_is_not_taken_for_another() -> None:
    app = Desk()
    async with app.run_test(size=(100, 20)) as pilot:
        app.take(SESSION, run(1))
        app.write(("x" * 99 + "\r\n") * 1000)
        app.take(run(2))
        for _ in range(3):
            app.write(("x" * 99 + "\r\n") * 1000, run=2)
        app.write("the end", run=2)
        while app.panel.behind:
            await pilot.pause()
        lines = shown(app.panel.terminal, 0, 5000)
        assert [line for line in lines if "run 2" in line] == ["── run 2 ──"]
        assert any("the end" in line for line in lines)
