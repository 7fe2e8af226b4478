"""Make the example clip with its questions and true answers: `python examples/make_example.py`."""

import argparse
import json
from pathlib import Path

import numpy as np

from omnitide_cli.bench.world.clip import write_clip
from omnitide_cli.bench.world.picture import one
from omnitide_cli.bench.world.question import DEFAULT_QUESTION, FORMS, ask
from omnitide_cli.bench.world.scene import Scene
from omnitide_cli.bench.world.sound import NOTES, Sound

NAME = "shapes-and-notes"
SEED = 19
STORY = (  # a picture, and what is heard in each of its seconds
    ("red circle", "apple", ""),
    ("blue square", "do", "do"),
    ("yellow triangle", "river", ""),
    ("green cross", "sol", "sol"),
    ("purple circle", "apple", ""),
    ("white square", "window", ""),
    ("orange triangle", "mi", "mi"),
    ("cyan cross", "piano", ""),
    ("blue circle", "dragon", ""),
    ("red square", "la", "la"),
    ("green triangle", "apple", ""),
    ("white circle", "lemon", ""),
    ("yellow cross", "fa", "fa"),
    ("orange square", "river", ""),
    ("purple triangle", "sun", ""),
    ("red cross", "si", "si"),
    ("cyan circle", "island", ""),
    ("green square", "house", ""),
    ("blue triangle", "re", "re"),
    ("white cross", "apple", ""),
    ("orange circle", "fish", ""),
    ("cyan square", "do", "do"),
)
QUESTIONS = (  # seconds, and what is asked then; the shipped model misses two or three: no measurement
    (1, DEFAULT_QUESTION),
    (2, "What did you hear one second ago?"),
    (3, "What colour is it?"),
    (4, "What do you hear?"),
    (5, "What did you last see with the word apple?"),
    (6, "What do you see?"),
    (7, DEFAULT_QUESTION),
    (9, "What was the last note?"),
    (13, "What shape is it?"),
    (16, "Did you hear the word piano?"),
    (17, DEFAULT_QUESTION),
    (19, "What was the last word?"),
    (21, "What was the last note?"),
    (21, "Did you see a green triangle?"),
    (25, "What shape is it?"),
    (25, "What did you last see with the word lemon?"),
    (27, DEFAULT_QUESTION),
    (27, "What was the last note?"),
    (30, "Do you see a purple triangle?"),
    (31, "What do you see and hear now?"),
    (33, "What did you last hear with the cyan cross?"),
    (35, "Did you hear the word house?"),
    (37, "What do you hear?"),
    (39, "What was the last note?"),
    (39, "Did you hear the word guitar?"),
    (41, "What do you see?"),
    (42, "What did you last see with the word apple?"),
    (43, "How often did you hear the word fish?"),
    (43, "How often did you hear the word river?"),
    (44, DEFAULT_QUESTION),
)


def main() -> None:
    """Write the clip, its questions and its answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    scenes = [
        Scene(one(*picture.split()), Sound(note=heard) if heard in NOTES else Sound(word=heard))
        for picture, *seconds in STORY
        for heard in seconds
    ]
    write_clip(options.out / f"{NAME}.mp4", scenes, options.seed)
    questions = [{"at": at, "ask": text} for at, text in QUESTIONS]
    answers = [{"at": at, "ask": text, "answer": truth(text, scenes[:at])} for at, text in QUESTIONS]
    _write(options.out / f"{NAME}.questions.jsonl", questions)
    _write(options.out / f"{NAME}.answers.jsonl", answers)


def truth(text: str, seen: list[Scene]) -> str:
    """What the world says to this question after these seconds: it is asked until it asks the same."""
    rng = np.random.default_rng(0)
    for form in list(FORMS) * 3000:
        question = ask(form, seen, rng)
        if question is not None and question.text == text:
            return question.answer
    raise ValueError(f"nobody would ask '{text}' here")


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
