"""Score model files through OmniTide's own runtime, greedy, on held-out streams: `python -m models.demo.score`."""

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

from models.demo.convert import PROJECTOR, TEXT
from omnitide_cli.bench.world.question import OUT_OF_SCOPE, UNCLEAR, Question
from omnitide_cli.bench.world.render import units_of
from omnitide_cli.bench.world.scene import simple_scene
from omnitide_cli.bench.world.split import SPLITS, Split
from omnitide_cli.bench.world.stream import Stream, any_stream
from omnitide_cli.bench.world.unknown import any_unknown
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
    parser.add_argument("--unknown", type=int, default=0, help="ask only so many questions that it can't know")
    parser.add_argument("--wrong", type=int, default=0, help="print that many wrong answers")
    options = parser.parse_args()
    files = ModelFiles("demo", options.files / TEXT, options.files / PROJECTOR)
    if options.unknown:
        return print_unknown(files, SPLITS[options.split], options.unknown, options.first)
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


def print_unknown(files: ModelFiles, split: Split, wanted: int, first: int) -> None:
    """Ask `wanted` different questions that the world has no answer to, five a stream; print what was made of them."""
    rng, said = split.rng(first), Counter[str]()
    texts = set[str]()
    while len(texts) < wanted:
        texts.add(any_unknown(split, rng))
    left = sorted(texts)
    for seed in count(first):
        stream = any_stream(split, seed, 6, 6, draw=simple_scene)
        for text, answer in zip(left, replies(files, stream, left[:5]), strict=False):
            said["unclear" if answer in (UNCLEAR, OUT_OF_SCOPE) else "something else"] += 1
            if answer not in (UNCLEAR, OUT_OF_SCOPE):
                print(f"{text} {answer}")
        left = left[5:]
        if not left:
            break
    print(f"unclear {said['unclear'] / said.total():.3f} of {said.total()}")


def replies(files: ModelFiles, stream: Stream, questions: Sequence[str]) -> Iterator[str]:
    """What the model says to each question, one a second from the second one on."""
    with opened(files, len(stream.scenes), "f16") as engine:
        engine.start(f"{stream.split.name} {stream.seed}")
        asked = iter(questions)
        for index, unit in enumerate(units_of(stream)):
            engine.ingest(unit)
            if index and (question := next(asked, None)) is not None:
                yield from (event.text for event in engine.ask(question, unit.end) if isinstance(event, Answer))


def opened(files: ModelFiles, units: int, cache_type: str) -> Engine:
    """An engine that forgets nothing of so many units."""
    flash = "on" if cache_type == "q8_0" else "auto"
    settings = EngineOptions(policy="full", ctx=128 + units * 100, cache_type=cache_type, flash_attn=flash)
    return Engine.open(files, load_manifest("omnitide-demo").prompt, settings)


def answers(files: ModelFiles, split: Split, seed: int, units: int, cache_type: str) -> Iterator[tuple[Question, str]]:
    """Every question of a stream with what the model says, nothing forgotten."""
    stream = any_stream(split, seed, units, max(6, units), draw=simple_scene)
    with opened(files, units, cache_type) as engine:
        engine.start(f"{split.name} {seed}")
        for unit, due in zip(units_of(stream), stream.due(), strict=True):
            engine.ingest(unit)
            for question in due:
                for event in engine.ask(question.text, unit.end):
                    if isinstance(event, Answer) and question.kind != "typed":
                        yield question, event.text


if __name__ == "__main__":
    main()
