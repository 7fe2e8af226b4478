"""Train the demo model on the generated world: CPU, seeded, resumable.

python -m models.demo.train --out build/demo
"""

import argparse
import logging
import math
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor
from transformers import Qwen2_5OmniThinkerForConditionalGeneration as Thinker

from models.demo import architecture, fast, tokenizer
from models.demo.mel import darken, log_mel
from models.demo.stream import Batch, Layout, random_batch

log = logging.getLogger("train")

HELD_OUT = 7_000_000
KEEP_EVERY = 250


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the curriculum: until which share of all steps, streams of how many units, tokens a step."""

    until: float
    units: tuple[int, int]
    tokens: int


STAGES = (Stage(0.40, (1, 1), 5000), Stage(0.75, (1, 6), 5000), Stage(1.0, (1, 40), 6000))


def main() -> None:
    """Train, or go on where the last run stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for tokenizer, checkpoints and the best model")
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--rate", type=float, default=2e-3, help="highest learning rate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--prose", type=Path, nargs="*", default=[], help="text files that the tokenizer also learns")
    parser.add_argument("--start-from", type=Path, help="a saved model to begin with instead of fresh weights")
    parser.add_argument("--skip", type=float, default=0.0, help="share of the curriculum to leave out at the start")
    options = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    torch.set_num_threads(os.cpu_count() or 1)
    torch.manual_seed(options.seed)
    Trainer(options).run()


