"""Train the demo model on the generated world: CPU, seeded, resumable.

python -m models.demo.train --out build/demo
"""

import argparse
import logging
import math
import os
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.distributed as together
import torch.multiprocessing as processes
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import Qwen2_5OmniThinkerForConditionalGeneration as Thinker

from models.demo import architecture, fast, tokenizer
from models.demo.mel import darken, log_mel
from models.demo.senses import Heads, lesson
from models.demo.stream import Batch, Layout, random_batch

log = logging.getLogger("train")

HELD_OUT = 7_000_000
KEEP_EVERY = 100


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the curriculum: until which share of all steps, streams of how many units, tokens a step."""

    until: float
    units: tuple[int, int]
    tokens: int


STAGES = (Stage(0.30, (1, 1), 5000), Stage(0.75, (1, 6), 5000), Stage(1.0, (1, 40), 6000))


def main() -> None:
    """Train, or go on where the last run stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for tokenizer, checkpoints and the best model")
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--senses", type=int, default=2000, help="steps for the encoders alone, before all others")
    parser.add_argument("--rate", type=float, default=2e-3, help="highest learning rate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--prose", type=Path, nargs="*", default=[], help="text files that the tokenizer also learns")
    parser.add_argument("--start-from", type=Path, help="a saved model to begin with instead of fresh weights")
    parser.add_argument("--skip", type=float, default=0.0, help="share of the curriculum to leave out at the start")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes, one core each")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if not (options.out / "tokenizer.json").exists():
        tokenizer.build(options.out, options.prose)
    (options.out / "meeting").unlink(missing_ok=True)
    processes.spawn(_work, (options,), nprocs=options.workers)


def _work(rank: int, options: argparse.Namespace) -> None:
    """One of several equal processes, which share gradients; one core each is faster than many threads."""
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
        words = Tokenizer.from_file(str(options.out / "tokenizer.json"))
        self.layout = Layout(words)
        self.model = architecture.load(options.start_from) if options.start_from else architecture.create(words)
        self.model.train()
        self.optimizer = self._optimizer([self.model])
        self.step = 0
        self.best = -1.0
        self.checkpoint = options.out / "checkpoint.pt"
        if self.checkpoint.exists():
            state = torch.load(self.checkpoint)
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.best = state["step"], state["best"]
        elif options.senses:
            self._open_senses()

    def run(self) -> None:
        """All remaining steps, with a score on held-out streams now and then."""
        right, asked, began = Counter[str](), Counter[str](), time.monotonic()
        while self.step < self.options.steps:
            batch = self._batch()
            loss, correct = self._learn(batch)
            asked.update(batch.kinds)
            right.update(kind for kind, good in zip(batch.kinds, correct, strict=True) if good)
            self.step += 1
            if self.step % 50 == 0:
                shares = " ".join(f"{kind} {right[kind] / asked[kind]:.2f}" for kind in sorted(asked))
                pace = 50 / (time.monotonic() - began)
                log.info("step %d loss %.3f %.2f steps/s | %s", self.step, loss, pace, shares)
                right, asked, began = Counter(), Counter(), time.monotonic()
            if self.rank == 0 and (self.step % KEEP_EVERY == 0 or self.step == self.options.steps):
                self._keep()
                began = time.monotonic()

    def _open_senses(self) -> None:
        """Train the encoders by themselves, then forget how they were read."""
        heads = Heads()
        optimizer = self._optimizer([self.model.visual, self.model.audio_tower, heads])
        total = self.options.senses
        seen = Counter[str]()
        for step in range(total):
            ease = max(0.0, 1 - 1.4 * step / total)
            loss, shares = heads(self.model, lesson([self.options.seed, step, self.rank, 2], ease))
            self._descend(loss, optimizer, step, total)
            seen.update(shares)
            if step % 100 == 99:
                means = " ".join(f"{name} {seen[name] / 100:.3f}" for name in sorted(seen))
                log.info("senses %d ease %.2f loss %.3f | %s", step + 1, ease, loss.item(), means)
                seen.clear()
        if self.rank == 0:
            self._write()

    def _optimizer(self, modules: list[nn.Module]) -> torch.optim.AdamW:
        weights = [weight for module in modules for weight in module.parameters()]
        return torch.optim.AdamW(weights, lr=self.options.rate, weight_decay=0.01, betas=(0.9, 0.95), fused=True)

    def _descend(self, loss: Tensor, optimizer: torch.optim.AdamW, step: int, total: int) -> None:
        """One step of all processes along their mean gradient: short warm-up, then half a cosine."""
        rate = self.options.rate * min(1.0, (step + 1) / 100) * (0.51 + 0.49 * math.cos(math.pi * step / total))
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss.backward()
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        together.all_reduce(flat)
        flat /= self.options.workers
        for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        optimizer.zero_grad()

    def _batch(self) -> Batch:
        """This process's part of the step: as many seconds as everyone else's, other ones."""
        share = self.options.skip + (1 - self.options.skip) * self.step / self.options.steps
        stage = next(stage for stage in STAGES if share < stage.until)
        seed = [self.options.seed, self.step]
        low, high = np.log(stage.units[0]), np.log(stage.units[1] + 1)
        units = int(np.exp(np.random.default_rng(seed).uniform(low, high)))
        return random_batch(self.layout, [*seed, self.rank], units, stage.tokens // self.options.workers)

    def _learn(self, batch: Batch) -> tuple[float, np.ndarray]:
        scores = forward(self.model, batch, np.random.default_rng([self.options.seed, self.step, self.rank, 1]))
        targets = torch.from_numpy(batch.targets)
        loss = F.cross_entropy(scores, targets)
        self._descend(loss, self.optimizer, self.step, self.options.steps)
        return loss.item(), exact(scores, batch)

    def _keep(self) -> None:
        """Score the model, save it where it is the best so far, and write a checkpoint."""
        marks = evaluate(self.model, self.layout)
        score = marks["mean"]
        log.info("held out: %s", " ".join(f"{name} {mark:.3f}" for name, mark in marks.items()))
        if score >= self.best:
            self.best = score
            architecture.save(self.model, self.options.out)
        self._write()

    def _write(self) -> None:
        """The checkpoint, replaced as a whole."""
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
                batch = random_batch(layout, [HELD_OUT + units, index], units, 8000)
                results.append(exact(forward(model, batch), batch))
            marks[f"{units} units"] = float(np.concatenate(results).mean())
    marks["mean"] = sum(marks.values()) / len(marks)
    return marks


if __name__ == "__main__":
    main()
