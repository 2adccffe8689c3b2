"""The error of every command that cannot be carried out."""


class Refusal(Exception):
    """A command cannot be carried out.

    The message is one line for the user, printed to stderr after ``tfmemtop:``. ``exit_code`` is the exit code.
    """

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code
