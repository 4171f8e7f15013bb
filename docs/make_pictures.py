"""Draws the pictures of the documentation: diagrams of rules, and a recorded terminal session.

In: the pages of the documentation and the rules in them. Out: every block under a comment
`<!-- diagram: RULE FILE -->` holds what `cep explain --diagram` shows for that rule of that file of
the page, in Mermaid; `pictures/session.svg` is a terminal in which the commands of `SESSION` run.
A test holds that the diagrams are up to date. To bring them so:

    python docs/make_pictures.py
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

import cep  # noqa: E402
from cep.explain.diagram import diagram, to_mermaid  # noqa: E402

WIDTH = 110
PROGRESS = "━"
"""What the progress line is drawn with: it is gone when the command has ended."""

FILE = re.compile(r"^<!-- (file|append): (\S+) -->\n```\w+\n(.*?)^```$", re.M | re.S)
DIAGRAM = re.compile(r"^<!-- diagram: (\S+) (\S+) -->\n```mermaid\n(.*?)^```$", re.M | re.S)

SESSION = (
    "cat guessing.cep",
    "cep check guessing.cep",
    "cep test guessing.cep",
    "cep run guessing.cep logins.jsonl",
)
"""What is typed in the recorded session; the files are those of the README."""

# ---------------------------------------------------------------------------- diagrams


def with_diagrams(page: str) -> str:
    """The text of a page with its diagrams as they should be."""

    def drawn(found: re.Match[str]) -> str:
        rule, file = found[1], found[2]
        text = file_before(page[: found.start()], file)
        picture = to_mermaid(diagram(cep.loads(text, name=file).rules[rule]))
        return f"<!-- diagram: {rule} {file} -->\n```mermaid\n{picture.strip()}\n```"

    return DIAGRAM.sub(drawn, page)


def file_before(text: str, name: str) -> str:
    """What a reader who typed along has in that file."""
    content = ""
    for kind, file, block in FILE.findall(text):
        if file == name:
            content = block if kind == "file" else content + block
    return content


# ---------------------------------------------------------------------------- the session


def record(commands: tuple[str, ...], home: Path) -> Text:
    """The commands and what they print on a terminal."""
    shown = Text()
    for command in commands:
        shown.append("$ ", style="bold green").append(command + "\n")
        shown.append_text(Text.from_ansi(on_terminal(command, home))).append("\n\n")
    return shown[:-2]


def on_terminal(command: str, home: Path) -> str:
    """What a command prints on a terminal; times that it took are not told, they differ."""
    environment = {**os.environ, "PYTHONPATH": str(DOCS.parent), "COLUMNS": str(WIDTH)}
    environment.pop("NO_COLOR", None)
    command = re.sub(r"^cep\b", f"{sys.executable} -m cep", command)
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, WIDTH))
    running = subprocess.Popen(
        ["/bin/sh", "-c", command], cwd=home, env=environment, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    printed = b"".join(iter(lambda: read(ours), b"")).decode()
    running.wait()
    os.close(ours)
    lines = [line for line in re.split(r"\r\n|\r", printed) if PROGRESS not in line]
    return re.sub(r" in [\d.]+ s( \([^)]*\))?", "", "\n".join(lines)).rstrip("\n")


def read(terminal: int) -> bytes:
    """The next bytes; none when the other end is closed, which a terminal calls an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def session_picture() -> str:
    """The recorded session as SVG."""
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("guessing.cep", "logins.jsonl"):
            (Path(folder) / name).write_text(file_before(readme, name), encoding="utf-8")
        shown = record(SESSION, Path(folder))
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        console.print(shown, soft_wrap=True)
    return console.export_svg(title="cep", theme=MONOKAI, unique_id="session")


def main() -> None:
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if (drawn := with_diagrams(text)) != text:
            page.write_text(drawn, encoding="utf-8")
    (DOCS / "pictures").mkdir(exist_ok=True)
    (DOCS / "pictures" / "session.svg").write_text(session_picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
