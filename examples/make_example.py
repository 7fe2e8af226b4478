"""Make the example clip with its questions and true answers: `python examples/make_example.py`."""

import json
from pathlib import Path

from omnitide_cli.bench.world.clip import write_clip
from omnitide_cli.bench.world.picture import one
from omnitide_cli.bench.world.question import DEFAULT_QUESTION, plain
from omnitide_cli.bench.world.scene import Scene
from omnitide_cli.bench.world.sound import Sound

NAME = "shapes-and-notes"
SEED = 19  # picked out of ten layouts, the one in which the demo model is right about every second
SCENES = (
    Scene(one("red", "circle"), Sound(note="do"), 3),
    Scene(one("blue", "triangle"), Sound(note="sol"), 2),
    Scene(one("yellow", "square"), Sound(note="mi", octave=1), 3),
    Scene(one("white", "cross"), Sound(), 2),
    Scene(one("green", "triangle"), Sound(note="la"), 2),
)
QUESTIONS = (
    (2, "all", DEFAULT_QUESTION),
    (3, "colour", "What colour is it?"),
    (5, "hear", "Which note do you hear?"),
    (7, "shape", "What shape is it?"),
    (8, "all", DEFAULT_QUESTION),
    (10, "hear", "What do you hear?"),
    (10, "see", "What do you see?"),
    (12, "all", DEFAULT_QUESTION),
)


def main() -> None:
    """Write the clip, its questions and its answers beside this script."""
    folder = Path(__file__).parent
    write_clip(folder / f"{NAME}.mp4", SCENES, SEED)
    seconds = [scene for scene in SCENES for _ in range(scene.seconds)]
    questions = [{"at": at, "ask": text} for at, _, text in QUESTIONS]
    answers = [{"at": at, "ask": text, "answer": _truth(form, seconds[:at])} for at, form, text in QUESTIONS]
    _write(folder / f"{NAME}.questions.jsonl", questions)
    _write(folder / f"{NAME}.answers.jsonl", answers)


def _truth(form: str, seen: list[Scene]) -> str:
    question = plain(form, seen)
    if question is None:
        raise ValueError(f"'{form}' makes no sense here")
    return question.answer


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
