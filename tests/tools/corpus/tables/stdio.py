"""Standard streams: closed, full, binary, huge, shared, and the properties that they report."""

import os

from tests.tools.corpus.script import Script, py, sh

_ASKS = """
import fcntl, os, stat, sys
for number in range(3):
    try:
        found = os.fstat(number)
        kind = stat.S_IFMT(found.st_mode)
        print(number, oct(kind), os.isatty(number), oct(fcntl.fcntl(number, fcntl.F_GETFL)), os.get_inheritable(number))
    except OSError as error:
        print(number, error)
print(sys.stdin and sys.stdin.encoding, sys.stdout.encoding, sys.stdout.errors, sys.stderr.errors)
print(sys.stdout.line_buffering, sys.stdout.write_through, sys.stderr.line_buffering)
print(sorted(int(name) for name in os.listdir("/proc/self/fd")))
"""
_FDS = "for fd in /proc/self/fd/*; do n=${fd##*/}; [ $n -gt 2 ] && [ $n -lt 10 ] && echo $n; done; echo end"


def _open() -> None:
    for number, path, flags in ((7, "/etc/hostname", os.O_RDONLY), (8, "/dev/null", os.O_WRONLY)):
        found = os.open(path, flags)
        os.dup2(found, number)
        if found != number:
            os.close(found)


SCRIPTS: tuple[Script, ...] = (
    py("stdio-asked", "types, flags, buffering, open descriptors", _ASKS, live=True, quick=True),
    py("stdio-asked-files", "the same on files", _ASKS, stdout="file"),
    py("stdio-asked-closed-in", "stdin closed", _ASKS, stdin="closed"),
    py("stdio-closed-out", "stdout closed", "import sys\nprint(sys.stdout, file=sys.stderr)\nprint('x')\n", stdout="closed"),
    py("stdio-closed-err", "stderr closed", "import sys\nprint(sys.stderr)\nsys.exit('nobody reads this')\n", stderr="closed", quick=True),
    py("stdio-closed-all", "all three closed", "import os\nopen('seen', 'w').write(str(sorted(os.listdir('/proc/self/fd'))))\n",
       stdin="closed", stdout="closed", stderr="closed"),
    py("stdio-full", "stdout on a full disk", "print('x' * 100)\n", stdout="full"),
    py("stdio-broken", "nobody reads stdout", "print('x', flush=True)\n", stdout="broken"),
    py("stdio-binary", "a mebibyte of every byte", "import sys\nsys.stdout.buffer.write(bytes(range(256)) * 4096)\n", quick=True),
    py("stdio-many-lines", "20 000 lines in a burst", "for i in range(20000): print(i)\n", live=True),
    py("stdio-no-newline", "no newline at the end of either", "import sys\nprint('out', end='')\nsys.stderr.write('err')\n", live=True),
    py("stdio-interleaved", "both streams into one pipe, in order", """
import os, sys
for i in range(200):
    os.write(1 + i % 2, f"{i}\\n".encode())
""", stderr="same", live=True),
    py("stdio-crlf", "carriage returns, tabs, backspaces, a bell", "print('a\\rb\\tc\\b\\a\\v\\f\\x00d')\n", live=True),
    py("stdio-escapes", "escape sequences of all kinds", """
print("\\x1b[31mred\\x1b[0m \\x1b]0;title\\x07 \\x1b[2J\\x1b[10;10Hx \\x1bP1$r\\x1b\\\\ \\x1b[?1049h\\x1b[?1049l")
""", live=True),
    py("stdio-utf8", "wide characters, accents, emoji, not UTF-8", """
import sys
sys.stdout.buffer.write("é 漢字 🎉 e\\u0301 \\u202e x\\n".encode() + b"\\xff\\xfe\\xc3\\n")
""", live=True),
    py("stdio-pipe-in", "reads a pipe to its end", "import sys\nprint(sys.stdin.read().upper())\n", stdin=b"from a pipe\nwithout end"),
    sh("stdio-shared-in", "two readers share stdin", "read first; echo sh $first; cat", stdin=b"one\ntwo\nthree\n", quick=True),
    py("stdio-tty", "what a terminal is asked", """
import os, sys
for ask in (lambda: os.ttyname(1) and "tty", lambda: os.get_terminal_size(1), lambda: os.tcgetpgrp(0) == os.getpgrp(),
            lambda: __import__("termios").tcgetattr(0)[:4], lambda: os.ctermid(), lambda: os.open("/dev/tty", os.O_RDWR) > 2):
    try:
        print(ask())
    except OSError as error:
        print(error.errno)
""", live=True, quick=True),
    sh("stdio-descriptors", "no descriptor more than stdio", _FDS, live=True, quick=True),
    sh("stdio-inherited", "descriptors 3, 5 and 9 of the shell reach it",
       "exec 3</etc/hostname 5>&1 9>/dev/null; sh -c '" + _FDS + "; echo five >&5'", live=True),
    sh("stdio-process-substitution", "a descriptor from <(…)", "bash -c 'cat <(echo inside) - </dev/null'"),
    sh("stdio-inherited-outer", "descriptors opened before us reach it", _FDS + "; cat <&7; echo x >&8",
       prepare=_open, quick=True),
)  # fmt: skip
