"""Threads and event loops, and how they end."""

from tests.tools.corpus.script import Script, py

SCRIPTS: tuple[Script, ...] = (
    py("thread-daemon-at-exit", "daemon threads that print as it ends", """
import threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("end")
""", live=True, quick=True),
    py("thread-waited-for", "a thread outlives the main one", """
import threading, time
def late():
    time.sleep(0.2)
    print("late")
threading.Thread(target=late).start()
print("main ends")
"""),
    py("thread-fork-in-thread", "forks from a thread", """
import os, threading
def work():
    if os.fork() == 0:
        os._exit(3)
    print(os.waitstatus_to_exitcode(os.wait()[1]))
thread = threading.Thread(target=work)
thread.start(); thread.join()
""", filters=("pids",)),
    py("asyncio-subprocess", "asyncio's subprocesses", """
import asyncio
async def main():
    process = await asyncio.create_subprocess_exec("sh", "-c", "echo out; exit 5", stdout=asyncio.subprocess.PIPE)
    print(await process.communicate(), process.returncode)
asyncio.run(main())
""", live=True),
    py("asyncio-signals", "asyncio's signal handlers", """
import asyncio, os, signal
async def main():
    heard = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, heard.set)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(heard.wait(), 2)
    print("heard")
asyncio.run(main())
"""),
    py("asyncio-interrupted", "Ctrl-C in a loop", """
import asyncio, os, signal
async def main():
    asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGINT)
    try:
        await asyncio.sleep(5)
    finally:
        print("cleaned up")
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
"""),
)  # fmt: skip
