"""The dialog that asks whether Jupyter should restart a kernel now."""

from tfmemtop.notebooks.origin import starts_are_told_apart
from tfmemtop.notebooks.server import Server
from tfmemtop.session.next_run import NextRun
from tfmemtop.ui.draw.palette import Glyphs
from tfmemtop.ui.screens.dialog import Option, OptionsDialog
from tfmemtop.words import kernels as words
from tfmemtop.words.settings import SCRIPTS_OWN, chosen


def kernel_dialog(server: Server | None, connection: str, upcoming: NextRun, glyphs: Glyphs) -> OptionsDialog[bool]:
    """Return the dialog that asks whether *server* should restart the kernel with the connection file *connection*.

    Without a server, the dialog explains what the user must do.
    """
    apart = starts_are_told_apart(connection)
    text = [words.hold_from_restart(chosen(upcoming.settings) or [SCRIPTS_OWN], apart=apart)]
    options = [Option("stay", value=False, description=words.STAYS, key="n")]
    if server is None:
        text.append(words.NO_SERVER)
    else:
        options.insert(0, Option("restart", value=True, description=words.asks(server.url), key="r"))
    return OptionsDialog(words.TITLE, options, text=text, glyphs=glyphs)