class Trainer:
    """Owns the model, its optimizer and the files of one run."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        out: Path = options.out
        if not (out / "tokenizer.json").exists():
            tokenizer.build(out, options.prose)
        words = Tokenizer.from_file(str(out / "tokenizer.json"))
        self.layout = Layout(words)
        self.model = architecture.load(options.start_from) if options.start_from else architecture.create(words)
        self.model.train()
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=options.rate, weight_decay=0.01, betas=(0.9, 0.95), fused=True
        )
        self.step = 0
        self.best = -1.0
        self.checkpoint = out / "checkpoint.pt"
        if self.checkpoint.exists():
            state = torch.load(self.checkpoint)
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.best = state["step"], state["best"]

    def run(self) -> None:
        """All remaining steps, with a score on held-out streams now and then."""
        right, asked, began = Counter[str](), Counter[str](), time.monotonic()
        for batch in self._batches():
            loss, correct = self._learn(batch)
            asked.update(batch.kinds)
            right.update(kind for kind, good in zip(batch.kinds, correct, strict=True) if good)
            self.step += 1
            if self.step % 50 == 0:
                shares = " ".join(f"{kind} {right[kind] / asked[kind]:.2f}" for kind in sorted(asked))
                pace = 50 / (time.monotonic() - began)
                log.info("step %d loss %.3f %.2f steps/s | %s", self.step, loss, pace, shares)
                right, asked, began = Counter(), Counter(), time.monotonic()
            if self.step % KEEP_EVERY == 0 or self.step == self.options.steps:
                self._keep()
                began = time.monotonic()

    def _batches(self) -> Iterator[Batch]:
        """Batches in order, two of them built ahead by a worker."""
        steps = range(self.step, self.options.steps)
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, context, _prepare, (str(self.options.out / "tokenizer.json"),)) as worker:
            ahead = [worker.submit(_build, *self._order(step)) for step in steps[:3]]
            for step in steps:
                batch = ahead.pop(0).result()
                if step + 3 < self.options.steps:
                    ahead.append(worker.submit(_build, *self._order(step + 3)))
                yield batch

    def _order(self, step: int) -> tuple[list[int], tuple[int, int], int]:
        share = self.options.skip + (1 - self.options.skip) * step / self.options.steps
        stage = next(stage for stage in STAGES if share < stage.until)
        return [self.options.seed, step], stage.units, stage.tokens

    def _learn(self, batch: Batch) -> tuple[float, np.ndarray]:
        warm = min(1.0, (self.step + 1) / 100)
        share = self.step / self.options.steps
        for group in self.optimizer.param_groups:
            group["lr"] = self.options.rate * warm * (0.02 + 0.98 * (0.5 + 0.5 * math.cos(math.pi * share)))
        scores = forward(self.model, batch, np.random.default_rng([self.options.seed, self.step, 1]))
        targets = torch.from_numpy(batch.targets)
        loss = F.cross_entropy(scores, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item(), exact(scores, batch)

    def _keep(self) -> None:
        """Write a checkpoint, score the model, and save it where it is the best so far."""
        marks = evaluate(self.model, self.layout)
        score = marks["mean"]
        log.info("held out: %s", " ".join(f"{name} {mark:.3f}" for name, mark in marks.items()))
        if score >= self.best:
            self.best = score
            architecture.save(self.model, self.options.out)
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "best": self.best,
        }
        torch.save(state, self.checkpoint.with_suffix(".new"))
        self.checkpoint.with_suffix(".new").replace(self.checkpoint)


def forward(model: Thinker, batch: Batch, rng: np.random.Generator | None = None) -> Tensor:
    """Scores of every answer token: [answer tokens, vocabulary]. With `rng`, some of the sound is darkened."""
    waves = torch.from_numpy(batch.waves)
    if rng is not None and len(waves):
        dull = torch.from_numpy(np.flatnonzero(rng.random(len(waves)) < 0.25))
        waves[dull] = darken(waves[dull], torch.from_numpy(rng.uniform(4500, 7900, len(dull))).float())
    mel = log_mel(waves, torch.from_numpy(batch.isolated))
    with torch.autocast("cpu", torch.bfloat16):
        embeddings = model.model.embed_tokens(torch.from_numpy(batch.ids)).flatten(0, 1)
        sights = fast.picture_embeddings(model, _rounded(torch.from_numpy(batch.images))).flatten(0, 1).float()
        sounds = fast.sound_embeddings(model, _rounded(mel)).flatten(0, 1).float()
        embeddings = embeddings.index_copy(0, torch.from_numpy(batch.image_at), sights[: len(batch.image_at)])
        embeddings = embeddings.index_copy(0, torch.from_numpy(batch.sound_at), sounds[: len(batch.sound_at)])
        grid = embeddings.view(*batch.ids.shape, -1)
        states = fast.hidden_states(model, grid, torch.from_numpy(batch.positions)).flatten(0, 1)
        predict = _rounded(torch.from_numpy(batch.predict), 64)
        return fast.logits(model, states[predict])[: len(batch.predict)]


def _rounded(rows: Tensor, step: int = 8) -> Tensor:
    """Zero rows up to a multiple of `step`: matrix kernels are prepared once a shape, so few shapes train faster."""
    return torch.cat([rows, rows.new_zeros(-len(rows) % step, *rows.shape[1:])])


def exact(scores: Tensor, batch: Batch) -> np.ndarray:
    """Which answers a greedy reading of the scores gets right in full: bool [answers]."""
    wrong = scores.argmax(-1).numpy() != batch.targets
    return np.bincount(batch.answer_of, wrong, len(batch.kinds)) == 0


def evaluate(model: Thinker, layout: Layout) -> dict[str, float]:
    """Share of exact answers on seeds that training never sees, by number of units, and their mean."""
    marks: dict[str, float] = {}
    with torch.no_grad():
        for units, batches in ((1, 2), (6, 2), (20, 3)):
            results = []
            for index in range(batches):
                batch = random_batch(layout, [HELD_OUT + units, index], (units, units), 8000)
                results.append(exact(forward(model, batch), batch))
            marks[f"{units} units"] = float(np.concatenate(results).mean())
    marks["mean"] = sum(marks.values()) / len(marks)
    return marks


_layout: Layout


def _prepare(path: str) -> None:
    global _layout
    _layout = Layout(Tokenizer.from_file(path))


def _build(seed: list[int], units: tuple[int, int], tokens: int) -> Batch:
    return random_batch(_layout, seed, units, tokens)


if __name__ == "__main__":
    main()
