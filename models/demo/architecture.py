"""The demo model's shape (Qwen2.5-Omni thinker), its initial weights, and how it is saved and loaded."""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import Qwen2_5OmniThinkerForConditionalGeneration as Thinker
from transformers.models.qwen2_5_omni.configuration_qwen2_5_omni import Qwen2_5OmniThinkerConfig

HIDDEN = 192
HEADS = 3
SHARED = 3
MEAN = (0.48145466, 0.4578275, 0.40821073)
DEVIATION = (0.26862954, 0.26130258, 0.27577711)
_PREFIX = "thinker."
_LAST = ("o_proj.weight", "down_proj.weight", "attn.proj.weight", "out_proj.weight", "fc2.weight")


def configuration(tokenizer: Tokenizer) -> Qwen2_5OmniThinkerConfig:
    """The configuration that llama.cpp's converter accepts; rotary sections sum to half a head."""
    token = tokenizer.token_to_id
    half = HIDDEN // HEADS // 2
    time, row = half // 4, (half - half // 4) // 2
    return Qwen2_5OmniThinkerConfig(
        audio_config={
            "num_mel_bins": 128,
            "encoder_layers": 2,
            "encoder_attention_heads": 3,
            "encoder_ffn_dim": 256,
            "d_model": 96,
            "n_window": 100,
            "max_source_positions": 1500,
            "output_dim": HIDDEN,
        },
        vision_config={
            "depth": 2,
            "hidden_size": 96,
            "intermediate_size": 256,
            "num_heads": 3,
            "in_channels": 3,
            "patch_size": 14,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "window_size": 112,
            "out_hidden_size": HIDDEN,
            "fullatt_block_indexes": [1],
        },
        text_config={
            "vocab_size": tokenizer.get_vocab_size(),
            "hidden_size": HIDDEN,
            "intermediate_size": 512,
            "num_hidden_layers": 4,
            "num_attention_heads": HEADS,
            "num_key_value_heads": SHARED,
            "max_position_embeddings": 32768,
            "rms_norm_eps": 1e-6,
            "rope_theta": 1000000.0,
            "rope_scaling": {
                "mrope_section": [time, row, half - time - row],
                "rope_type": "default",
                "type": "default",
            },
            "tie_word_embeddings": True,
            "use_sliding_window": False,
        },
        audio_token_index=token("<|AUDIO|>"),
        image_token_index=token("<|IMAGE|>"),
        video_token_index=token("<|VIDEO|>"),
        audio_start_token_id=token("<|audio_bos|>"),
        audio_end_token_id=token("<|audio_eos|>"),
        vision_start_token_id=token("<|vision_bos|>"),
        vision_end_token_id=token("<|vision_eos|>"),
        user_token_id=0,
        pad_token_id=token("<|endoftext|>"),
        tie_word_embeddings=True,
    )


def create(tokenizer: Tokenizer, encoders: Path | None = None) -> Thinker:
    """A fresh model at 1/√fan_in, without which the encoders hardly learn; the last matrix of a block is weaker.

    `encoders`: a saved model whose encoder weights are taken over wherever name and shape agree.
    """
    model = _empty(configuration(tokenizer))
    known = {} if encoders is None else load_file(encoders / "model.safetensors")
    with torch.no_grad():
        for name, weight in model.named_parameters():
            old = known.get(_PREFIX + name)
            if old is not None and name.startswith(("visual.", "audio_tower.")) and old.shape == weight.shape:
                weight.copy_(old)
            elif weight.dim() >= 2:
                weight.normal_(0, weight[0].numel() ** -0.5 * (0.35 if name.endswith(_LAST) else 1.0))
        for layer in model.model.layers:
            _look_for_the_same(layer.self_attn)
    return model


def _look_for_the_same(attention: torch.nn.Module) -> None:
    """Begin with attention that finds and copies what resembles the asking token: recall is learnt much sooner."""
    key, value = attention.k_proj.weight, attention.v_proj.weight
    attention.q_proj.weight.mul_(0.7).add_(key, alpha=0.7)
    attention.o_proj.weight.add_(value.T, alpha=0.35)


def save(model: Thinker, folder: Path) -> None:
    """Write config.json, model.safetensors and preprocessor_config.json as llama.cpp's converter reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {
        _PREFIX + name: weight.detach().contiguous().float()
        for name, weight in model.state_dict().items()
        if name != "lm_head.weight"
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = {
        "architectures": ["Qwen2_5OmniModel"],
        "model_type": "qwen2_5_omni",
        "enable_audio_output": False,
        "torch_dtype": "float32",
        "thinker_config": model.config.to_dict(),
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1, default=str))
    preprocessor = {
        "image_processor_type": "Qwen2VLImageProcessor",
        "image_mean": MEAN,
        "image_std": DEVIATION,
        "min_pixels": 56 * 56,
        "max_pixels": 12845056,
        "patch_size": 14,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "feature_extractor_type": "WhisperFeatureExtractor",
        "feature_size": 128,
        "sampling_rate": 16000,
        "hop_length": 160,
        "chunk_length": 300,
        "n_fft": 400,
        "n_samples": 4800000,
        "nb_max_frames": 30000,
        "padding_side": "right",
        "padding_value": 0.0,
        "return_attention_mask": True,
        "processor_class": "Qwen2_5OmniProcessor",
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(preprocessor, indent=1))


def load(folder: Path) -> Thinker:
    """Read a saved model back, ready to answer."""
    config = Qwen2_5OmniThinkerConfig(**json.loads((folder / "config.json").read_text())["thinker_config"])
    model = _empty(config)
    weights = {name.removeprefix(_PREFIX): weight for name, weight in load_file(folder / "model.safetensors").items()}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    if unexpected or set(missing) - {"lm_head.weight"}:
        raise ValueError(f"{folder} holds another model: missing {missing}, unexpected {unexpected}")
    model.tie_weights()
    return model.eval()


def _empty(config: Qwen2_5OmniThinkerConfig) -> Thinker:
    config._attn_implementation = "sdpa"
    return Thinker._from_config(config)
