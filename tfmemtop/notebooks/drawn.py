"""What a notebook is told of its session."""

import msgspec


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """``text`` are lines. The others are the newest run's memory in bytes, in columns of ``width_s`` seconds.

    ``None`` stands for a column before the first reading. ``ran_out_s`` are the seconds at which memory ran out.
    With ``error`` there is nothing else.
    """

    text: list[str] = []
    width_s: float = 0.0
    in_use: list[int | None] = []
    pool: list[int | None] = []
    total: list[int | None] = []
    limit: int | None = None
    ran_out_s: list[float] = []
    error: str = ""
