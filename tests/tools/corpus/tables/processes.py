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


_POOL = """
import multiprocessing as mp, os, sys
def work(n):
    print("child", n, flush=True)
    return n * n, len(sys.argv), mp.parent_process() is not None
if __name__ == "__main__":
    context = mp.get_context("spawn")
    with context.Pool(2) as pool:
        print(sorted(pool.map(work, range(4))))
    process = context.Process(target=work, args=(9,))
    process.start(); process.join()
    print(process.exitcode)
"""

SCRIPTS: tuple[Script, ...] = (
    py("process-fork", "a fork that ends with a code", """
import os
pid = os.fork()
if pid == 0:
    print("child", flush=True)
    os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
""", live=True, quick=True),
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
    py("process-spawn", "a pool of spawned processes", _POOL, filters=("sorted",), live=True),
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
    sh("process-setsid", "a session of its own", "setsid sh -c 'echo away; ps -o tty= -p $$ | tr -d \" \"'; echo back", live=True),
    sh("process-nofile", "few descriptors", "ulimit -n; ulimit -Hn >/dev/null; echo end", prepare=_limit(resource.RLIMIT_NOFILE, 24), quick=True),
    sh("process-as", "an address space of 1 GiB", "ulimit -v; echo end", prepare=_limit(resource.RLIMIT_AS, 1 << 30), quick=True),
    sh("process-fsize-0", "no file may grow", "echo to a pipe; ulimit -f", prepare=_limit(resource.RLIMIT_FSIZE, 0), quick=True),
    sh("process-nproc", "few processes", "ulimit -u; sh -c 'echo one more'", prepare=_limit(resource.RLIMIT_NPROC, 200)),
    sh("process-nice", "niceness", "nice; nice -n 3 nice", prepare=lambda: _nice(5)),
    sh("process-cgroup", "its cgroup", "cat /proc/self/cgroup", live=True),
    sh("process-status", "what the kernel says of it", "grep -E '^(NoNewPrivs|Seccomp|CapEff|CapBnd|Umask|Uid|Gid|Groups|Cpus_allowed|THP)' /proc/self/status", live=True),
)  # fmt: skip
