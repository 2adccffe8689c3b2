"""COUNT processes that each report as a hook does, all from the same moment on, for SECONDS; without TensorFlow.

Each writes to the folder RESULTS how many figures it has sent, how many were dropped for lack of room, and the longest
time that sending one took, in microseconds of CPU. Elapsed time would not do: with so many processes for each core, a
process also waits for the core. The connection is the hook's own; the loop is written like the hook's.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from tfmemtop.agent.messenger import Messenger

INTERVAL_S = 0.1


def report(number: int, seconds: float, results: Path, go: int) -> None:
    """Report as one process."""
    messenger = Messenger(os.environ["TFMEMTOP_SOCKET"], lambda error: False, lambda: None)
    link = messenger.link
    os.read(go, 1)  # until the first process closes the pipe
    interval_s, offered, longest, told = INTERVAL_S, 0, 0.0, 0
    messenger.send("hook_error", text=f"crowd {number}")  # a message that must not be lost
    messenger.send("effective", device="CPU:0", physical=None, uuid=None, growth=None, limit=1 << 30, allocator="bfc")
    end = time.monotonic() + seconds
    due = time.monotonic() + random.uniform(0, interval_s)
    while (now := time.monotonic()) < end:
        time.sleep(max(0.0, min(due, end) - now))
        due = max(due + interval_s, time.monotonic())
        began = time.thread_time()
        link.pump()
        figures = {"in_use": offered, "peak": offered, "pool": 1 << 20, "limit": 1 << 30}
        messenger.offer("allocator", device="CPU:0", allocator="cpu", **figures)
        longest = max(longest, time.thread_time() - began)
        offered += 1
        for packet in link.listen():
            message = json.loads(packet)
            if message["do"] == "pace":
                interval_s, told = max(INTERVAL_S, message["interval_s"]), told + 1
    while link.waiting:
        link.pump()
        time.sleep(0.01)
    counts = {"offered": offered, "dropped": link.dropped, "longest_us": longest * 1e6, "told": told}
    messenger.goodbye()
    (results / f"{os.getpid()}.json").write_text(json.dumps(counts))


def main() -> None:
    """Fork all processes, let them begin, and wait for them."""
    count, seconds, results = int(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3])
    waiting, go = os.pipe()
    pids = []
    for number in range(count):
        pid = os.fork()
        if pid == 0:
            os.close(go)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            report(number, seconds, results, waiting)
            os._exit(0)
        pids.append(pid)
    os.close(go)
    for pid in pids:
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
