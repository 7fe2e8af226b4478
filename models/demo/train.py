"""Train the demo model on the generated world: CPU, seeded, resumable.

python -m models.demo.train --out build/demo

Three parts: the encoders alone (senses.py), the language model on a bank of what they make of pictures and sounds,
and both together. Each ends with a falling rate; a stopped run goes on where its last checkpoint is. The pictures show
one figure at most: eyes that know shapes are taken from an earlier model (--encoders).
"""

import argparse
import logging
import os
import shutil
import time
from collections import Counter, deque
from pathlib import Path

import numpy as np
import torch
import torch.distributed as together
import torch.multiprocessing as processes
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor, nn

from models.demo import architecture, fast, tokenizer
from models.demo.bank import Bank
from models.demo.senses import Lesson, Meanings, draw_lesson, reading, settle
from models.demo.stream import SYSTEM, Batch, Hints, Layout, Stream
from omnitide_cli.bench.world.question import Question, ask, remember, reworded, unknown
from omnitide_cli.bench.world.scene import Scene
from omnitide_cli.bench.world.split import TRAINING, VALIDATION
from omnitide_cli.bench.world.stream import any_scenes
from omnitide_cli.bench.world.unknown import any_unknown

log = logging.getLogger("train")

_SYSTEMS = (SYSTEM, SYSTEM, SYSTEM, SYSTEM, None, "You are a helpful assistant.", "Answer briefly.", "")
_CHUNK = 8  # pictures and sounds that a process draws anew each step of the first part
_MEET = 8  # steps between two means of the processes' weights
_HINT = 0.3
_SHORT = 8  # units up to which streams are full of questions
_LAST = 3  # questions after the last second, or more
_MIX = {
    **{"all": 3, "see": 2, "hear": 3, "colour": 1, "shape": 1, "number": 0.2, "check": 2, "scope": 0.3},
    **{"ago": 5, "with": 8, "last": 7, "told": 8},
    **{"did": 3, "often": 4, "together": 2.5},
}
_CHANCES = np.array([*_MIX.values()]) / sum(_MIX.values())
_STRANGE = 0.08  # share of questions that the world has no answer to
_REWORDED = 0.08  # share of questions in words that the tests don't use
_TYPED = (0.0, 0.1, 0.3)
_OLD = 3  # chunks of before that it sees again in the step


