"""What the keys that change something do: the next run's settings, relaunching, leaving, dialogs."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tfmemtop import events
from tfmemtop.options import Outcome
from tfmemtop.state import apply
from tfmemtop.state.model import RunState
from tfmemtop.state.views import processes
from tfmemtop.ui.details import DetailsScreen
from tfmemtop.ui.dialog import InputDialog, Option, OptionsDialog
from tfmemtop.ui.help import HelpDialog
from tfmemtop.ui.next_run import NextRun, lacked, limit_suggestions, whole_memory
from tfmemtop.ui.runs import RunsScreen
from tfmemtop.ui.signals import SignalScreen
from tfmemtop.ui.why_screen import WhyScreen
from tfmemtop.units import format_bytes
from tfmemtop.verdicts.ending import ending

if TYPE_CHECKING:
    from tfmemtop.ui.app import TfmemtopApp

GRACE_S = 10.0
"""Between TERM and KILL."""

SIGNALLED = 128
"""As in a shell: a script ended by signal n counts as exit code 128+n."""


class Steering:
    """The app's hand on the script. It keeps the next run until it is started."""

    def __init__(self, app: "TfmemtopApp") -> None:
        self._app = app
        self._chosen: NextRun | None = None
        self._leaving = False

    @property
    def next(self) -> NextRun | None:
        """The next run: as chosen, else as the newest; ``None`` before the first."""
        run = self._app.state.run
        if self._chosen is not None:
            return self._chosen
        return NextRun(tuple(run.argv), run.settings) if run else None

    def next_words(self) -> tuple[str, ...]:
        """What the next run would do otherwise than the newest, as words."""
        run, upcoming = self._app.state.run, self.next
        return upcoming.changes(run.argv, run.settings) if run and upcoming else ()

    def choose(self, chosen: NextRun) -> None:
        """Take *chosen* for the next run."""
        self._chosen = chosen
        self._app.redraw()

    def cycle_growth(self) -> None:
        """G: growth of the next run."""
        if upcoming := self.next:
            if not self._app.state.devices:
                self._app.notify("Growth is a setting of GPUs; this machine has none. [L] limits the CPU pool.")
                return
            self.choose(upcoming.with_growth_cycled())

    def cycle_allocator(self) -> None:
        """A: allocator of the next run."""
        if upcoming := self.next:
            self.choose(upcoming.with_allocator_cycled(bool(self._app.state.devices)))

    def ask_limit(self) -> None:
        """L: a limit, typed or picked."""
        upcoming, state = self.next, self._app.state
        if upcoming is None:
            return
        whole, fits = whole_memory(state, upcoming.settings), limit_suggestions(state)
        # After an allocation failed, the limit that would have held it stands there already: Enter, and R.
        ran_out = lacked(state) is not None and upcoming.settings.memory_limit == state.runs[-1].settings.memory_limit
        what = "each GPU" if state.devices else "the CPU pool"
        self._ask(
            title="Memory limit of the next run",
            prompt=f"For {what}, of {format_bytes(whole)}: a size such as 4G or 3500M, or 50%",
            value=fits[0][0] if ran_out else _size_text(upcoming.settings.memory_limit),
            suggestions=fits,
            change=lambda text: upcoming.with_limit(text, state),
        )

    def ask_gpus(self) -> None:
        """V: which GPUs the next run may see."""
        upcoming, state = self.next, self._app.state
        if upcoming is None:
            return
        if not state.devices:
            self._app.notify("This machine has no GPU to choose.")
            return
        gpus = upcoming.settings.gpus
        each = [(str(index), f"only {device.info.name}") for index, device in state.devices.items()]
        self._ask(
            title="GPUs the next run may see",
            prompt="Numbers as on this screen, in the order TensorFlow shall have them: 0,2",
            value="" if gpus is None else ",".join(map(str, gpus)) or "none",
            suggestions=[("", "as the script and its environment say"), *each[:16], ("none", "hide every GPU")],
            change=lambda text: upcoming.with_gpus(text, state),
        )

    def ask_arguments(self) -> None:
        """E: command line and environment of the next run."""
        if upcoming := self.next:
            self._ask(
                title="Command line of the next run",
                prompt="Variables may stand before the command: BATCH=64 python train.py --epochs 3",
                value=upcoming.command_line(),
                suggestions=[],
                change=upcoming.with_command_line,
            )

    def _ask(
        self,
        *,
        title: str,
        prompt: str,
        value: str,
        suggestions: list[tuple[str, str]],
        change: Callable[[str], NextRun],
    ) -> None:
        def wrong(text: str) -> str | None:
            try:
                change(text)
            except ValueError as error:
                return str(error)
            return None

        def done(text: str | None) -> None:
            if text is not None:
                self.choose(change(text))

        dialog = InputDialog(
            title, text=[prompt], value=value, check=wrong, suggestions=suggestions, glyphs=self._app.glyphs
        )
        self._app.push_screen(dialog, done)

    def ask_relaunch(self) -> None:
        """R: start the next run; asks if the newest still goes."""
        run, upcoming = self._app.state.run, self.next
        if run is None or upcoming is None:
            self._app.notify("There is no script to relaunch: tfmemtop only watches.")
            return
        if self._app.fitting.going:
            self._app.notify("A search for the smallest limit goes on; [F] shows it, and stops it.")
            return
        command = events.Relaunch(argv=list(upcoming.argv), settings=upcoming.settings, grace_s=GRACE_S)
        if not run.going:
            self._relaunch(command)
            return
        words = " · ".join(upcoming.settings.words()) or "the script's own settings"
        alive = sum(1 for row in processes(self._app.state) if row.of_run and not row.gone)
        title = f"Run {run.run} is still running"
        ending_it = f"end it ({_count(alive, 'process', 'processes')}), then start run {run.run + 1} with {words}"
        options = [
            Option("relaunch", value=True, description=ending_it, key="r"),
            Option("stay", value=False, description="let it run", key="n"),
        ]
        note = f"It is asked to end (TERM), and killed if it has not after {GRACE_S:.0f} s."

        def done(agreed: bool | None) -> None:
            if agreed:
                self._relaunch(command)

        self._app.push_screen(OptionsDialog(title, options, text=[note], glyphs=self._app.glyphs), done)

    def _relaunch(self, command: events.Relaunch) -> None:
        self._chosen = None
        self._app.send(command)

    def ask_leave(self) -> None:
        """q: quit; asks what becomes of a running script."""
        app, run = self._app, self._app.state.run
        if not app.source.live or app.engine_gone or run is None or not run.going:
            self._leave_at_rest()
            return
        if app.options.readonly:
            app.exit(Outcome(0, left_running=True))
            return
        output = app.state.session.output_path if app.state.session else None
        identity = app.state.session.id if app.state.session else ""
        attach = f"tfmemtop attach {identity} brings the screen back"
        options = [
            Option("leave it running", value="leave", description=attach, key="l"),
            Option("stop it", value="stop", description=f"TERM, KILL after {GRACE_S:.0f} s; then quit", key="s"),
            Option("stay", value="stay", description="go on watching", key="n"),
        ]

        def done(choice: str | None) -> None:
            if choice == "stop":
                self._leaving = True
                app.send(events.Stop(grace_s=GRACE_S, quit=True))
            elif choice == "leave":
                app.send(events.Leave())
                app.exit(Outcome(0, left_running=True))

        text = [f"Its output is kept in {output}"] if output else []
        app.push_screen(OptionsDialog("The script is still running", options, text=text, glyphs=app.glyphs), done)

    def _leave_at_rest(self) -> None:
        app, run = self._app, self._app.state.run
        if app.source.live and not app.engine_gone and not app.options.readonly:
            self._leaving = True
            app.send(events.Stop(quit=True))
        else:
            app.exit(Outcome(_exit_code(run) if app.source.live else 0))

    def engine_went(self) -> None:
        """The engine closed the connection: as asked when leaving, else something to be told."""
        app = self._app
        if self._leaving:
            app.exit(Outcome(_exit_code(app.state.run)))
            return
        text = "The engine has gone; what is shown is its last picture."
        run = app.state.run
        if run and run.going:
            output = app.state.session.output_path if app.state.session else None
            text += f" The script, process {run.pid}, goes on without it" + (
                f", its output to {output}." if output else "."
            )
        elif run:
            text += f" The script {ending(run)}."
        apply(app.state, events.Notice(t=app.state.now, key="engine", level="error", text=text, remedy="[q] quits"))

    def show_details(self, pid: int) -> None:
        """Enter on a process."""
        app = self._app
        app.push_screen(DetailsScreen(lambda: app.state, pid, app.send, glyphs=app.glyphs, may_look=not app.readonly))

    def ask_signal(self, pids: list[int]) -> None:
        """k on a process, or on those tagged."""
        app = self._app
        if app.readonly:
            app.notify("Nothing can be changed from here.")
            return
        known = app.state.processes
        names = [" ".join(known[pid].seen.command) if pid in known else "" for pid in pids]

        def done(number: int | None) -> None:
            if number is not None:
                app.send(events.Signal(pids=list(pids), signal=number))

        app.push_screen(SignalScreen(pids, names, glyphs=app.glyphs), done)

    def show_help(self) -> None:
        """F1."""
        self._app.push_screen(HelpDialog(self._app.keys, glyphs=self._app.glyphs))

    def show_why(self) -> None:
        """W; the key of a remedy pressed there does what it does on the screen."""
        app = self._app

        def done(pressed: str | None) -> None:
            action = next((key.action for key in app.keys if key.shown == pressed), None)
            if action:
                app.run_worker(app.run_action(action), name="remedy")

        app.push_screen(WhyScreen(lambda: app.state, glyphs=app.glyphs), done)

    def show_runs(self) -> None:
        """H."""
        self._app.push_screen(RunsScreen(self._app), lambda _: self._app.redraw())


def _exit_code(run: RunState | None) -> int:
    if run is None or run.going:
        return 0
    return SIGNALLED + run.signal if run.signal is not None else run.exit_code or 0


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _size_text(size: int | None) -> str:
    return "" if size is None else f"{size // 2**20}M"
