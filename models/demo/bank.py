"""A stock of pictures and sounds with what the encoders make of them, so that most of training needs no encoder."""

from collections import defaultdict

import numpy as np
import torch
from torch import Tensor
from transformers import Qwen2_5OmniThinkerForConditionalGeneration as Thinker

from models.demo import fast
from models.demo.senses import mels_of
from models.demo.stream import Batch, Layout, Stream, windows_of
from omnitide_cli.bench.world.picture import Picture, any_picture
from omnitide_cli.bench.world.render import frame_of
from omnitide_cli.bench.world.scene import MISSING, OUTSIDE, Scene
from omnitide_cli.bench.world.sound import Sound, any_sound
from omnitide_cli.bench.world.split import Split

_AT_ONCE = 64


class Bank:
    """`size` pictures and as many sounds of a split, drawn from a seed."""

    def __init__(self, model: Thinker, split: Split, seed: list[int], size: int) -> None:
        rng = np.random.default_rng(seed)
        self._model = model
        self.pictures = [any_picture(rng, OUTSIDE, simple=True) for _ in range(size)]
        self.sounds = [any_sound(rng, OUTSIDE) for _ in range(size)]
        self._images = torch.from_numpy(np.stack([frame_of(picture, rng, split) for picture in self.pictures]))
        mels = []
        for first in range(0, size, _AT_ONCE):
            waves = torch.from_numpy(windows_of(self.sounds[first : first + _AT_ONCE], rng, split))
            mels.append(mels_of(waves, rng).bfloat16())
        self._mels = torch.cat(mels)
        self._by_picture: dict[Picture, list[int]] = defaultdict(list)
        self._by_sound: dict[Sound, list[int]] = defaultdict(list)
        for index, (picture, sound) in enumerate(zip(self.pictures, self.sounds, strict=True)):
            self._by_picture[picture].append(index)
            self._by_sound[sound].append(index)
        self.encode()

    def encode(self) -> None:
        """Compute all embeddings with the model's present weights."""
        with torch.no_grad():
            parts = range(0, len(self.pictures), _AT_ONCE)
            self._sights = torch.cat([self._see(self._images[i : i + _AT_ONCE]) for i in parts])
            self._heard = torch.cat([self._hear(self._mels[i : i + _AT_ONCE]) for i in parts])

    def draw(self, rng: np.random.Generator) -> Scene:
        """A scene of which the bank has a picture and a sound, either of which may be missing."""
        picture = self.pictures[int(rng.integers(len(self.pictures)))]
        sound = self.sounds[int(rng.integers(len(self.sounds)))]
        chance = rng.random()
        return Scene(None if chance < MISSING else picture, None if MISSING <= chance < 2 * MISSING else sound)

    def media(self, layout: Layout, stream: Stream, scene: Scene, rng: np.random.Generator) -> None:
        """Write a scene into a stream, by one of the bank's pictures and sounds of that content."""
        layout.media(
            stream,
            None if scene.picture is None else int(rng.choice(self._by_picture[scene.picture])),
            None if scene.sound is None else int(rng.choice(self._by_sound[scene.sound])),
        )
        layout.note(stream, [*scene.sights(), scene.hearing()])

    def embeddings(self, batch: Batch, live: bool) -> Tensor:
        """Word embeddings with the media's in their places: [rows, tokens, hidden]; `live`: by the encoders, now."""
        words = self._model.model.embed_tokens(torch.from_numpy(batch.ids)).flatten(0, 1).bfloat16()
        if batch.images:
            picked = torch.tensor(batch.images)
            sights = self._see(self._images[picked]) if live else self._sights[picked]
            words = words.index_copy(0, torch.from_numpy(batch.image_at), sights.flatten(0, 1))
        if batch.sounds:
            picked = torch.tensor(batch.sounds)
            heard = self._hear(self._mels[picked]) if live else self._heard[picked]
            words = words.index_copy(0, torch.from_numpy(batch.sound_at), heard.flatten(0, 1))
        return words.view(*batch.ids.shape, -1)

    def _see(self, images: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return fast.picture_embeddings(self._model, images).bfloat16()

    def _hear(self, mels: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return fast.sound_embeddings(self._model, mels.float()).bfloat16()
