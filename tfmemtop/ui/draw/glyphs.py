"""The characters to draw with, in one place.

In ASCII the screen's last filter replaces them by ``charset.to_ascii``, where each has a character of its own.
"""

FILL = {
    **{"in_use": "█", "cached": "▓", "rest": "▒", "others": "░", "free": "·"},
    **{"jax": "▞", "pytorch": "▚", "cupy": "▤", "rmm": "▥"},
}
"""By kind of layer."""
ENDS = "▐", "▌"
RUN_MARKS = "●", "○"
"""The marks of the first and the second of two runs."""
LINE, LIMIT_MARK, LIMIT_LINE = "─", "▏", "╌"
GROUND = "▁"
"""Memory that is too little to have a height."""
MARK, CURSOR = "┊", "│"
"""A moment in a graph, and the chosen one, drawn through the blank cells of its column."""
STEPS, TICK, FAILED_MARK = "•", "╵", "×"
HERE = "▸"
"""The row under the cursor."""
RUNNING, ENDED = "●", "■"
DOT, UP, DOWN, MORE, ELLIPSIS = "·", "▲", "▼", "▾", "…"
ARROWS = UP + DOWN
"""The keys that move a cursor up and down."""
BRANCH, LAST_BRANCH, TRUNK = "├─ ", "└─ ", "│  "
