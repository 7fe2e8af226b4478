"""After any evictions, shifts and moves the cache holds what a fresh run over the kept tokens would hold.

Layer-0 keys depend on a token and its position alone, so a fresh run over the kept tokens at their new positions
must give the same ones; deeper layers have seen what is gone. Logits are compared between layouts, which may not
change them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from random_stream import Part, Running, Stream
from tiny_models import write_attention_model

from omnitide_cli.catalog.files import fetch_files
from omnitide_cli.catalog.manifest import load_manifest
from omnitide_cli.media import open_source
from omnitide_cli.runtime.native_session import LAYOUTS
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.template import TokenTemplate
from omnitide_cli.session.configuration import frame_fit

N_CTX = 512
PAGE = 16
HISTORY: dict[str, Any] = {"high_watermark": 380, "low_watermark": 240, "recent_units": 2, "text_budget": 40}
CACHES = [("f16", "on"), ("f16", "off"), ("q8_0", "on")]  # llama.cpp reads a quantised cache by flash attention alone
POLICIES = ["omnipick", "fifo", "token", "streaming-llm"]  # full deletes nothing
POSITIONS = ["compact", "sparse"]
MODELS = ["demo", "llama", "qwen2", "qwen2vl"]
Q8_BLOCK = 32
# Of the largest logit, which is about 3 in random models and 11 in the trained one. Only the order of summation
# differs, and what that tips over in the next update: flash attention adds values up in f16 in batches under 64 tokens
# (up to 0.0044 seen; without it 0.0003). A quantised cache stores that in coarse steps: with kernels that round
# activations to f16, 0.007 was seen; with AVX-512 ones 0.0004 at most.
LOGITS_TOLERANCE = {"f16": 0.02 / 3, "q8_0": 0.03 / 3}

PRODUCT = list(product(MODELS, POLICIES, POSITIONS, CACHES))
PAIRS = [
    (model, policy, POSITIONS[(i + j) % 2], CACHES[(i + 2 * j) % 3])
    for i, model in enumerate(MODELS)
    for j, policy in enumerate(POLICIES)
]
"""A part of the product in which every two settings meet."""


def options_of(**chosen: Any) -> EngineOptions:
    return EngineOptions(**{**HISTORY, **chosen})


def run(path: Path, kind: type[Stream], options: EngineOptions, *, units: int = 26) -> tuple[Running, Stream]:
    """A session after `units` media units under pressure."""
    running = Running.open(path, options, N_CTX, page_size=PAGE)
    stream = kind(running, seed=1)
    stream.system()
    assert stream.run(units) >= 3, "the stream must press hard enough"
    return running, stream


# --- the shipped model, fed with what it sees and hears in the shipped clip


@dataclass
class ExampleStream(Stream):
    """Real pictures and sounds between the manifest's markers."""

    def media(self) -> None:
        template, seconds = example(self.running.model.threads)
        picture, width, sound = seconds[int(self.random.integers(len(seconds)))]
        parts = [
            Part("boundary", tuple(template.image_prefix)),
            Part("image", rows=picture, width=width),
            Part("boundary", tuple(template.image_suffix + template.audio_prefix)),
            Part("audio", rows=sound),
            Part("boundary", tuple(template.audio_suffix)),
        ]
        self.add("media", parts)


@cache
def example(threads: int) -> tuple[TokenTemplate, list[tuple[NDArray[np.float32], int, NDArray[np.float32]]]]:
    """The demo model's template, and the embeddings of every second of the example: picture, its width, sound."""
    manifest = load_manifest("omnitide-demo")
    files = fetch_files(manifest, None, lambda _: None)
    running = Running.open(files.model, EngineOptions(threads=threads), N_CTX, mmproj=files.mmproj)
    clip = Path(__file__).parents[2] / "examples" / "shapes-and-notes.mp4"
    seconds = []
    with open_source(str(clip), fit=frame_fit(manifest, None)) as source:
        for unit in source:
            assert unit.frame is not None
            assert unit.audio is not None
            (part,), _, picture = running.session.encode_image(unit.frame, running.model.n_embd)
            sound = running.session.encode_audio(unit.audio, running.model.n_embd, unit.audio_left, unit.audio_right)
            seconds.append((picture, part.width, sound))
    template = TokenTemplate.of(manifest.prompt, running.model)
    running.close()
    return template, seconds


