"""Copies the regions and chunks of pools to files in the session's folder, from which the engine makes maps."""

from time import thread_time
from typing import Any, Optional

from .direct import Direct, NoCopy
from .memory import Sheet
from .messenger import Messenger

LIVE, OUT_OF_MEMORY = "live", "out_of_memory"
"""The moments at which pools are copied. Each has a file of its own, so that neither overwrites the other."""


class ChunkCopies:
    """Makes copies, and reports them to the engine. All of it runs in the sampler's thread."""

    def __init__(self, messenger: Messenger, folder: Optional[str]) -> None:
        """*folder* is the session's; ``None`` if it is not known in this process."""
        self._messenger = messenger
        self.folder = folder
        self._sheets: dict[tuple[str, str], Sheet] = {}

    def make(
        self, direct: Direct, device: str, place: "tuple[int, int]", moment: str
    ) -> "tuple[Optional[dict[str, Any]], float]":
        """Copy the regions and chunks of a pool; return what is to be told of the copy, and its cost in seconds.

        The first is ``None`` if the pool changed during the copy.

        Raises:
            NoCopy: there is no folder or no room for the copy, or the pool has too many chunks.
        """
        if self.folder is None:
            raise NoCopy("no_folder")
        sheet = self._sheets.get((device, moment))
        if sheet is None:
            path = f"{self.folder}/{self._messenger.pid}.{device}.{moment}.chunks"
            sheet = self._sheets[device, moment] = Sheet(path)
        began = thread_time()
        try:
            copied = direct.cut(*place, sheet)
        except OSError as error:
            raise NoCopy("no_room", None, error.strerror or str(error)) from None
        cost = thread_time() - began
        return copied and {"device": device, "moment": moment, "cost_us": int(cost * 1e6), **copied}, cost

    def tell(self, copied: "dict[str, Any]", wanted: "list[list[Any]]") -> None:
        """Report a copy.

        *wanted* lists pairs: a region's address, ``None`` for all regions, and the seconds until its next map.
        """
        # A report of the moment when memory ran out must arrive. A live one may be dropped, as a newer one follows.
        say = self._messenger.offer if copied["moment"] == LIVE else self._messenger.send
        say("chunks", wanted=wanted, **copied)

    def close(self) -> None:
        """Release the memory; the files stay, for the engine to read."""
        for sheet in self._sheets.values():
            sheet.close()
