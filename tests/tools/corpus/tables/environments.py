"""The environment, its locale, words that are not UTF-8; working folders that are odd, deleted, or forbidden."""

import os
from pathlib import Path

from tests.tools.corpus.script import Script, py, run, sh

_NO_LOCALE: dict[str, str | None] = {"LANG": None, "LC_ALL": None, "LC_CTYPE": None}
_OURS = ("environment", "no-pythonpath", "sorted")
_ODD = b"caf\xe9".decode("utf-8", "surrogateescape")


def _gone() -> None:
    Path("gone").mkdir()
    os.chdir("gone")
    Path("../gone").rmdir()


def _umask(mask: int) -> None:
    os.umask(mask)


_SAYS_SO = "the shell script that starts tfmemtop says that the folder is gone"

SCRIPTS: tuple[Script, ...] = (
    sh("env-whole", "the whole environment of a shell", "env | grep -v -E '^(_|SHLVL|CORPUS_INIT)='", filters=_OURS, live=True),
    sh("env-no-locale", "a shell without a locale", "printf '\\303\\251' | wc -m; env | grep -c ^LC_", environment=_NO_LOCALE, live=True),
    sh("env-no-locale-whole", "no variable of a locale appears", "env | grep -v -E '^(_|SHLVL|CORPUS_INIT)='", environment=_NO_LOCALE, filters=_OURS),
    *(sh(f"env-locale-{name}", f"{text}", "printf '\\303\\251' | wc -m; env | grep -E '^(LC_|LANG)' | sort", environment=_NO_LOCALE | variables)
      for name, text, variables in (
          ("c", "LC_ALL=C", {"LC_ALL": "C"}), ("posix", "LANG=POSIX", {"LANG": "POSIX"}), ("utf8", "LC_CTYPE=C.UTF-8", {"LC_CTYPE": "C.UTF-8"}),
          ("unknown", "a locale that is not there", {"LC_ALL": "xx_YY.UTF-8"}), ("empty", "LC_ALL empty", {"LC_ALL": ""}))),
    run("env-args-not-utf8", "arguments that are not UTF-8", "sh", "-c", 'printf %s "$1" | od -An -tx1', "sh", _ODD),
    run("env-args-python", "the same, in Python", "{python}", "-c", "import os, sys; print(os.fsencode(sys.argv[1]))", _ODD),
    run("env-args-long", "an argument of 100 kB", "sh", "-c", "echo ${#1}", "sh", "x" * 100_000),
    run("env-args-escape", "arguments with escape sequences", "sh", "-c", 'printf %s "$1" | od -An -tx1', "sh", "\x1b]0;t\x07\x1b[2J"),
    sh("env-value-not-utf8", "a value that is not UTF-8", 'printf %s "$ODD" | od -An -tx1', environment={"ODD": _ODD}, live=True),
    sh("env-name-not-utf8", "a name that is not UTF-8", "env | grep -a caf | od -An -tx1", environment={_ODD: "x"}),
    sh("env-value-newline", "newlines and escapes in a value", 'printf %s "$ODD" | od -An -tx1', environment={"ODD": "a\nb\x1b[1m\t"}),
    sh("env-value-huge", "a value of 120 kB", "echo ${#HUGE}", environment={"HUGE": "v" * 120_000}),
    sh("env-many", "two thousand variables", "env | grep -c ^MANY_", environment={f"MANY_{n}": str(n) for n in range(2000)}),
    sh("env-odd-names", "names with dots, dashes, functions of bash", "env | grep -a -E '^(a\\.b|c-d|BASH_FUNC)' | sort", environment={"a.b": "1", "c-d": "2", "BASH_FUNC_f%%": "() { echo f; }"}),
    sh("env-empty-values", "empty values stay", 'echo "[${EMPTY-unset}]"', environment={"EMPTY": ""}),
    sh("env-tf-variables", "no variable of TensorFlow's appears", "env | grep -E '^(TF_|CUDA_|XLA_)' | sort; echo end", live=True),
    py("env-child-sees", "no variable of TensorFlow's appears in a Python's child", "import subprocess\nprint(subprocess.run('env | grep -E \"^(TF_|CUDA_|XLA_|MALLOC)\"', shell=True, capture_output=True).stdout)\n"),
    *(run(f"env-path-{name}", f"PATH={value!r}", "/bin/sh", "-c", "echo ran; /usr/bin/env | /bin/grep ^PATH=", environment={"PATH": value}, quick=True)
      for name, value in (("none", None), ("empty", ""), ("foreign", "/nowhere"))),
    run("env-no-home", "without HOME", "sh", "-c", "echo ${HOME-none}", environment={"HOME": None}),
    run("env-home-nowhere", "HOME that is not there", "sh", "-c", "echo $HOME", environment={"HOME": "/dev/null/none", "XDG_STATE_HOME": None, "XDG_CACHE_HOME": None, "XDG_CONFIG_HOME": None}),
    run("env-no-xdg", "without any XDG folder", "sh", "-c", "env | grep -c ^XDG", environment=dict.fromkeys(("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"))),
    run("env-xdg-relative", "XDG folders that are relative", "sh", "-c", "echo $XDG_RUNTIME_DIR $XDG_STATE_HOME", environment={"XDG_RUNTIME_DIR": "run", "XDG_STATE_HOME": "state", "XDG_CACHE_HOME": "cache"}, quick=True),
    run("env-tmpdir-nowhere", "TMPDIR that is not there", "sh", "-c", "echo $TMPDIR", environment={"TMPDIR": "/nowhere"}, quick=True),
    run("env-tmpdir-long", "a long TMPDIR", "sh", "-c", "echo ${#TMPDIR}", environment={"TMPDIR": "{box}/" + "long" * 25}),
    run("env-term-dumb", "TERM=dumb, NO_COLOR, COLUMNS", "sh", "-c", "echo $TERM $NO_COLOR $COLUMNS $LINES", environment={"TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "40", "LINES": "9"}),
    run("env-term-variables", "COLUMNS and LINES under the screen", "sh", "-c", "echo ${COLUMNS-none} ${LINES-none} $TERM", live=True),
    run("env-ld-library-path", "LD_LIBRARY_PATH", "sh", "-c", "echo $LD_LIBRARY_PATH", environment={"LD_LIBRARY_PATH": "/nowhere:"}),
    run("env-malloc", "glibc's own variables", "sh", "-c", "echo $MALLOC_ARENA_MAX $GLIBC_TUNABLES", environment={"MALLOC_ARENA_MAX": "1", "GLIBC_TUNABLES": "glibc.malloc.check=1"}),
    run("env-ours-inside", "our own variables, set by the user", "sh", "-c", "echo ${TFMEMTOP_SOCKET:+set} $TFMEMTOP_MINE", environment={"TFMEMTOP_SOCKET": "/nowhere", "TFMEMTOP_MINE": "1"}),
    run("env-nested", "record within record", "tfmemtop", "record", "-o", "inner.jsonl", "--", "sh", "-c", "echo inside; exit 3", filters=("durations", "numbers")),
    sh("folder-deleted", "a working folder that is gone", "ls; pwd -P >/dev/null 2>&1; echo ran", prepare=_gone, quick=True, differs={"stderr": _SAYS_SO}),
    run("folder-deleted-python", "the same, in Python", "{python}", "-c", "import os\ntry:\n    os.getcwd()\nexcept OSError as error:\n    print(error.errno)", prepare=_gone, differs={"stderr": _SAYS_SO}),
    sh("folder-not-utf8", "a working folder that is not UTF-8", "basename \"$PWD\" | od -An -tx1", cwd=_ODD, quick=True),
    sh("folder-newline", "a newline and an escape in its name", "basename \"$PWD\" | od -An -tx1", cwd="a\nb\x1b[1m", live=True),
    sh("folder-spaces", "spaces and quotes in its name", "pwd | wc -l; touch made; ls", cwd="with 'quotes' and spaces", live=True),
    run("folder-script-not-utf8", "a script whose name is not UTF-8", "{python}", f"{_ODD}.py", files={f"{_ODD}.py": "import sys, os\nprint(os.fsencode(sys.argv[0]))\n"}),
    sh("folder-umask", "a umask of 027", "umask; touch made; stat -c %a made", prepare=lambda: _umask(0o027), live=True),
    sh("folder-pwd-wrong", "PWD that lies", "pwd; echo $OLDPWD", environment={"PWD": "/elsewhere", "OLDPWD": "/before"}),
    sh("folder-files-made", "files and folders of many kinds", "mkdir -p a/b; mkfifo a/pipe; ln -s nowhere a/link; echo x > $TMPDIR/t; echo y > $HOME/h; ls -R", quick=True),
    run("folder-relative", "a command by a relative path, at once", "./tool", "one", files={"tool": "#!/bin/sh\necho tool $0 $1\n"}, live=True),
)  # fmt: skip
