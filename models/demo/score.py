"""Score model files through OmniTide's own runtime, greedy, on held-out streams: `python -m models.demo.score`."""

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from models.demo.convert import PROJECTOR, TEXT
from omnitide_cli.bench.world.question import Question
from omnitide_cli.bench.world.render import units_of
from omnitide_cli.bench.world.scene import simple_scene
from omnitide_cli.bench.world.split import SPLITS, Split
from omnitide_cli.bench.world.stream import any_stream
from omnitide_cli.catalog.manifest import load_manifest
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.runtime.events import Answer
from omnitide_cli.runtime.options import EngineOptions, ModelFiles

NEAR = 32  # units; questions about older events are counted apart


def main() -> None:
    """Print shares of exact answers by kind, by kind and sense, and by form, with the number of questions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=Path, default=Path(__file__).parent, help="folder of the two GGUF files")
    parser.add_argument("--split", default="validation", choices=[name for name in SPLITS if name != "training"])
    parser.add_argument("--units", type=int, nargs="+", default=[4, 12, 32], help="lengths of the streams")
    parser.add_argument("--streams", type=int, default=10, help="streams of each length")
    parser.add_argument("--first", type=int, default=0, help="seed of the first stream")
    parser.add_argument("--cache-type", default="f16", choices=["f16", "q8_0", "f32"])
    parser.add_argument("--wrong", type=int, default=0, help="print that many wrong answers")
    options = parser.parse_args()
    files = ModelFiles("demo", options.files / TEXT, options.files / PROJECTOR)
    right, asked = Counter[str](), Counter[str]()
    wrong: dict[str, list[str]] = defaultdict(list)
    for units in options.units:
        for seed in range(options.first, options.first + options.streams):
            for question, answer in answers(files, SPLITS[options.split], seed, units, options.cache_type):
                age = "far " if question.age is not None and question.age > NEAR else ""
                names = [
                    "",
                    question.kind,
                    f"{question.kind} {question.sense}",
                    f"  {question.form}",
                    f"in {units} units",
                ]
                for name in names:
                    asked[age + name] += 1
                    right[age + name] += answer == question.answer
                if answer != question.answer:
                    wrong[question.form].append(f"{question.text} {question.answer} | {answer}")
    for name in sorted(asked):
        print(f"{name or 'all':24} {right[name] / asked[name]:.3f} of {asked[name]}")
    for form, lines in sorted(wrong.items()):
        for line in lines[: options.wrong]:
            print(f"{form}: {line}")


def answers(files: ModelFiles, split: Split, seed: int, units: int, cache_type: str) -> Iterator[tuple[Question, str]]:
    """Every question of a stream with what the model says, nothing forgotten."""
    stream = any_stream(split, seed, units, max(6, units), draw=simple_scene)
    manifest = load_manifest("omnitide-demo")
    flash = "on" if cache_type == "q8_0" else "auto"
    settings = EngineOptions(policy="full", ctx=128 + units * 100, cache_type=cache_type, flash_attn=flash)
    with Engine.open(files, manifest.prompt, settings) as engine:
        engine.start(f"{split.name} {seed}")
        for unit, due in zip(units_of(stream), stream.due(), strict=True):
            engine.ingest(unit)
            for question in due:
                for event in engine.ask(question.text, unit.end):
                    if isinstance(event, Answer) and question.kind != "typed":
                        yield question, event.text


if __name__ == "__main__":
    main()
