"""A program that is left running ends at logout where systemd is set so. The answers are those of systemd 252."""

import json
import os
import pwd
import shlex
from pathlib import Path

import pytest

from tfmemtop.cli.logout import ends_at_logout

pytestmark = pytest.mark.programs

ME = pwd.getpwuid(os.getuid()).pw_name
UNSET = ["grace"] if ME == "root" else []  # of those who are excluded; if nobody is, root is
OLD, NEW = "4:memory:/\n1:name=systemd:/user.slice/session-c3.scope\n", "0::/user.slice/user-7.slice/session-3.scope\n"
OUTSIDE = "0::/user.slice/user-7.slice/user@7.service/app.slice/run-r1.scope\n"


@pytest.mark.parametrize(
    ("cgroup", "kills", "excluded", "only", "ends"),
    [
        (NEW, True, UNSET, [], True),
        (OLD, True, UNSET, [], True),
        (OUTSIDE, True, UNSET, [], False),
        (NEW, False, UNSET, [], False),
        (NEW, True, ["ada", ME], [], False),
        (NEW, True, ["ada"], ["grace"], False),
        (NEW, False, ["ada"], ["grace", ME], True),
    ],
)
def test_what_logind_is_set_to(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cgroup: str,
    kills: bool,
    excluded: list[str],
    only: list[str],
    ends: bool,
) -> None:
    answers = ({"type": "b", "data": kills}, *({"type": "as", "data": users} for users in (excluded, only)))
    busctl = tmp_path / "busctl"
    busctl.write_text(f"#!/bin/sh\nprintf '%s\\n' {shlex.join(map(json.dumps, answers))}\n")
    busctl.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "cgroup").write_text(cgroup)
    assert ends_at_logout(tmp_path / "cgroup") is ends


@pytest.mark.parametrize("program", ["#!/bin/sh\nexit 1\n", "#!/bin/sh\necho no JSON\n", "#!/bin/sh\necho 1\n", None])
def test_without_logind_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str | None) -> None:
    if program is not None:
        (tmp_path / "busctl").write_text(program)
        (tmp_path / "busctl").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "cgroup").write_text(NEW)
    assert not ends_at_logout(tmp_path / "cgroup")
