"""Write tests/data/parity.npz: fixed inputs and what Hugging Face computes from the shipped weights in float32.

Weights are first rounded to the 16 bits that the GGUF files hold. Names and shapes:

    image                uint8 [112, 112, 3]
    image_embedding      [16, 192]
    sound                [16000]             one second at 16 kHz, mono, by itself
    mel                  [128, 100]          as Whisper does it: start mirrored, silence after the end
    sound_embedding      [25, 192]
    near_sound           [16520]             the same second with 320 samples before it and 200 after it
    near_mel             [128, 100]
    near_sound_embedding [25, 192]
    text_ids, text_positions, text_logits    a prompt of words only
    unit_ids, unit_positions, unit_logits    system, one unit (image, sound) and a question
    unit_answer_ids                          the greedy answer to the latter, with its <|im_end|>

Positions are [3, tokens] (time, row, column); logits are [16, vocabulary], of the last 16 tokens.
Media tokens stand in unit_ids as <|IMAGE|> and <|AUDIO|>.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from PIL import Image as Pillow
from tokenizers import Tokenizer
from torch import Tensor
from transformers import Qwen2_5OmniThinkerForConditionalGeneration as Thinker
from transformers import WhisperFeatureExtractor
from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor

from models.demo import architecture
from models.demo.mel import log_mel
from models.demo.stream import LEFT, RATE, SYSTEM, Layout, Stream, windows_of
from omnitide_cli.bench.world.picture import one
from omnitide_cli.bench.world.question import DEFAULT_QUESTION
from omnitide_cli.bench.world.render import frame_of
from omnitide_cli.bench.world.sound import Sound
from omnitide_cli.bench.world.split import TRAINING

KEPT = 16


def main() -> None:
    """Compute and write all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="what models.demo.train wrote")
    parser.add_argument("--out", type=Path, default=Path("tests/data/parity.npz"))
    options = parser.parse_args()
    model = architecture.load(options.folder)
    tokenizer = Tokenizer.from_file(str(options.folder / "tokenizer.json"))
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() >= 2:
                weight.copy_(weight.half().float())
        np.savez_compressed(options.out, **reference(model, tokenizer))


def reference(model: Thinker, tokenizer: Tokenizer) -> dict[str, np.ndarray]:
    """All arrays of the file."""
    rng = np.random.default_rng(5)
    image = frame_of(one("green", "cross"), rng, TRAINING)
    near = windows_of([Sound(word="river"), Sound(note="sol"), Sound(note="la")], rng, TRAINING)[1]
    sound = near[LEFT : LEFT + RATE]
    pixels, grid = _pixels(image)
    mel = _whisper_mel(sound)
    near_mel = log_mel(torch.from_numpy(near)[None], torch.tensor([False]))[0]

    layout, text, unit = Layout(tokenizer), Stream(), Stream()
    layout.system(text, SYSTEM)
    layout.question(text, "Hello world, how is the model? 12 34")
    layout.system(unit, SYSTEM)
    layout.media(unit, image, near)
    layout.question(unit, DEFAULT_QUESTION)
    media = {
        "pixel_values": pixels,
        "image_grid_thw": grid,
        "input_features": mel[None],
        "feature_attention_mask": torch.ones(1, mel.shape[1], dtype=torch.long),
    }
    return {
        "image": image,
        "image_embedding": model.visual(pixels, grid_thw=grid).numpy(),
        "sound": sound,
        "mel": mel.numpy(),
        "sound_embedding": _sound_embedding(model, mel),
        "near_sound": near,
        "near_mel": near_mel.numpy(),
        "near_sound_embedding": _sound_embedding(model, near_mel),
        **_prompt("text", model, text, {}),
        **_prompt("unit", model, unit, media),
        "unit_answer_ids": _answer(model, tokenizer, layout, unit, media),
    }


def _pixels(image: np.ndarray) -> tuple[Tensor, Tensor]:
    processor = Qwen2VLImageProcessor(
        min_pixels=56 * 56, max_pixels=12845056, patch_size=14, temporal_patch_size=2, merge_size=2
    )
    result = processor(images=[Pillow.fromarray(image)], return_tensors="pt")
    return result.pixel_values.float(), result.image_grid_thw


def _whisper_mel(sound: np.ndarray) -> Tensor:
    extractor = WhisperFeatureExtractor(
        feature_size=128, sampling_rate=RATE, hop_length=160, chunk_length=30, n_fft=400
    )
    return extractor(sound, sampling_rate=RATE, padding="max_length", return_tensors="pt").input_features[0, :, :100]


def _sound_embedding(model: Thinker, mel: Tensor) -> np.ndarray:
    frames = torch.tensor([mel.shape[1]])
    reduced, _ = model.audio_tower._get_feat_extract_output_lengths(frames)
    return model.audio_tower(mel, feature_lens=frames, aftercnn_lens=reduced).last_hidden_state.numpy()


def _logits(model: Thinker, stream: Stream, media: dict[str, Tensor]) -> Tensor:
    """Scores after every token: [tokens, vocabulary]."""
    ids = torch.tensor(stream.ids)[None]
    positions = torch.tensor(stream.positions).T[:, None]
    return model(input_ids=ids, attention_mask=torch.ones_like(ids), position_ids=positions, **media).logits[0]


def _prompt(name: str, model: Thinker, stream: Stream, media: dict[str, Tensor]) -> dict[str, np.ndarray]:
    return {
        f"{name}_ids": np.array(stream.ids, np.int32),
        f"{name}_positions": np.array(stream.positions, np.int32).T,
        f"{name}_logits": _logits(model, stream, media)[-KEPT:].numpy(),
    }


def _answer(
    model: Thinker, tokenizer: Tokenizer, layout: Layout, stream: Stream, media: dict[str, Tensor]
) -> np.ndarray:
    """Greedy tokens up to and with <|im_end|>, 32 at most."""
    ids: list[int] = []
    while len(ids) < 32 and ids[-1:] != [tokenizer.token_to_id("<|im_end|>")]:
        ids.append(int(_logits(model, stream, media)[-1].argmax()))
        layout.text(stream, ids[-1:])
    return np.array(ids, np.int32)


if __name__ == "__main__":
    main()
