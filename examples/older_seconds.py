"""Which tokens of an older second stay: OmniPick's rules with another choice in place of the first four.

    omnitide watch talk.mp4 --policy examples/older_seconds.py:values --ask "What was it about?"
    omnitide bench quality --policy omnipick --policy examples/older_seconds.py:values

Watermarks, recent window, markers and text budget are OmniPick's (docs/omnipick.md), and as many tokens stay; only the
choice within a picture and within a second of sound is another. docs/benchmarks.md says what it makes of answers.
"""

from __future__ import annotations

import numpy as np

KEPT = 4  # of each picture and of each second of sound
TEXT = 256  # of older questions and answers together
TURNS = ("text", "response")


def first(history):
    """What OmniPick itself keeps."""
    return omnipick(history, lambda role, tokens: tokens[:KEPT])


def last(history):
    """The end of each: it has seen the rest."""
    return omnipick(history, lambda role, tokens: tokens[-KEPT:])


def spread(history):
    """Evenly over the picture or the second."""
    return omnipick(
        history, lambda role, tokens: [tokens[i] for i in np.linspace(0, len(tokens) - 1, KEPT).round().astype(int)]
    )


def values(history, values):
    """The largest values (VaN of InfiniPot-V, arXiv 2506.15745), summed over layers."""
    norms = sum(relative_norms(values[layer]) for layer in range(len(values)))
    return omnipick(history, lambda role, tokens: best(norms[tokens], tokens))


def keys(history, keys):
    """The smallest keys, which tend to draw most attention, summed over layers."""
    norms = sum(relative_norms(keys[layer]) for layer in range(len(keys)))
    return omnipick(history, lambda role, tokens: best(-norms[tokens], tokens))


def apart(history, values):
    """What is least like the rest of its own picture or second."""
    rows = [unit_rows(values[layer]) for layer in range(len(values))]

    def choose(role, tokens):
        likeness = sum(row[tokens] @ row[tokens].mean(axis=0) for row in rows)
        return best(-likeness, tokens)

    return omnipick(history, choose)


def new(history, values):
    """What is least like the same place of the newest seconds (TaR of InfiniPot-V), by values: nothing turns them."""
    rows = [unit_rows(values[layer]) for layer in range(len(values))]
    recent = {}
    for unit in [unit for unit in history.units if unit.kind == "media" and not unit.is_partial][-6:]:
        for role, tokens in parts(unit):
            recent.setdefault(role, []).append(tokens)

    def choose(role, tokens):
        others = [other for other in recent.get(role, []) if len(other) == len(tokens) and other != tokens]
        likeness = [(row[tokens] * row[other]).sum(axis=1) for row in rows for other in others]
        return best(-np.mean(likeness, axis=0), tokens) if likeness else tokens[:KEPT]

    return omnipick(history, choose)


# --- tokens and their scores


def relative_norms(rows):
    """[tokens] lengths of rows, 1 on average."""
    norms = np.linalg.norm(rows, axis=1)
    return norms / norms.mean()


def unit_rows(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def best(scores, tokens):
    """Those of `tokens` whose score, one each, is among the largest."""
    return [tokens[i] for i in np.argsort(-scores, kind="stable")[:KEPT]]


# --- OmniPick's rules (docs/omnipick.md), in Python


def parts(unit):
    """(role, tokens) of each picture and of each second of sound."""
    found, at = [], unit.first
    for span in unit.spans:
        tokens = list(range(at, at + span.length))
        at += span.length
        if span.role not in ("image", "audio"):
            continue
        if span.continues and found and found[-1][0] == span.role:
            found[-1][1].extend(tokens)
        else:
            found.append((span.role, tokens))
    return found


def shortened(unit, choose, budget):
    """What stays of an older unit, and what is left of the text budget."""
    kept, at = [], unit.first
    for span in unit.spans:
        tokens = list(range(at, at + span.length))
        at += span.length
        if span.role in TURNS:
            kept += tokens[:budget]
            budget -= min(budget, len(tokens))
        elif span.role not in ("image", "audio"):
            kept += tokens
    for role, tokens in parts(unit):
        kept += tokens if len(tokens) <= KEPT else choose(role, tokens)
    return sorted(kept), budget


def text_tokens(unit):
    return sum(span.length for span in unit.spans if span.role in TURNS)


def window_begin(history, fixed):
    """The unit with which the recent window begins, as wide as the low watermark allows."""
    units, system = history.units, int(history.units[0].kind == "system")
    older_fixed = sum(fixed[system:])
    older_text = sum(text_tokens(unit) for unit in units[system:])
    window, begin = units[0].tokens if system else 0, len(units)
    has_media = any(unit.kind == "media" and unit.tokens for unit in units)
    for i in range(len(units) - 1, system - 1, -1):
        older_fixed -= fixed[i]
        older_text -= text_tokens(units[i])
        window += units[i].tokens
        if not units[i].tokens or (has_media and units[i].kind != "media"):
            continue
        if begin < len(units) and window + older_fixed + min(TEXT, older_text) > history.low_watermark:
            break
        begin = i
    return begin


def omnipick(history, choose):
    """One flag a token: OmniPick's plan with `choose(role, tokens)` for each picture and each second of sound."""
    units, system = history.units, int(history.units[0].kind == "system")
    everything = 1 << 30
    fixed = [len(shortened(unit, choose, everything)[0]) - text_tokens(unit) for unit in units]
    begin, budget, stays = window_begin(history, fixed), TEXT, []
    for i, unit in enumerate(units):
        kept = list(unit)
        if system <= i < begin:
            kept, budget = shortened(unit, choose, budget)
        stays.append(kept)
    newest = max(i for i, unit in enumerate(units) if unit.tokens)
    for partial in (True, False):  # where that isn't enough, whole units go: shortened ones first, the oldest first
        for i in range(system, newest):
            if sum(map(len, stays)) <= history.low_watermark:
                break
            if stays[i] and (units[i].is_partial or len(stays[i]) < units[i].tokens) == partial:
                stays[i] = []
    flags = np.zeros(history.tokens, bool)
    flags[[token for kept in stays for token in kept]] = True
    return flags
