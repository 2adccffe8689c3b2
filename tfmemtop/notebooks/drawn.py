"""What a notebook receives about its session."""

import msgspec


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """Text and curves for ``%memtop``.

    ``text`` are lines. ``in_use``, ``pool`` and ``total`` are the newest run's memory in bytes, one value for each
    ``width_s`` seconds; ``None`` stands for the time before the first reading. ``limit`` is bytes. ``ran_out_s`` are
    the times, in seconds since the run's start, at which memory ran out. If ``error`` is set, all other fields are
    empty.
    """

    text: list[str] = []
    width_s: float = 0.0
    in_use: list[int | None] = []
    pool: list[int | None] = []
    total: list[int | None] = []
    limit: int | None = None
    ran_out_s: list[float] = []
    error: str = ""
