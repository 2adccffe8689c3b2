"""In each process XLA writes its reports to a separate folder, and the script sees no change."""

from pathlib import Path

from tests.hooked import Monitor, outcome, start

LOOK = """
import ctypes, os
{change}
before = os.environ["XLA_FLAGS"]
import tensorflow
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
print(os.environ["XLA_FLAGS"] == before, os.getpid(), getenv(b"XLA_FLAGS").decode(), flush=True)
if os.fork() == 0:
    print(os.environ["XLA_FLAGS"] == before, os.getpid(), getenv(b"XLA_FLAGS").decode(), flush=True)
    os._exit(0)
os.wait()
"""
CHANGES = {
    "os.environ['XLA_FLAGS'] += ' --xla_added=1'": True,
    "os.environ['XLA_FLAGS'] = '--xla_mine=1'": False,
}


def test_the_number_of_the_process_is_in_the_path(monitor: Monitor, tmp_path: Path) -> None:
    """All scripts run at the same time: most of their time goes into the import of TensorFlow."""
    flags = {"XLA_FLAGS": f"--xla_dump_to={tmp_path}/0 --xla_users=a'b c'", "TFMEMTOP_XLA": str(tmp_path)}
    started = {}
    for number, change in enumerate(CHANGES):
        path = tmp_path / f"{number}.py"
        path.write_text(LOOK.format(change=change))
        started[change] = start(monitor, str(path), **flags)
    refused = set()
    for change, process in started.items():
        done = outcome(process)
        assert done.code == 0, done.err
        for line in done.out.splitlines():
            unchanged, pid, seen = line.split(" ", 2)
            assert unchanged == "True"
            if CHANGES[change]:
                assert seen.startswith(f"--xla_dump_to={tmp_path}/{pid} --xla_users=a'b c' --xla_added=1")
            else:
                assert seen == "--xla_mine=1"
                refused.add(int(pid))
    told = {event["pid"] for event in monitor.events if event["type"] == "xla_cluster"}
    assert told <= refused and len(told) == 1
    assert all(event["missing"] == "scripts_flags" for event in monitor.events if event["type"] == "xla_cluster")
