"""`--sweep SETTING=N,N,...`: which settings, with which values, and of which policies."""

from __future__ import annotations

from collections.abc import Sequence

from omnitide_cli.errors import UsageError
from omnitide_cli.runtime.options import KNOBS, POLICIES, has_knob

Change = tuple[str, float | None]
"""A field of the engine's options and its value; None: the policy's own choice."""


def parse_sweep(text: str) -> list[Change]:
    """One change a value; `auto` is the default of settings that a policy chooses itself. Raises UsageError."""
    name, _, values = text.partition("=")
    knob = KNOBS.get(name.replace("-", "_"))
    wrong = UsageError(
        f"--sweep {text}: not a setting ({', '.join(each.name for each in KNOBS.values())}) and its values",
        "for example --sweep image-sinks=0,4,16",
    )
    if knob is None or "_" in name:
        raise wrong
    changes: list[Change] = []
    for value in values.split(","):
        if value == "auto" and knob.default is None:
            changes.append((knob.field, None))
            continue
        try:
            number = knob.kind(value)
        except ValueError:
            raise wrong from None
        if not number >= knob.least:
            raise wrong
        changes.append((knob.field, number))
    return changes


def policies_swept(changes: Sequence[Change], wanted: Sequence[str] | None) -> list[str] | None:
    """The policies to compare: those that are wanted, else those whose settings are swept, omnipick for a layout's.

    None: all. Raises UsageError for a setting of none of those that are wanted.
    """
    if not changes:
        return list(wanted) if wanted else None
    found: list[str] = []
    for field, _ in changes:
        owners = [policy for policy in POLICIES if has_knob(policy, field)]
        flag = KNOBS[field].name
        if wanted and not any(has_knob(policy, field) for policy in wanted):
            raise UsageError(
                f"--sweep {flag}: this setting belongs to {', '.join(owners)}", f"add --policy {owners[0]}"
            )
        found.append("omnipick" if "omnipick" in owners else owners[0])
    return list(wanted) if wanted else list(dict.fromkeys(found))
