"""The actions of a replay's keys. They have no effect in a live session."""

from tfmemtop.experiments.session.session import Session


class ReplayActions:
    """The part of the app that controls a replay."""

    session: Session

    def action_play(self) -> None:
        if self.session.replay:
            self.session.replay.toggle_pause()

    def action_step(self, direction: int) -> None:
        if self.session.replay:
            self.session.replay.step(direction)

    def action_seek(self, seconds: float) -> None:
        if self.session.replay:
            self.session.replay.seek_by(seconds)

    def action_seek_edge(self, side: int) -> None:
        if replay := self.session.replay:
            replay.seek(replay.length_s if side > 0 else 0.0)

    def action_speed(self, step: int) -> None:
        if self.session.replay:
            self.session.replay.change_speed(step)