def main() -> None:
    """Train, or go on where the last run stopped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for tokenizer, checkpoints and the model")
    parser.add_argument("--settle", type=int, default=4000, help="pictures and sounds that align the encoders")
    parser.add_argument("--senses", type=int, default=2000, help="steps of the encoders alone")
    parser.add_argument("--steps", type=int, default=20000, help="steps of the language model")
    parser.add_argument("--joint", type=int, default=1000, help="steps of both together")
    parser.add_argument("--units", type=int, default=40, help="the longest streams")
    parser.add_argument("--tokens", type=int, default=6000, help="tokens a step of the language model")
    parser.add_argument("--bank", type=int, default=12000, help="pictures and sounds of each process's bank")
    parser.add_argument("--rate", type=float, default=1.5e-3, help="highest learning rate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--prose", type=Path, nargs="*", default=[], help="text files that the tokenizer also learns")
    parser.add_argument("--encoders", type=Path, help="a saved model whose encoders to begin with")
    parser.add_argument("--begin", type=Path, help="a saved model to begin with; streams are long at once")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes, one core each")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if not (options.out / "tokenizer.json").exists():
        if options.begin:
            for name in tokenizer.FILES:
                shutil.copy(options.begin / name, options.out)
        else:
            tokenizer.build(options.out, options.prose)
    (options.out / "meeting").unlink(missing_ok=True)
    processes.spawn(_work, (options,), nprocs=options.workers)


def _work(rank: int, options: argparse.Namespace) -> None:
    """One of several equal processes, which average their weights; one core each is faster than many threads."""
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO if rank == 0 else logging.WARNING)
    store = together.FileStore(str(options.out / "meeting"), options.workers)
    together.init_process_group("gloo", store=store, rank=rank, world_size=options.workers)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    Trainer(options, rank).run()
    together.destroy_process_group()


class Trainer:
    """Owns the model, its optimizer and the files of one run."""

    def __init__(self, options: argparse.Namespace, rank: int) -> None:
        self.options = options
        self.rank = rank
        self.words = Tokenizer.from_file(str(options.out / "tokenizer.json"))
        self.layout = Layout(self.words)
        begin, encoders = options.begin, options.encoders
        self.model = (architecture.load(begin) if begin else architecture.create(self.words, encoders)).train()
        self.done = {"senses": 0, "steps": 0, "joint": 0}
        self.optimizer: torch.optim.AdamW | None = None
        self.checkpoint = options.out / "checkpoint.pt"
        self.state = torch.load(self.checkpoint) if self.checkpoint.exists() else None
        if self.state:
            self.model.load_state_dict(self.state["model"])
            self.done = self.state["done"]

    def run(self) -> None:
        """All that is left of the three parts."""
        encoders: list[nn.Module] = [self.model.visual, self.model.audio_tower]
        if self.done["senses"] < self.options.senses:
            self._open_senses(encoders)
        bank = Bank(self.model, TRAINING, [self.options.seed, self.rank, self.done["steps"]], self.options.bank)
        trial = Bank(self.model, VALIDATION, [self.options.seed, 7], self.options.bank // 10)
        for part, modules, rate in (
            ("steps", [self.model.model], self.options.rate),
            ("joint", [self.model.model, *encoders], self.options.rate * 0.2),
        ):
            if self.done[part] < getattr(self.options, part):
                self._study(part, modules, rate, bank, trial)

    def _open_senses(self, encoders: list[nn.Module]) -> None:
        """Let the encoders' outputs resemble words: at once by regression, then better and better by descent."""
        meanings = Meanings(self.model, self.words)
        if self.done["senses"] == 0:
            settle(self.model, meanings, TRAINING, [self.options.seed, self.rank, 2], self.options.settle)
            log.info("settled; %s", self._sharpness(meanings))
        self._prepare(encoders)
        total, began, seen = self.options.senses, time.monotonic(), Counter[str]()
        old: deque[Lesson] = deque(maxlen=128)
        while (step := self.done["senses"]) < total:
            rng = np.random.default_rng([self.options.seed, step, self.rank, 4])
            old.append(draw_lesson([self.options.seed, step, self.rank, 3], TRAINING, _CHUNK))
            parts = [old[-1], *(old[int(rng.integers(len(old)))] for _ in range(_OLD))]
            joined = Lesson(*(torch.cat([getattr(part, name) for part in parts]) for name in Lesson.__slots__))
            loss, shares = reading(self.model, meanings, joined)
            self._descend(loss, "senses", self.options.rate)
            seen.update(shares)
            if self.done["senses"] % 50 == 0:
                pace, began = 50 / (time.monotonic() - began), time.monotonic()
                means = " ".join(f"{name} {seen[name] / 50:.3f}" for name in seen)
                log.info("senses %d loss %.3f %.2f/s | %s", step + 1, loss.item(), pace, means)
                seen.clear()
            if self.done["senses"] % 100 == 0 or self.done["senses"] == total:
                self._write()
        log.info("senses open; %s", self._sharpness(meanings))

    def _sharpness(self, meanings: Meanings) -> str:
        """Shares of held-out pictures and sounds that the nearest words name."""
        with torch.no_grad():
            _, shares = reading(self.model, meanings, draw_lesson([self.options.seed, 5], VALIDATION, 200))
        return " ".join(f"{name} {share:.3f}" for name, share in shares.items())

    def _study(self, part: str, modules: list[nn.Module], rate: float, bank: Bank, trial: Bank) -> None:
        """Train on streams with questions, and score on held-out ones now and then."""
        self._prepare(modules)
        live = part == "joint"
        right, asked, began, losses, hints = Counter[str](), Counter[str](), time.monotonic(), 0.0, 0.0
        plan = self.options.out / f"{part}.plan"  # a number written there while it runs replaces the option
        while (step := self.done[part]) < getattr(self.options, part):
            if step % _MEET == 0 and plan.exists():
                setattr(self.options, part, int(plan.read_text()) // _MEET * _MEET)
            batch = self._batch(bank, step, live)
            scores, held, said, views = self._scores(bank, batch, live)
            each = F.cross_entropy(scores, torch.from_numpy(batch.targets), reduction="none")
            loss = (each * torch.from_numpy(batch.weights)).mean()
            hint = _hint(held, batch.ends) + _hint(said, batch.asks) + _hint(views, batch.looks)
            self._descend(loss + _HINT * hint, part, rate)
            losses += loss.item()
            hints += hint.item()
            tally(scores, batch, right, asked)
            if self.done[part] % 50 == 0:
                pace, began = 50 / (time.monotonic() - began), time.monotonic()
                shares = _shares(right, asked)
                log.info("%s %d loss %.3f %.3f %.2f/s | %s", part, step + 1, losses / 50, hints / 50, pace, shares)
                right, asked, losses, hints = Counter(), Counter(), 0.0, 0.0
            if self.done[part] % 500 == 0 or self.done[part] == getattr(self.options, part):
                if live:
                    trial.encode()
                if self.rank == 0:
                    log.info("held out: %s", self._examine(trial))
                    self._write()
                    architecture.save(self.model, self.options.out)
                together.barrier()
                began = time.monotonic()

    def _prepare(self, modules: list[nn.Module]) -> None:
        weights = [weight for module in modules for weight in module.parameters()]
        self.optimizer = torch.optim.AdamW(weights, lr=1e-3, weight_decay=0.01, betas=(0.9, 0.98), fused=True)
        if self.state and len(self.state["optimizer"]["param_groups"][0]["params"]) == len(weights):
            self.optimizer.load_state_dict(self.state["optimizer"])
        self.state = None

    def _descend(self, loss: Tensor, part: str, rate: float) -> None:
        """A step of this process, and now and then the mean of all: so none waits for a core that others use."""
        assert self.optimizer is not None
        step, total = self.done[part], getattr(self.options, part)
        weights = self.optimizer.param_groups[0]["params"]
        self.optimizer.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / 100, 0.02 + 3 * (1 - step / total))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.done[part] += 1
        if self.done[part] % _MEET == 0 or self.done[part] == total:
            with torch.no_grad():
                flat = torch.cat([weight.flatten() for weight in weights])
                together.all_reduce(flat)
                for weight, piece in zip(weights, flat.split([w.numel() for w in weights]), strict=True):
                    weight.copy_(piece.view_as(weight) / self.options.workers)

    def _batch(self, bank: Bank, step: int, live: bool) -> Batch:
        """This process's part of the step: streams as long as everyone else's, other ones."""
        seed = [self.options.seed, step, int(live)]
        done = 1.0 if live or self.options.begin else step / self.options.steps
        short = min(_SHORT, self.options.units)
        longest = 2 + (short - 2) * min(1.0, 4 * done) + (self.options.units - short) * min(max(4 * done - 2, 0.0), 1.0)
        drawn = np.random.default_rng(seed)
        few, many = np.exp(drawn.uniform(0, np.log(longest + 1))), drawn.uniform(1, longest + 1)
        units = int(few if drawn.random() < 0.5 else many)
        rng = np.random.default_rng([*seed, self.rank + 1])
        return random_batch(self.layout, bank, rng, units, self.options.tokens // self.options.workers)

    def _scores(self, bank: Bank, batch: Batch, live: bool) -> tuple[Tensor, ...]:
        """Scores of answer tokens, of the words for every unit halfway, for every question late: [.., vocabulary].

        And of the places at which questions about earlier units look.
        """
        embeddings = bank.embeddings(batch, live)
        places = (batch.positions, batch.wanted, batch.ends.places, batch.asks.places, batch.looks.places)
        with torch.autocast("cpu", torch.bfloat16):
            states, ends, asks, views = fast.hidden_states(self.model, embeddings, *map(torch.from_numpy, places))
            answers = fast.logits(self.model, states.flatten(0, 1)[torch.from_numpy(batch.asked)])
            held, said = (fast.logits(self.model, hint.flatten(0, 1)) for hint in (ends, asks))
            return answers, held, said, views.flatten(0, 1)

    def _examine(self, trial: Bank) -> str:
        """Shares of right answers by kind, in held-out streams of 4 and of 32 units."""
        parts = []
        with torch.no_grad():
            for units, count in ((4, 6), (32, 8)):
                right, asked = Counter[str](), Counter[str]()
                for index in range(count):
                    batch = random_batch(self.layout, trial, np.random.default_rng([9, units, index]), units, 4000)
                    tally(self._scores(trial, batch, False)[0], batch, right, asked)
                parts.append(f"[{units} units] {_shares(right, asked)}")
        return " ".join(parts)

    def _write(self) -> None:
        """The checkpoint, replaced as a whole."""
        assert self.optimizer is not None
        if self.rank == 0:
            state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "done": self.done}
            torch.save(state, self.checkpoint.with_suffix(".new"))
            self.checkpoint.with_suffix(".new").replace(self.checkpoint)


