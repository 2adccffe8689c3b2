"""Working folders that are odd, deleted, or forbidden; masks of new files."""

import os
from pathlib import Path

from tests.tools.corpus.script import Script, run, sh

_ODD = b"caf\xe9".decode("utf-8", "surrogateescape")


def _gone() -> None:
    Path("gone").mkdir()
    os.chdir("gone")
    Path("../gone").rmdir()


def _umask(mask: int) -> None:
    os.umask(mask)


_SAYS_SO = "the shell script that starts tfmemtop says that the folder is gone"

SCRIPTS: tuple[Script, ...] = (
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
