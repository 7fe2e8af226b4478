"""Decoders some of whose layers see a window of the last tokens alone: the Gemma 3 and Gemma 4 families."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from tiny_models.common import HEAD_DIM, N_EMBD, N_FF, N_HEAD, N_HEAD_KV, TinyWriter

WINDOW = 64
PER_LAYER = 32
"""Width of Gemma 4's per-layer inputs."""
SHARED = 4
"""Gemma 4's last layers read the keys and values of earlier ones."""


def write_gemma3(path: Path, *, layers: int = 8, seed: int = 0, tokenizer_of: Path | None = None) -> Path:
    """Five layers with a window, then one without. Tokens are scaled on their way in, rows of embeddings are not."""
    writer = _writer(path, "gemma3", layers, seed, tokenizer_of)
    writer.add_key_length(HEAD_DIM)
    writer.add_value_length(HEAD_DIM)
    writer.add_float32("gemma3.rope.freq_base_swa", 10000.0)
    _embeddings(writer)
    for layer in range(layers):
        _block(writer, layer, HEAD_DIM, has_keys=True)
    writer.finish()
    return path


def write_gemma4(path: Path, *, layers: int = 8, seed: int = 0, tokenizer_of: Path | None = None) -> Path:
    """Three layers with a window, then one without, of larger heads; the last `SHARED` have no keys of their own."""
    windowed = [layer % 4 < 3 for layer in range(layers)]
    writer = _writer(path, "gemma4", layers, seed, tokenizer_of)
    writer.add_key_length(2 * HEAD_DIM)
    writer.add_value_length(2 * HEAD_DIM)
    writer.add_rope_dimension_count(2 * HEAD_DIM)
    writer.add_array("gemma4.attention.sliding_window_pattern", windowed)
    writer.add_float32("gemma4.rope.freq_base_swa", 10000.0)
    for name, value in {
        "attention.shared_kv_layers": SHARED,
        "attention.key_length_swa": HEAD_DIM,
        "attention.value_length_swa": HEAD_DIM,
        "rope.dimension_count_swa": HEAD_DIM,
        "embedding_length_per_layer_input": PER_LAYER,
    }.items():
        writer.add_uint32(f"gemma4.{name}", value)
    writer.add_float32("gemma4.final_logit_softcapping", 30.0)
    _embeddings(writer)
    writer.matrix("per_layer_token_embd", writer.n_vocab, PER_LAYER * layers, scale=0.2)
    writer.matrix("per_layer_model_proj", PER_LAYER * layers, N_EMBD)
    writer.norm("per_layer_proj_norm", PER_LAYER)
    turned = np.arange(HEAD_DIM) < HEAD_DIM // 4  # of a large head's pairs; the others stand still
    writer.add_tensor("rope_freqs.weight", np.where(turned, 1.0, 1e30).astype(np.float32))
    for layer in range(layers):
        _block(writer, layer, HEAD_DIM if windowed[layer] else 2 * HEAD_DIM, has_keys=layer < layers - SHARED)
        prefix = f"blk.{layer}."
        writer.matrix(prefix + "inp_gate", PER_LAYER, N_EMBD)
        writer.matrix(prefix + "proj", N_EMBD, PER_LAYER)
        writer.norm(prefix + "post_norm", N_EMBD)
        writer.vector(prefix + "layer_output_scale.weight", 1, mean=1.0)
    writer.finish()
    return path


def _writer(path: Path, arch: str, layers: int, seed: int, tokenizer_of: Path | None) -> TinyWriter:
    writer = TinyWriter(path, arch, seed=seed, tokenizer_of=tokenizer_of)
    writer.add_context_length(32768)
    writer.add_embedding_length(N_EMBD)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(N_FF)
    writer.add_head_count(N_HEAD)
    writer.add_head_count_kv(N_HEAD_KV)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    writer.add_sliding_window(WINDOW)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    return writer


def _embeddings(writer: TinyWriter) -> None:
    writer.matrix("token_embd", writer.n_vocab, N_EMBD, scale=N_EMBD**-0.5)
    writer.norm("output_norm", N_EMBD)


def _block(writer: TinyWriter, layer: int, head: int, *, has_keys: bool) -> None:
    prefix = f"blk.{layer}."
    for norm in ("attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm"):
        writer.norm(prefix + norm, N_EMBD)
    scale = 2 * N_EMBD**-0.5
    writer.matrix(prefix + "attn_q", N_HEAD * head, N_EMBD, scale=scale)
    writer.norm(prefix + "attn_q_norm", head)
    if has_keys:
        writer.matrix(prefix + "attn_k", N_HEAD_KV * head, N_EMBD, scale=scale)
        writer.matrix(prefix + "attn_v", N_HEAD_KV * head, N_EMBD)
        writer.norm(prefix + "attn_k_norm", head)
    writer.matrix(prefix + "attn_output", N_EMBD, N_HEAD * head)
    writer.matrix(prefix + "ffn_gate", N_FF, N_EMBD)
    writer.matrix(prefix + "ffn_up", N_FF, N_EMBD)
    writer.matrix(prefix + "ffn_down", N_EMBD, N_FF)
