"""Commands that read and write rule files: fmt, new, rules."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cli_samples import Cep

from cep.cli.exits import DONE, FAILED, WRONG_USE

UGLY = 'rule   a{on login   where x==1 alert "hi"}'
PRETTY = 'rule a { on login where x == 1  alert "hi" }\n'


@pytest.fixture
def ugly(tmp_path: Path) -> Path:
    path = tmp_path / "ugly.cep"
    path.write_text(UGLY)
    return path


def test_fmt_formats_in_place(cep: Cep, ugly: Path) -> None:
    outcome = cep("fmt", ugly)
    assert outcome.code == DONE
    assert ugly.read_text() == PRETTY
    assert f"formatted {ugly}\n" in outcome.err
    assert "1 file formatted, 0 files left as they were" in outcome.err
    assert "0 files formatted, 1 file left as it was\n" in cep("fmt", ugly).err


def test_fmt_keeps_the_permissions(cep: Cep, ugly: Path) -> None:
    ugly.chmod(0o640)
    cep("fmt", ugly)
    assert stat.S_IMODE(ugly.stat().st_mode) == 0o640
    assert list(ugly.parent.iterdir()) == [ugly]


def test_fmt_follows_a_link_and_leaves_it_one(cep: Cep, ugly: Path) -> None:
    link = ugly.with_name("link.cep")
    link.symlink_to(ugly)
    cep("fmt", link)
    assert link.is_symlink()
    assert ugly.read_text() == PRETTY


def test_fmt_check_changes_nothing_and_fails(cep: Cep, ugly: Path) -> None:
    outcome = cep("fmt", "--check", ugly)
    assert outcome.code == FAILED
    assert f"would format {ugly}" in outcome.err
    assert ugly.read_text() == UGLY
    ugly.write_text(PRETTY)
    assert cep("fmt", "--check", ugly).code == DONE


def test_fmt_diff_shows_what_would_change(cep: Cep, ugly: Path) -> None:
    outcome = cep("fmt", "--diff", ugly)
    assert outcome.code == DONE
    assert f"-{UGLY}\n+{PRETTY}" in outcome.out
    assert ugly.read_text() == UGLY


def test_fmt_diff_and_check_together(cep: Cep, ugly: Path) -> None:
    outcome = cep("fmt", "--diff", "--check", ugly)
    assert outcome.code == FAILED
    assert f"+{PRETTY}" in outcome.out


def test_fmt_of_standard_input(cep: Cep) -> None:
    outcome = cep("fmt", "-", stdin=UGLY)
    assert outcome.code == DONE
    assert outcome.out == PRETTY
    assert outcome.err == ""


def test_fmt_leaves_a_broken_file_and_formats_the_others(
    cep: Cep, ugly: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.cep"
    broken.write_text("rule {")
    outcome = cep("fmt", tmp_path)
    assert outcome.code == WRONG_USE
    assert broken.read_text() == "rule {"
    assert ugly.read_text() == PRETTY
    assert "error[E" in outcome.err
    assert "1 file with errors left as they are" in outcome.err


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"rule a\n\xff", "line 2 is not UTF-8 text")],
)
def test_fmt_of_something_that_is_no_text(
    cep: Cep, tmp_path: Path, data: bytes, reason: str
) -> None:
    path = tmp_path / "a.cep"
    path.write_bytes(data)
    outcome = cep("fmt", path)
    assert outcome.code == WRONG_USE
    assert outcome.err == f"error: cannot read {path}: {reason}\n"


def test_a_missing_rule_file_gets_a_hint(cep: Cep, ugly: Path) -> None:
    outcome = cep("fmt", "ugli.cep")
    assert outcome.code == WRONG_USE
    assert outcome.err == "error: no rule file ugli.cep; did you mean ugly.cep?\n"


def test_a_folder_without_rules(cep: Cep, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    outcome = cep("fmt", "empty")
    assert outcome.code == WRONG_USE
    assert "no rule file (*.cep) in the folder empty" in outcome.err


@pytest.mark.parametrize("kind", ["sequence", "filter", "absence"])
def test_new_writes_a_file_that_checks_passes_and_is_formatted(cep: Cep, kind: str) -> None:
    outcome = cep("new", "first-rule", "--kind", kind)
    assert outcome.code == DONE
    assert outcome.err == "wrote first-rule.cep; next: cep test first-rule.cep\n"
    assert "rule first_rule " in Path("first-rule.cep").read_text()
    assert cep("fmt", "--check", "first-rule.cep").code == DONE
    checked = cep("check", "first-rule.cep")
    assert checked.code == DONE, checked.err
    assert "0 warnings" in checked.err
    tested = cep("test", "first-rule.cep")
    assert tested.code == DONE, tested.out
    assert " 0 passed" not in tested.err


def test_new_does_not_replace_a_file_unless_forced(cep: Cep, tmp_path: Path) -> None:
    path = tmp_path / "mine.cep"
    path.write_text("# mine\n")
    outcome = cep("new", "mine.cep")
    assert outcome.code == WRONG_USE
    assert outcome.err == "error: mine.cep is there already; --force replaces it\n"
    assert path.read_text() == "# mine\n"
    assert cep("new", "mine.cep", "--force").code == DONE
    assert "rule mine " in path.read_text()


def test_new_in_a_missing_folder(cep: Cep) -> None:
    outcome = cep("new", "no/such/a.cep")
    assert outcome.code == WRONG_USE
    assert outcome.err == "error: no folder no/such\n"


@pytest.mark.parametrize(
    ("path", "name"),
    [("Brute Force.cep", "brute_force"), ("2fa.cep", "rule_2fa"), ("___.cep", "rule")],
)
def test_new_names_the_rule_after_the_file(cep: Cep, path: str, name: str) -> None:
    assert cep("new", path).code == DONE
    assert f"rule {name} " in Path(path).read_text()


def test_rules_list_shows_packs_and_rules(cep: Cep) -> None:
    outcome = cep("rules", "list")
    assert outcome.code == DONE
    assert "pack:security\n" in outcome.out
    assert "  password_guessing " in outcome.out
    assert cep("rules", "list", "security").out == cep("rules", "list", "pack:security").out


def test_rules_list_of_an_unknown_pack(cep: Cep) -> None:
    outcome = cep("rules", "list", "securty")
    assert outcome.code == WRONG_USE
    assert outcome.err == "error: no pack `securty`; did you mean pack:security?\n"


def test_rules_show_prints_a_rule(cep: Cep) -> None:
    outcome = cep("rules", "show", "password_guessing")
    assert outcome.out.startswith("# pack:security, passwords.cep\nrule password_guessing ")
    assert cep("rules", "show", "security/password_guessing").out == outcome.out
    assert "rule password_guessing " in cep("rules", "show", "pack:security").out


def test_rules_show_of_an_unknown_rule(cep: Cep) -> None:
    outcome = cep("rules", "show", "pasword_guessing")
    assert outcome.code == WRONG_USE
    assert "did you mean `password_guessing`?" in outcome.err


def test_rules_copy_brings_what_a_rule_needs(cep: Cep) -> None:
    outcome = cep("rules", "copy", "password_guessing", "mine")
    assert outcome.code == DONE
    assert sorted(path.name for path in Path("mine").iterdir()) == [
        "ecs.cep",
        "ocsf.cep",
        "passwords.cep",
        "sshd.cep",
        "streams.cep",
        "windows.cep",
        "zeek.cep",
    ]
    assert cep("check", "mine/passwords.cep").code == DONE


def test_rules_copy_of_a_pack_replaces_only_when_forced(cep: Cep) -> None:
    assert cep("rules", "copy", "pack:security", "mine").code == DONE
    outcome = cep("rules", "copy", "pack:security", "mine")
    assert outcome.code == WRONG_USE
    assert "is there already; --force replaces it" in outcome.err
    assert cep("rules", "copy", "pack:security", "mine", "--force").code == DONE
