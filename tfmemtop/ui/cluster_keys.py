"""Every key of the cluster screens, in one table. Those of a session's screens are in ``ui/keys.py``."""

from tfmemtop.ui.keys import Key

KEYS: tuple[Key, ...] = (
    Key("f1,question_mark,h", "F1", "help", "all keys", "help"),
    Key("enter", "Enter", "", "open the GPU: its memory, its history, what is found", "open", "cluster"),
    Key(
        "slash,f4",
        "/",
        "",
        "filter; job:42, user:ada, host:node3, rank:7, wrong:leak look in one column",
        "filter",
        "cluster",
    ),
    Key("full_stop,comma,f6", ".", "", "sort by the next column, with a comma by the one before", "sort", "cluster"),
    Key("I", "I", "", "the other way round", "invert", "cluster"),
    Key("r,f5", "r", "refresh", "ask Prometheus now", "refresh"),
    Key("left_square_bracket", "[", "screen.span(-1)", "a shorter time", group="gpu"),
    Key("right_square_bracket", "]", "screen.span(1)", "a longer time", group="gpu"),
    Key("w", "w", "screen.whole", "the whole run, as far as it has been read", group="gpu"),
    Key("s", "s", "screen.scale", "scale auto, pinned, whole card, by in use", group="gpu"),
    Key("S", "S", "picture", "write the picture of the screen into a file, as SVG or text"),
    Key("q,f10", "q", "leave", "quit; of an opened GPU, go back", "quit"),
)
