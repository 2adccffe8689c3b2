"""The error texts for a choice for the next run that is not possible, in one sentence. Pure."""

from tfmemtop.session.not_chosen import NoChoice, NotChosen

_TEXTS = {
    NoChoice.NO_LIST: "{text!r} is not a list of GPUs; give one such as 0,2, or none",
    NoChoice.NO_GPU: "there is no GPU {text}; {there}",
    NoChoice.UNREADABLE: "the command line cannot be read: {text}",
    NoChoice.NO_COMMAND: "there is no command",
}


def not_chosen(error: NotChosen) -> str:
    """Return what is wrong with the choice, and what to give instead."""
    there = f"choose from {', '.join(map(str, error.there))}" if error.there else "this machine has none"
    return _TEXTS[error.why].format(text=error.text, there=there)
