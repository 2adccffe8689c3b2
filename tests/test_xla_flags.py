"""XLA gets our flags, and the user's own flags do not change."""

from pathlib import Path

import pytest

from tfmemtop.engine.process.environment import FLAGS, FOLDER, Refused, with_report
from tfmemtop.events import XlaMissing

PLACE = Path("/run/user/1/tfmemtop/abcde/xla")
OURS = f"--xla_dump_to={PLACE}/0 --xla_dump_hlo_as_text --xla_dump_max_hlo_modules=1000"


def test_without_flags_of_the_users_there_are_ours() -> None:
    assert with_report({"A": "b"}, PLACE) == {"A": "b", FLAGS: OURS, FOLDER: str(PLACE)}
    blank = with_report({FLAGS: " "}, PLACE)
    assert isinstance(blank, dict) and blank[FLAGS] == OURS


@pytest.mark.parametrize("users", ["--xla_gpu_autotune_level=2", " --a='b c'\t--d=e ", "--a='never closed"])
def test_the_users_flags_follow_ours_letter_by_letter(users: str) -> None:
    found = with_report({FLAGS: users}, PLACE)
    assert isinstance(found, dict) and found[FLAGS] == f"{OURS} {users}"


@pytest.mark.parametrize(
    ("users", "detail"),
    [
        ("--xla_a=1 --xla_dump_to=/mine --xla_b=2", "--xla_dump_to=/mine"),
        ("--xla_dump_hlo_pass_re=.*", "--xla_dump_hlo_pass_re=.*"),
        ("-xla_dump_to=/mine\n--xla_dump_hlo_as_dot", "-xla_dump_to=/mine --xla_dump_hlo_as_dot"),
    ],
)
def test_where_the_user_has_xla_write_already_nothing_changes(users: str, detail: str) -> None:
    assert with_report({FLAGS: users}, PLACE) == Refused(XlaMissing.USERS_FOLDER, detail)


def test_flags_in_a_file_stay_there() -> None:
    assert with_report({FLAGS: "/home/me/flags"}, PLACE) == Refused(XlaMissing.USERS_FILE, "/home/me/flags")


def test_a_path_with_blanks_is_quoted_and_one_with_quotes_is_none() -> None:
    found = with_report({}, Path("/my files/xla"))
    assert isinstance(found, dict) and found[FLAGS].startswith("--xla_dump_to='/my files/xla/0' ")
    assert with_report({}, Path("/it's/xla")) == Refused(XlaMissing.NO_FOLDER, "/it's/xla")
