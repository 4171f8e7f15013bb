"""From what people type to rule files and inputs: files, folders, `pack:NAME`, `pack:NAME/LOG`.

The ready-made packs are folders of `rules/`: inside the installed package, or beside it in a
checkout.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from cep.cli.speech import Problem
from dsl.diagnostics import did_you_mean

SUFFIX = ".cep"
PACK = "pack:"


def packs_folder() -> Path:
    """The folder that holds the ready-made packs."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "_rules", package.parent / "rules"):
        if folder.is_dir():
            return folder
    raise Problem("the ready-made rules are missing from this installation")


def pack_names() -> list[str]:
    """Packs that hold at least one rule file."""
    folder = packs_folder()
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and _files_in(path))


def is_rules(argument: str) -> bool:
    """Whether an argument names rules rather than an input."""
    if argument.startswith(PACK):
        return pack_log(argument) is None
    if argument.endswith(SUFFIX):
        return True
    path = Path(argument)
    return path.is_dir() and next(path.rglob(f"*{SUFFIX}"), None) is not None


def pack_log(argument: str) -> Path | None:
    """The log that `pack:NAME/LOG` names: a file that comes with a pack and is no rule file."""
    path = packs_folder() / argument.removeprefix(PACK)
    return path if path.suffix not in ("", SUFFIX) and path.is_file() else None


def rule_files(arguments: Iterable[str]) -> list[str]:
    """The rule files that the arguments name, each once, folders in the order of their paths.

    Raises `Problem` for a name behind which there is no rule file.
    """
    found: dict[str, None] = {}
    for argument in arguments:
        found.update(dict.fromkeys(_named_by(argument)))
    return list(found)


def _named_by(argument: str) -> list[str]:
    if argument.startswith(PACK):
        return _in_pack(argument.removeprefix(PACK))
    path = Path(argument)
    if path.is_dir():
        files = _files_in(path)
        if not files:
            raise Problem(f"no rule file (*{SUFFIX}) in the folder {argument}")
        return files
    if not path.exists():
        raise Problem(f"no rule file {argument}{_near(path)}")
    return [argument]


def _near(path: Path) -> str:
    """A hint at a file of nearly that name in the same folder."""
    if not path.parent.is_dir():
        return ""
    guess = did_you_mean(path.name, [other.name for other in path.parent.glob(f"*{SUFFIX}")])
    return f"; did you mean {path.parent / guess}?" if guess else ""


def _in_pack(name: str) -> list[str]:
    """Files of a pack, or `PACK/FILE` for one of them."""
    path = packs_folder() / name
    if path.is_dir() and name and (files := _files_in(path)):
        return files
    single = path.with_name(path.name + SUFFIX)
    if "/" in name and single.is_file():
        return [str(single)]
    guess = did_you_mean(name, pack_names())
    hint = f"did you mean {PACK}{guess}?" if guess else f"there are: {', '.join(pack_names())}"
    raise Problem(f"no pack `{name}`; {hint}")


def _files_in(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob(f"*{SUFFIX}") if path.is_file())


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Rule files and inputs, told apart by what they look like. Raises `Problem` without rules."""
    rules = [argument for argument in arguments if is_rules(argument)]
    inputs = [input_path(argument) for argument in arguments if not is_rules(argument)]
    if not rules:
        given = f" among: {' '.join(inputs)}" if inputs else ""
        raise click.UsageError(
            f"no rules{given}. Name a rule file (*{SUFFIX}), a folder of them or pack:NAME."
        )
    return rule_files(rules), inputs


def input_path(argument: str) -> str:
    """The path of an input that is named by its path or as `pack:NAME/LOG`."""
    log = pack_log(argument) if argument.startswith(PACK) else None
    return argument if log is None else str(log)
