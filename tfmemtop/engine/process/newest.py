"""The newest output that waits for a slow reader. The keeper uses this, so it imports little."""


class Newest:
    """Bytes of output, in order. If more than *most* wait, only the last *kept* of them stay, from a line's start."""

    def __init__(self, most: int, kept: int) -> None:
        self._most = most
        self._kept = kept
        self._bytes = bytearray()
        self._skipped = 0

    def __len__(self) -> int:
        return len(self._bytes)

    def push(self, data: bytes | bytearray) -> None:
        """Add *data* at the end."""
        self._bytes += data
        if len(self._bytes) > self._most:
            self._skip()

    def take(self, count: int) -> tuple[int, bytes]:
        """Remove the first bytes, at most *count*. Return how many were left out before them, and the bytes.

        Who has missed output already gets the newest.
        """
        if self._skipped and len(self._bytes) > self._kept:
            self._skip()
        skipped, self._skipped = self._skipped, 0
        taken = bytes(self._bytes[:count])
        del self._bytes[:count]
        return skipped, taken

    def _skip(self) -> None:
        cut = len(self._bytes) - self._kept
        line = self._bytes.find(b"\n", cut, cut + self._kept // 4)
        if line >= 0:
            cut = line + 1
        while cut < len(self._bytes) and self._bytes[cut] & 0xC0 == 0x80:
            cut += 1  # not in the middle of a character
        del self._bytes[:cut]
        self._skipped += cut
