"""What a user types is text, whatever names of special tokens it holds.

llama.cpp looks for the names of control tokens only when asked to, but always for those that a file types as
user-defined, as conversions of many models do with their marks.
"""

from __future__ import annotations

from collections.abc import Callable


def tokenize_typed(
    words: str, tokenize: Callable[[str], list[int]], name_of_mark: Callable[[int], str | None]
) -> list[int]:
    """Tokens of `words`, none of which is a mark: words are cut behind the first character of each mark's name.

    `name_of_mark` gives None for tokens of text. A tokenizer that puts a space before text does so at each cut.
    """
    tokens: list[int] = []
    pieces = [words]
    while pieces:
        piece = pieces.pop()
        found = tokenize(piece)
        name = next(filter(None, map(name_of_mark, found)), None)
        if name is None or len(piece) < 2:
            tokens += found
        else:
            pieces += reversed(_cut(piece, name))
    return tokens


def _cut(piece: str, name: str) -> list[str]:
    """`piece` without the name in one piece; in half where the name is written in another way than it is found."""
    begin, *rest = piece.split(name) if len(name) > 1 else [piece]
    if not rest:
        middle = len(piece) // 2
        return [piece[:middle], piece[middle:]]
    return [begin + name[0], *(name[1:] + between + name[0] for between in rest[:-1]), name[1:] + rest[-1]]
