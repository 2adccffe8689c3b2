"""Commands that are not Python."""

from tests.tools.corpus.script import Script, run, sh

SCRIPTS: tuple[Script, ...] = (
    run("command-true", "the smallest", "true", live=True),
    run("command-false", "code 1", "false", live=True),
    run("command-make", "make, with a target that fails", "make", "-s", files={"Makefile": "all:\n\t@echo built\n\t@exit 3\n"}, needs=("make",), live=True),
    run("command-static-itself", "a program that no loader touches", "busybox", "echo", "static", needs=("busybox",)),
    sh("command-no-shebang", "a script without a first line", "./it one", files={"it": ": begins oddly\necho ran $1\nexit 3\n"}),
    run("command-shebang", "a script with options in its first line", "./it", files={"it": "#!/bin/sh -eu\necho ran\nfalse\necho not\n"}),
    sh("command-yes-head", "yes, cut off", "yes | head -n 3", live=True, quick=True),
    sh("command-monitor", "job control without a terminal", "bash -c 'set -m; sleep 0.05 & wait; echo done'", live=True),
    sh("command-trap-err", "traps of bash", "bash -c 'trap \"echo err \\$?\" ERR; trap \"echo bye\" EXIT; false; exit 9'", live=True),
    run("command-timeout-foreground", "timeout --foreground", "timeout", "--foreground", "-s", "INT", "0.3", "sleep", "20", live=True),
    run("command-setsid-w", "setsid -w", "setsid", "-w", "sh", "-c", "echo away; exit 5", live=True),
    run("command-script", "script, a terminal within", "script", "-qec", "tty | cut -c1-9; stty size", "/dev/null", needs=("script",)),
    run("command-strace", "a tracer around it", "strace", "-o", "/dev/null", "-f", "sh", "-c", "echo traced; exit 4", needs=("strace",)),
    run("command-long-run", "a second of work in small pieces", "sh", "-c", "i=0; while [ $i -lt 20 ]; do echo $i; sleep 0.03; i=$((i+1)); done", live=True),
    run("command-tty", "tty and stty", "sh", "-c", "tty | cut -c1-9; stty -a | sed -n '2,$p'", live=True,
        differs={"live": "Ctrl-Z is the script's: no shell is there to wake a stopped job"}),
    run("command-tput", "tput and colours", "sh", "-c", "tput colors; ls --color=auto -d / ; tput cols", live=True),
)  # fmt: skip