def random_batch(layout: Layout, bank: Bank, rng: np.random.Generator, units: int, tokens: int) -> Batch:
    """Streams of so many units each, about `tokens` tokens in all."""
    asking = float(rng.choice([0.4, 1.0, 3.0] if units <= _SHORT else [0.3, 1.0, 1.5]))
    rows = max(1, int(tokens / (units * (45 + 29 * asking) + 29 * _LAST)))
    return layout.pad([random_stream(layout, bank, rng, units, asking) for _ in range(rows)])


def random_stream(layout: Layout, bank: Bank, rng: np.random.Generator, units: int, asking: float) -> Stream:
    """Seconds with about `asking` questions after each, a few after the last."""
    stream = Stream()
    layout.system(stream, _SYSTEMS[int(rng.integers(len(_SYSTEMS)))])
    scenes = any_scenes(rng, units, bank.draw, typed=float(rng.choice(_TYPED)))
    for last, scene in enumerate(scenes):
        bank.media(layout, stream, scene, rng)
        if scene.typed:
            write(layout, stream, remember(scene.typed))
        for _ in range(max(int(rng.poisson(asking)), _LAST * (last == units - 1))):
            exchange(layout, stream, scenes[: last + 1], rng)
    return stream


def exchange(layout: Layout, stream: Stream, seen: list[Scene], rng: np.random.Generator) -> None:
    """A question about `seen` and its answer, written into the stream."""
    question = None
    if rng.random() < _STRANGE:
        question = unknown(any_unknown(TRAINING, rng))
    while question is None:
        question = ask(str(rng.choice(list(_MIX), p=_CHANCES)), seen, rng)
    write(layout, stream, reworded(question) if rng.random() < _REWORDED else question)


def write(layout: Layout, stream: Stream, question: Question) -> None:
    """A question, or what is to be remembered, and what is said to it."""
    layout.question(stream, question.text)
    layout.answer(stream, question)


def tally(scores: Tensor, batch: Batch, right: Counter[str], asked: Counter[str]) -> None:
    """Count the questions and those that a greedy reading of the scores answers exactly, by form."""
    wrong = scores.argmax(-1).numpy() != batch.targets
    missed = np.bincount(batch.answer_of, wrong, len(batch.questions))
    asked.update(question.form for question in batch.questions)
    right.update(question.form for question, errors in zip(batch.questions, missed, strict=True) if not errors)


def _hint(scores: Tensor, hints: Hints) -> Tensor:
    """How far these scores are from what is to be known there."""
    if not len(hints.of):
        return scores.sum() * 0
    return F.cross_entropy(scores[torch.from_numpy(hints.of)], torch.from_numpy(hints.words))


def _shares(right: Counter[str], asked: Counter[str]) -> str:
    return " ".join(f"{form} {right[form] / asked[form]:.2f}" for form in asked)


if __name__ == "__main__":
    main()
