"""What went into a session, remembered, so that a fresh run over what its ledger kept can be made at any time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.runtime.native_session import EncodedImage, NativeSession, Unit


@dataclass(frozen=True)
class Piece:
    """One span as it was added: tokens, or embeddings [n, n_embd] with a raster's width."""

    role: str
    tokens: tuple[int, ...] = ()
    rows: NDArray[np.float32] | None = None
    width: int = 0

    def __len__(self) -> int:
        return len(self.tokens) if self.rows is None else len(self.rows)


def pieces_of(image: EncodedImage) -> Iterator[Piece]:
    """The rows of an encoded picture and the marks between them."""
    token = row = 0
    for part in image.parts:
        if image.tokens[token] < 0:
            yield Piece(part.role, rows=image.rows[row : row + part.length], width=part.width)
            row += part.length
        else:
            yield Piece(part.role, tuple(image.tokens[token : token + part.length].tolist()))
        token += part.length


def add(session: NativeSession, piece: Piece) -> None:
    """Add one to the pending unit."""
    if piece.rows is None:
        session.add_tokens(piece.role, piece.tokens)
    else:
        session.add_rows(piece.role, piece.rows, width=piece.width)


def feed(session: NativeSession, kind: str, pieces: Sequence[Piece]) -> int:
    """Take a unit in; its id."""
    session.begin(kind)
    for piece in pieces:
        add(session, piece)
    return session.commit().unit


def replay(kept: Sequence[Unit], fed: Mapping[int, Sequence[Piece]], fresh: NativeSession) -> None:
    """Feed what a ledger kept of units fed before (by id) into a fresh session, at consecutive positions."""
    for unit in kept:
        fresh.begin(unit.kind)
        offset = 0
        pieces = iter(merged(fed[unit.id]))
        piece = next(pieces)
        for span in unit.spans:
            while (
                span.role != piece.role
                or span.first + span.length > len(piece)
                or (not span.continues and offset > span.first)
            ):
                piece, offset = next(pieces), 0
            left = slice(span.first, span.first + span.length)
            if piece.rows is None:
                fresh.add_tokens(span.role, piece.tokens[left])
            else:
                fresh.add_rows(
                    span.role, piece.rows[left], width=span.width, first=span.first, continues=span.continues
                )
            offset = left.stop
        fresh.commit()


def merged(pieces: Sequence[Piece]) -> list[Piece]:
    """Neighbouring pieces of text of one role are one span in the ledger."""
    out: list[Piece] = []
    for piece in pieces:
        if out and out[-1].role == piece.role and out[-1].rows is None and piece.rows is None:
            out[-1] = Piece(piece.role, out[-1].tokens + piece.tokens)
        else:
            out.append(piece)
    return out
