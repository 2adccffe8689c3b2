"""The bar of a replay: one line with its speed, its position and its keys."""

from textual import events

from tfmemtop.experiments.session.replay import ReplaySource
from tfmemtop.ui.draw.lines import Line, Panel, segments, width_of
from tfmemtop.ui.draw.palette import BOLD, DIM, GOOD, KEY, PLAIN, RULE, UNICODE, WARNING, Glyphs
from tfmemtop.ui.keys import on_the_key
from tfmemtop.units import counted, format_duration

_SHORTEST_TRACK = 10
_KEYS = ((", .", "step"), ("← →", "5 s"), ("Home End", "seek"), ("< >", "speed"))


class ReplayBar(Panel):
    """The bar of a :class:`ReplaySource`. A click on its track seeks."""

    DEFAULT_CSS = "ReplayBar { height: 1; }"

    def __init__(self, source: ReplaySource, *, glyphs: Glyphs = UNICODE) -> None:
        super().__init__(glyphs=glyphs)
        self.source = source
        self._track = range(0)  # cells of the track

    def build(self, width: int, height: int) -> list[Line]:
        source = self.source
        playing, paused = (">", "||") if self.glyphs.ascii else ("▶", "▮▮")
        left = segments(
            (
                (f" {paused if source.paused else playing} {source.speed:g}× ", BOLD),
                (f"{format_duration(source.position_s)} ", PLAIN),
            )
        )
        right = segments([(f" {format_duration(source.length_s)}", PLAIN)])
        if source.seeking and source.position_s > 0:
            right += segments([(f"  seeking {100 * source.folded_s / source.position_s:.0f}%", WARNING)])
        elif source.at_end:
            right += segments([("  at the end", DIM)])
        if source.damaged:
            right += segments([(f"  {counted(source.damaged, 'damaged line')} left out", WARNING)])
        play = "play again" if source.at_end else "play" if source.paused else "pause"
        for key, word in (("Space", play), *_KEYS):
            more = segments([("  ", PLAIN), (on_the_key(key, self.glyphs), KEY), (f" {word}", PLAIN)])
            if width_of(left) + _SHORTEST_TRACK + width_of(right) + width_of(more) <= width:
                right += more
        start = width_of(left)
        self._track = range(start, max(start, width - width_of(right) - 1))
        share = min(1.0, source.position_s / source.length_s) if source.length_s else 1.0
        return [[*left, *self._draw_track(len(self._track), share), *right]]

    def _draw_track(self, width: int, share: float) -> Line:
        if width < 1:
            return []
        at = round(share * (width - 1))
        done, mark, rest = ("=", "o", "-") if self.glyphs.ascii else ("━", "●", "─")
        return segments([(done * at, GOOD), (mark, BOLD), (rest * (width - 1 - at), RULE)])

    def on_click(self, event: events.Click) -> None:
        if event.x in self._track and len(self._track) > 1:
            self.source.seek(self.source.length_s * (event.x - self._track.start) / (len(self._track) - 1))
