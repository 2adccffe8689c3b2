"""Processes: forks of every kind, groups, sessions, daemons, limits."""

import os
import resource
from collections.abc import Callable

from tests.tools.corpus.script import Script, py, run, sh


def _limit(kind: int, soft: int) -> Callable[[], None]:
    hard = resource.getrlimit(kind)[1]
    return lambda: resource.setrlimit(kind, (soft, hard))


def _nice(by: int) -> None:
    os.nice(by)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123
        file.write(text)


_TAIL = """
if __name__ == "__main__":
    main()
"""

_POOL = (
    """
import multiprocessing as mp, os, sys
def work(n):
    print("child", n, flush=True)
    return n * n, len(sys.argv), mp.parent_process() is not None
def main():
    context = mp.get_context("{method}")
    with context.Pool(2) as pool:
        print(sorted(pool.map(work, range(4))))
    process = context.Process(target=work, args=(9,))
    process.start(); process.join()
    print(process.exitcode)
"""
    + _TAIL
)

SCRIPTS: tuple[Script, ...] = (
    py("process-fork", "a fork that ends with a code", """
import os
pid = os.fork()
if pid == 0:
    print("child", flush=True)
    os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
""", live=True, quick=True),
    py("process-fork-exits", "a forked child that ends as Python does", """
import atexit, os, sys
atexit.register(print, "bye")
if os.fork() == 0:
    sys.exit(4)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""),
    py("process-400-forks", "four hundred forks", """
import os
codes = set()
for number in range(400):
    if os.fork() == 0:
        os._exit(number % 3)
    codes.add(os.waitstatus_to_exitcode(os.wait()[1]))
print(codes)
"""),
    py("process-nobody-else", "no child that is not its own", """
import os
try:
    os.wait()
except ChildProcessError as error:
    print(error)
"""),
    py("process-orphans-parent", "a daemon's parent is process 1, or what stands in its place", """
import os, sys, time
reading, writing = os.pipe()
if os.fork() == 0:
    middle = os.getpid()
    if os.fork() == 0:
        while os.getppid() == middle:
            time.sleep(0.005)
        os.write(writing, str(os.getppid() in (1, int(os.environ["CORPUS_INIT"]))).encode())
        os._exit(0)
    os._exit(0)
os.wait()
print(os.read(reading, 100).decode())
""", live=True, quick=True),
    py("process-daemon-stays", "a daemon outlives it", """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nowhere, number)
        time.sleep(60)
    os._exit(0)
os.wait()
print("started")
""", quick=True),
    sh("process-background-stays", "a job in the background outlives its shell", "sleep 60 >/dev/null 2>&1 & echo started", live=True,
       differs={"live": "what is left in the script's terminal keeps the terminal's holder"}),
    sh("process-prints-later", "a job that prints after its parent has ended", "(sleep 0.2; echo later) & echo first", live=True, quick=True),
    py("process-spawn", "a pool of spawned processes", _POOL.replace("{method}", "spawn"), filters=("sorted",), live=True),
    py("process-fork-pool", "a pool of forked processes", _POOL.replace("{method}", "fork"), filters=("sorted",), quick=True),
    py("process-forkserver", "a pool from a fork server", _POOL.replace("{method}", "forkserver"), filters=("sorted",)),
    py("process-pool-exit", "a pool that is never closed", """
import multiprocessing as mp
def main():
    pool = mp.get_context("spawn").Pool(2)
    print(pool.apply(abs, (-3,)))
""" + _TAIL),
    py("process-daemonic", "daemonic processes are ended at exit", """
import multiprocessing as mp, time
def main():
    mp.get_context("fork").Process(target=time.sleep, args=(60,), daemon=True).start()
    print("end")
""" + _TAIL),
    py("process-futures", "a ProcessPoolExecutor whose worker dies", """
import concurrent.futures, multiprocessing, os
def main():
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            pool.submit(os._exit, 1).result()
        except Exception as error:
            print(type(error).__name__)
""" + _TAIL),
    py("process-manager", "a manager and shared memory", """
import multiprocessing as mp
from multiprocessing import shared_memory
def main():
    with mp.get_context("spawn").Manager() as manager:
        held = manager.dict(a=1)
        print(dict(held))
    memory = shared_memory.SharedMemory(create=True, size=64)
    memory.buf[:2] = b"ok"
    print(bytes(memory.buf[:2]))
    memory.close(); memory.unlink()
""" + _TAIL),
    py("process-vfork", "posix_spawn and subprocess with their own ways to start", """
import os, subprocess, sys
pid = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 5"], os.environ)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(subprocess.run(["sh", "-c", "echo $0; exit 6"], capture_output=True))
print(os.system("exit 7"), os.popen("echo popen").read())
"""),
    py("process-env-none", "children with its environment, none, and a part", """
import os, subprocess, sys
ask = [sys.executable, "-c", "import os; print(sorted(name for name in os.environ if not name.startswith('TFMEMTOP')))"]
for environment in (None, {}, {"A": "1"}):
    print(subprocess.run(ask, env=environment, capture_output=True).stdout)
""", differs={"stdout": "PYTHONPATH is in the environment"}),
    run("process-env-i", "a cleaned environment", "env", "-i", "A=1", "{python}", "-c", "import os; print(dict(os.environ))"),
    py("process-close-fds", "children that get all descriptors", """
import os, subprocess, sys
reading, writing = os.pipe()
os.set_inheritable(writing, True)
subprocess.run(["sh", "-c", f"echo through >&{writing}; ls /proc/self/fd | wc -l"], close_fds=False)
print(os.read(reading, 100), writing)
"""),
    py("process-exec-chain", "exec five times", """
import os, sys
left = int(sys.argv[1]) if len(sys.argv) > 1 else 5
print(left, flush=True)
if left:
    os.execv(sys.executable, [sys.executable, "script.py", str(left - 1)])
sys.exit(8)
""", live=True),
    py("process-ids", "who leads the group and the session", """
import os
print(os.getpgrp() == os.getpid(), os.getsid(0) == os.getpid(), os.getpgid(os.getppid()) == os.getpgrp())
""", live=True, differs={"stdout": "`record` is not the group's leader"}),
    sh("process-setsid", "a session of its own", "setsid sh -c 'echo away; ps -o tty= -p $$ | tr -d \" \"'; echo back", live=True),
    py("process-own-group", "a group of its own in the foreground", """
import os
os.setpgid(0, 0)
print(os.getpgrp() == os.getpid())
""", differs=dict.fromkeys(("stdout", "stderr", "code"), "`record` is not the group's leader")),
    py("process-zombies", "leaves zombies and ends", """
import os, time
for _ in range(3):
    if os.fork() == 0:
        os._exit(0)
time.sleep(0.1)
print("zombies")
"""),
    py("process-orphan-code", "a child ended by its parent's end", """
import ctypes, os, signal, time
reading, writing = os.pipe()
if os.fork() == 0:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    os.write(writing, b"1")
    time.sleep(60)
os.read(reading, 1)
print("end")
"""),
    py("process-subreaper", "is a subreaper itself", """
import ctypes, os
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
if os.fork() == 0:
    if os.fork() == 0:
        os._exit(7)
    os._exit(0)
print(sorted(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(2)))
"""),
    py("process-small-stacks", "threads with 32 KiB stacks", """
import threading
threading.stack_size(32768)
threads = [threading.Thread(target=lambda: None) for _ in range(20)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(threading.stack_size())
"""),
    sh("process-nofile", "few descriptors", "ulimit -n; ulimit -Hn >/dev/null; echo end", prepare=_limit(resource.RLIMIT_NOFILE, 24), quick=True),
    sh("process-nofile-tiny", "so few that little can be opened", "ulimit -n", prepare=_limit(resource.RLIMIT_NOFILE, 10),
       differs=dict.fromkeys(("stdout", "stderr", "code"), "ten descriptors are too few for us, which is said in one line")),
    sh("process-as", "an address space of 1 GiB", "ulimit -v; echo end", prepare=_limit(resource.RLIMIT_AS, 1 << 30), quick=True),
    sh("process-fsize-0", "no file may grow", "echo to a pipe; ulimit -f", prepare=_limit(resource.RLIMIT_FSIZE, 0), quick=True),
    sh("process-nproc", "few processes", "ulimit -u; sh -c 'echo one more'", prepare=_limit(resource.RLIMIT_NPROC, 200)),
    sh("process-stack", "a small stack", "ulimit -s", prepare=_limit(resource.RLIMIT_STACK, 1 << 20)),
    sh("process-core", "no core dumps, then a crash", "ulimit -c; kill -ABRT $$", prepare=_limit(resource.RLIMIT_CORE, 0)),
    sh("process-nice", "niceness", "nice; nice -n 3 nice", prepare=lambda: _nice(5)),
    sh("process-affinity", "bound to one core", "nproc", prepare=lambda: os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])),
    sh("process-oom-score", "how ready the kernel is to kill it", "cat /proc/self/oom_score_adj", prepare=lambda: _write("/proc/self/oom_score_adj", "300")),
    sh("process-cgroup", "its cgroup", "cat /proc/self/cgroup", live=True),
    sh("process-status", "what the kernel says of it", "grep -E '^(NoNewPrivs|Seccomp|CapEff|CapBnd|Umask|Uid|Gid|Groups|Cpus_allowed|THP)' /proc/self/status", live=True),
    sh("process-personality", "personality and timer slack", "cat /proc/self/personality; cat /proc/self/timerslack_ns"),
    py("process-all-closed", "closes every descriptor and goes on", """
import os, sys
os.closerange(3, 256)
out = os.dup(1)
print(out, flush=True)
"""),
    py("process-kill-parent", "asks what its parent is called", """
import os
print(bool(open(f"/proc/{os.getppid()}/comm").read()))
"""),
    py("process-setuid", "becomes somebody else", """
import os
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
print("still here")
"""),
    py("process-pidfd", "waits by pidfd and by waitid", """
import os, select
if (pid := os.fork()) == 0:
    os._exit(2)
descriptor = os.pidfd_open(pid)
select.select([descriptor], [], [])
print(os.waitid(os.P_PIDFD, descriptor, os.WEXITED).si_status)
"""),
)  # fmt: skip