Subjects = dict[str, tuple[Path, type[Stream]]]


@pytest.fixture(scope="session")
def subjects(models: dict[str, Path]) -> Subjects:
    """Files and streams by name of model."""
    tiny: Subjects = {name: (models[name], Stream) for name in MODELS if name != "demo"}
    demo = fetch_files(load_manifest("omnitide-demo"), None, lambda _: None)
    return {**tiny, "demo": (demo.model, ExampleStream)}


# --- keys


def keys_of(running: Running) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Positions [n, 3] and layer-0 keys [n, width] of the history."""
    tokens = running.session.tokens()
    return tokens[:, 1:], running.session.keys(0, tokens[:, 0].tolist())


def replayed_keys(running: Running, stream: Stream, path: Path, options: EngineOptions) -> NDArray[np.float32]:
    """What a fresh run over the kept tokens gives, at the positions that they have now."""
    fresh = Running.open(path, replace(options, policy="full", layout="native"), N_CTX)
    try:
        stream.replay(fresh)
        positions, keys = keys_of(fresh)
    finally:
        fresh.close()
    np.testing.assert_array_equal(positions, keys_of(running)[0])
    return keys


@cache
def uninterrupted_keys(path: Path, kind: type[Stream], cache_type: str, flash_attn: str) -> dict[tuple[int, ...], Any]:
    """By position: what the whole stream gives when nothing is ever deleted."""
    options = EngineOptions(policy="full", cache_type=cache_type, flash_attn=flash_attn)
    running = Running.open(path, options, 16 * N_CTX)
    stream = kind(running, seed=1)
    stream.system()
    stream.run(26)
    positions, keys = keys_of(running)
    running.close()
    return dict(zip(map(tuple, positions.tolist()), keys, strict=True))


def errors_in_steps(found: NDArray, expected: NDArray, cache_type: str) -> NDArray[np.float32]:
    """Differences in quantisation steps of the row (f16) or block (q8_0)."""
    if cache_type == "f16":
        largest = np.abs(expected).max(axis=1, keepdims=True)
        step = np.spacing(largest.astype(np.float16)).astype(np.float32)
    else:
        blocks = np.abs(expected).reshape(len(expected), -1, Q8_BLOCK).max(axis=2) / 127
        step = np.repeat(blocks, Q8_BLOCK, axis=1)
    return (np.abs(found - expected) / step).astype(np.float32)


def assert_exact(subjects: Subjects, name: str, policy: str, positions: str, cache_type: str, flash_attn: str) -> None:
    """Keys and logits of every layout."""
    path, kind = subjects[name]
    expected: NDArray[np.float32] | None = None
    logits: dict[str, NDArray[np.float32]] = {}
    moved: dict[str, int] = {}
    for layout in LAYOUTS:
        chosen = options_of(
            policy=policy, layout=layout, positions=positions, cache_type=cache_type, flash_attn=flash_attn
        )
        running, stream = run(path, kind, chosen)
        try:
            places, keys = keys_of(running)
            if expected is None and positions == "compact":
                expected = replayed_keys(running, stream, path, chosen)
            elif expected is None:
                whole = uninterrupted_keys(path, kind, cache_type, flash_attn)
                expected = np.array([whole[place] for place in map(tuple, places.tolist())])
            errors = errors_in_steps(keys, expected, cache_type)
            if cache_type == "f16":
                assert errors.max() <= 1.0, layout
            else:
                # A rotation mixes the rounding errors of a quantised block, so that a single value may be two steps
                # off; the error of a key as a whole is below one.
                assert np.sqrt((errors**2).mean(axis=1)).max() < 1.0, layout
                assert errors.max() < 3.0, layout
            moved[layout] = stream.rows_moved
            logits[layout] = running.probe()
            running.session.check()
        finally:
            running.close()
    native = logits["native"]
    largest = np.abs(native).max()
    spread = {name: float(np.abs(found - native).max() / largest) for name, found in logits.items() if name != "native"}
    print(name, policy, positions, cache_type, flash_attn, f"spread {max(spread.values()):.4f}", "moved", moved)
    assert largest > 1.0
    assert max(spread.values()) < LOGITS_TOLERANCE[cache_type], spread
    assert moved["native"] == 0
    assert min(moved[layout] for layout in ("eager", "class-packing", "ordered-suffix", "hole-filling")) > 0


@pytest.mark.parametrize(("name", "policy", "positions", "cache_type"), PAIRS)
def test_keys_and_logits(
    subjects: Subjects, name: str, policy: str, positions: str, cache_type: tuple[str, str]
) -> None:
    assert_exact(subjects, name, policy, positions, *cache_type)


@pytest.mark.long
@pytest.mark.parametrize(("name", "policy", "positions", "cache_type"), [case for case in PRODUCT if case not in PAIRS])
def test_keys_and_logits_of_the_rest(
    subjects: Subjects, name: str, policy: str, positions: str, cache_type: tuple[str, str]
) -> None:
    assert_exact(subjects, name, policy, positions, *cache_type)


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize("name", ["llama", "qwen2vl"])
def test_keys_under_a_policy_that_cuts_pictures_into_pieces(subjects: Subjects, name: str, layout: str) -> None:
    """Each layout by its own: the last digits of attention differ between them, and so may what h2o retains by them."""
    path, kind = subjects[name]
    chosen = options_of(policy="h2o", layout=layout, flash_attn="off")
    running, stream = run(path, kind, chosen)
    errors = errors_in_steps(keys_of(running)[1], replayed_keys(running, stream, path, chosen), "f16")
    assert any(span.continues and span.role == "image" for unit in running.session.units() for span in unit.spans)
    assert np.isfinite(running.probe()).all()
    running.close()
    assert errors.max() <= 1.0


def test_every_two_settings_meet() -> None:
    for one, other in combinations(range(4), 2):
        assert {(c[one], c[other]) for c in PAIRS} == {(c[one], c[other]) for c in PRODUCT}


def test_layouts_of_an_f32_cache_agree(models: dict[str, Path]) -> None:
    logits, moved = {}, {}
    for layout in LAYOUTS:
        chosen = options_of(layout=layout, cache_type="f32", flash_attn="off")
        running, stream = run(models["llama"], Stream, chosen)
        logits[layout], moved[layout] = running.probe(), stream.rows_moved
        running.close()
    spread = {layout: float(np.abs(found - logits["native"]).max()) for layout, found in logits.items()}
    assert max(spread.values()) < 2e-3, spread  # of 3; 0.0011 seen with kernels that round activations to f16
    assert min(moved[layout] for layout in ("eager", "class-packing", "ordered-suffix")) > 0


@pytest.mark.parametrize("cache_type", ["f16", "q8_0"])
def test_error_does_not_grow_with_the_number_of_shifts(models: dict[str, Path], cache_type: str) -> None:
    path = models["qwen2vl"]
    chosen = options_of(cache_type=cache_type, text_budget=120)
    spread = []
    for units in (26, 120):
        running, stream = run(path, Stream, chosen, units=units)
        try:
            errors = errors_in_steps(keys_of(running)[1], replayed_keys(running, stream, path, chosen), cache_type)
            spread.append((running.session.snapshot().max_rotations, float(np.sqrt((errors**2).mean()))))
        finally:
            running.close()
    (few, before), (many, after) = spread
    assert many > few
    assert after < before * 1.1


def test_sparse_positions_leave_keys_alone(models: dict[str, Path]) -> None:
    running, _ = run(models["qwen2vl"], Stream, options_of(positions="sparse"))
    assert running.session.snapshot().max_rotations == 0
    running.session.check()
    running.close()


def test_sparse_positions_close_up_once_before_the_window_ends(tmp_path: Path) -> None:
    window = 2048
    path = write_attention_model(tmp_path / "short.gguf", "qwen2vl", context=window)
    running = Running.open(path, options_of(positions="sparse"), N_CTX)
    stream = Stream(running, seed=2)
    stream.system()
    farthest, rotations = 0, []
    for _ in range(140):
        stream.media()
        running.session.maintain()
        running.session.check()
        now = running.session.snapshot()
        farthest = max(farthest, now.next_position)
        rotations.append(now.max_rotations)
    running.close()
    assert window / 2 < farthest < window
    assert rotations[0] == 0
    assert max(rotations) == 1, "what is kept across a closing up is rotated once, and rarely kept across two"
