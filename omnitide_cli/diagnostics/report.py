"""What doctor has found, a line each, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TextIO

from omnitide_cli.formats.status import columns
from omnitide_cli.formats.words import one_line, printable

if TYPE_CHECKING:
    from rich.text import Text

State = Literal["ok", "missing", "warning", "broken"]
STYLES = {"ok": "green", "missing": "yellow", "warning": "bold yellow", "broken": "bold red"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    "missing": only what needs it can't run; "warning": it runs now, and may not tomorrow; "broken": it can't run.
    """

    group: str
    name: str
    state: State
    found: str
    remedy: str = ""
    needed: bool = False
    """Watching is impossible without it."""


def is_well(findings: Sequence[Finding]) -> bool:
    """Whether the main job runs."""
    return not any(each.needed and each.state == "broken" for each in findings)


def show(findings: Sequence[Finding], out: TextIO) -> None:
    """Groups of lines, and the verdict."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=out, width=columns(out) if out.isatty() else 80, highlight=False, markup=False, emoji=False)
    console.begin_capture()
    label = max((len(each.name) for each in findings), default=0)
    group = ""
    for each in findings:
        if each.group != group:
            group = each.group
            console.print(Text(f"\n{group}" if each is not findings[0] else group, "bold"))
        line = Table.grid(padding=(0, 1, 0, 0))
        line.add_column(width=7, no_wrap=True)
        line.add_column(width=label)
        line.add_column()
        line.add_row(Text(each.state, STYLES[each.state]), each.name, _text(each))
        console.print(line)
    console.print()
    console.print(_verdict(findings))
    text = console.end_capture()
    out.write("\n".join(line.rstrip() for line in text.splitlines()) + "\n")
    out.flush()


def _text(finding: Finding) -> Text:
    from rich.text import Text

    text = Text(printable(one_line(finding.found)))
    if finding.remedy:
        text.append(f"\n{printable(finding.remedy)}", "cyan")
    return text


def _verdict(findings: Sequence[Finding]) -> Text:
    from rich.text import Text

    if not is_well(findings):
        broken = ", ".join(each.name for each in findings if each.needed and each.state == "broken")
        return Text(f"omnitide watch can't run here: {broken}", STYLES["broken"])
    counts = [(sum(each.state == state for each in findings), state) for state in ("broken", "warning", "missing")]
    rest = ", ".join(f"{count} {state}" for count, state in counts if count)
    return Text("omnitide watch runs here" + (f"; {rest}, see above" if rest else "") + ".", STYLES["ok"])
