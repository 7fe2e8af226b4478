"""Make the example clip with its questions and true answers: `python examples/make_example.py`."""

import json
from pathlib import Path

from omnitide_cli.bench.world.clip import write_clip
from omnitide_cli.bench.world.picture import Picture
from omnitide_cli.bench.world.question import DEFAULT_QUESTION, answer
from omnitide_cli.bench.world.scene import Scene
from omnitide_cli.bench.world.sound import Sound

NAME = "shapes-and-notes"
SEED = 19  # picked out of ten layouts, the one in which the demo model is right about every second
SCENES = (
    Scene(Picture("red", "circle"), Sound("do"), 3),
    Scene(Picture("blue", "triangle"), Sound("sol"), 2),
    Scene(Picture("yellow", "square"), Sound("mi", 1), 3),
    Scene(Picture("white", "cross"), Sound(), 2),
    Scene(Picture("green", "triangle"), Sound("la"), 2),
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
    answers = [{"at": at, "ask": text, "answer": answer(kind, seconds[:at])} for at, kind, text in QUESTIONS]
    _write(folder / f"{NAME}.questions.jsonl", questions)
    _write(folder / f"{NAME}.answers.jsonl", answers)


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
