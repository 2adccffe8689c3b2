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
    py("thread-many", "two hundred threads", """
import threading
done = []
threads = [threading.Thread(target=done.append, args=(n,)) for n in range(200)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(done) == list(range(200)), threading.enumerate()[0].name)
"""),
    py("thread-names", "names and idents", "import threading\nprint([(t.name, t.daemon) for t in threading.enumerate()], threading.main_thread().native_id == __import__('os').getpid())\n"),
    py("thread-local", "thread-local values", "import threading\nheld = threading.local()\nheld.x = 1\nthreading.Thread(target=lambda: print(hasattr(held, 'x'))).start()\n"),
    py("thread-pool", "a ThreadPoolExecutor at exit", "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(3)\nprint(list(pool.map(abs, [-1, -2])))\n"),
    py("thread-deadlock-ended", "a deadlock that an alarm ends", """
import signal, threading
signal.setitimer(signal.ITIMER_REAL, 0.2)
lock = threading.Lock()
lock.acquire()
lock.acquire()
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
    py("asyncio-run", "asyncio with tasks, a timeout, an exception", """
import asyncio
async def main():
    try:
        await asyncio.wait_for(asyncio.sleep(10), 0.05)
    except asyncio.TimeoutError:
        print("late")
    print(await asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0, 2)))
    raise KeyError("out of the loop")
asyncio.run(main())
"""),
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
    py("asyncio-never-awaited", "a coroutine nobody awaits, a task nobody keeps", """
import asyncio
async def lost():
    raise ValueError("lost")
async def main():
    asyncio.ensure_future(lost())
    lost()
    await asyncio.sleep(0.01)
asyncio.run(main(), debug=False)
""", filters=("addresses",)),
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
