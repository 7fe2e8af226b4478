"""Tiny random models as GGUF files: the architectures the runtime must handle or refuse, in milliseconds.

Weights are random but scaled so that logits depend on every cached row. Most have no tokenizer: token ids are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import gguf
import numpy as np

N_VOCAB = 512
N_EMBD = 256
TOKENIZER_PREFIX = "tokenizer."
N_HEAD = 4
N_HEAD_KV = 2
HEAD_DIM = N_EMBD // N_HEAD
N_FF = 384


def write_attention_model(
    path: Path, arch: str, *, layers: int = 3, context: int = 32768, names: Sequence[str] = (), seed: int = 0
) -> Path:
    """A decoder: `arch` is "qwen2vl" (M-RoPE), "qwen2", "qwen3" or "llama" (plain), or "gemma2" (sliding window).

    With `names`, it has a tokenizer: bytes, and a token for each name.
    """
    random = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, arch)
    writer.add_context_length(context)
    writer.add_embedding_length(N_EMBD)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(N_FF)
    writer.add_head_count(N_HEAD)
    writer.add_head_count_kv(N_HEAD_KV)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    if arch == "qwen2vl":
        writer.add_rope_dimension_sections([8, 12, 12, 0])
    if arch == "gemma2":
        writer.add_sliding_window(128)
        writer.add_key_length(HEAD_DIM)
        writer.add_value_length(HEAD_DIM)
    if arch == "llama":
        writer.add_rope_dimension_count(HEAD_DIM)
    if arch == "qwen3":
        writer.add_key_length(HEAD_DIM)
        writer.add_value_length(HEAD_DIM)
    writer.add_vocab_size(N_VOCAB)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    if names:
        _add_tokenizer(writer, names)
    else:
        writer.add_tokenizer_model("none")

    def matrix(name: str, rows: int, columns: int, scale: float) -> None:
        writer.add_tensor(name, (random.standard_normal((rows, columns)) * scale).astype(np.float16))

    def vector(name: str, size: int, mean: float = 0.0, spread: float = 0.05) -> None:
        writer.add_tensor(name, (mean + random.standard_normal(size) * spread).astype(np.float32))

    matrix("token_embd.weight", N_VOCAB, N_EMBD, 1.0)
    vector("output_norm.weight", N_EMBD, 1.0)
    if arch != "gemma2":  # which ties it to the embeddings
        matrix("output.weight", N_VOCAB, N_EMBD, 0.05)
    scale = N_EMBD**-0.5
    for layer in range(layers):
        prefix = f"blk.{layer}."
        vector(prefix + "attn_norm.weight", N_EMBD, 1.0)
        vector(prefix + "ffn_norm.weight", N_EMBD, 1.0)
        if arch == "gemma2":
            vector(prefix + "post_attention_norm.weight", N_EMBD, 1.0)
            vector(prefix + "post_ffw_norm.weight", N_EMBD, 1.0)
        matrix(prefix + "attn_q.weight", N_EMBD, N_EMBD, 2 * scale)
        matrix(prefix + "attn_k.weight", N_HEAD_KV * HEAD_DIM, N_EMBD, 2 * scale)
        matrix(prefix + "attn_v.weight", N_HEAD_KV * HEAD_DIM, N_EMBD, scale)
        matrix(prefix + "attn_output.weight", N_EMBD, N_EMBD, scale)
        if arch in ("qwen2", "qwen2vl"):
            vector(prefix + "attn_q.bias", N_EMBD)
            vector(prefix + "attn_k.bias", N_HEAD_KV * HEAD_DIM)
            vector(prefix + "attn_v.bias", N_HEAD_KV * HEAD_DIM)
        if arch == "qwen3":
            vector(prefix + "attn_q_norm.weight", HEAD_DIM, 1.0)
            vector(prefix + "attn_k_norm.weight", HEAD_DIM, 1.0)
        matrix(prefix + "ffn_gate.weight", N_FF, N_EMBD, scale)
        matrix(prefix + "ffn_up.weight", N_FF, N_EMBD, scale)
        matrix(prefix + "ffn_down.weight", N_EMBD, N_FF, N_FF**-0.5)
    _finish(writer)
    return path


def write_cutting_encoder(
    path: Path, *, version: int = 6, side: int = 56, queries: int = 8, n_embd: int = N_EMBD, seed: int = 0
) -> Path:
    """MiniCPM-V's vision encoder: images of about `side` x `side` pixels, each `queries` rows of `n_embd`.

    `version` is libmtmd's number for the model: 6 is MiniCPM-V 4.5, 100045 MiniCPM-o 4.5.
    """
    random = np.random.default_rng(seed)
    width, n_ff, patch, buckets = 64, 96, 14, 70
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", "resampler")
    writer.add_int32("clip.minicpmv_version", version)
    writer.add_uint32("clip.minicpmv_query_num", queries)
    writer.add_bool("clip.use_gelu", True)
    _add_vision(writer, side=side, patch=patch, width=width, n_ff=n_ff)

    def matrix(name: str, *shape: int, scale: float, kind: type = np.float16) -> None:
        writer.add_tensor(name, (random.standard_normal(shape) * scale).astype(kind))

    def norm(name: str, size: int) -> None:
        writer.add_tensor(name + ".weight", (1 + random.standard_normal(size) * 0.05).astype(np.float32))
        writer.add_tensor(name + ".bias", (random.standard_normal(size) * 0.05).astype(np.float32))

    def linear(name: str, rows: int, columns: int) -> None:
        matrix(name + ".weight", rows, columns, scale=columns**-0.5)
        matrix(name + ".bias", rows, scale=0.05, kind=np.float32)

    matrix("v.patch_embd.weight", width, 3, patch, patch, scale=(3 * patch * patch) ** -0.5)
    matrix("v.patch_embd.bias", width, scale=0.05, kind=np.float32)
    matrix("v.position_embd.weight", buckets * buckets, width, scale=0.5)
    for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
        linear(f"v.blk.0.{name}", width, width)
    norm("v.blk.0.ln1", width)
    norm("v.blk.0.ln2", width)
    linear("v.blk.0.ffn_down", n_ff, width)  # named the other way round, as the converter does
    linear("v.blk.0.ffn_up", width, n_ff)
    norm("v.post_ln", width)
    matrix("resampler.pos_embed_k", buckets * buckets, n_embd, scale=0.5)
    matrix("resampler.query", queries, n_embd, scale=1.0, kind=np.float32)
    matrix("resampler.kv.weight", n_embd, width, scale=width**-0.5)
    for name in ("q", "k", "v", "out"):
        linear(f"resampler.attn.{name}", n_embd, n_embd)
    for name in ("q", "kv", "post"):
        norm(f"resampler.ln_{name}", n_embd)
    matrix("resampler.proj.weight", n_embd, n_embd, scale=n_embd**-0.5)
    _finish(writer)
    return path


def write_tiling_encoder(path: Path, *, side: int = 56, n_embd: int = N_EMBD, seed: int = 0) -> Path:
    """LLaVA 1.6's vision encoder: pictures are cut into tiles by a table of resolutions."""
    random = np.random.default_rng(seed)
    width, n_ff, patch = 64, 96, 14
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", "mlp")
    writer.add_bool("clip.use_gelu", True)
    writer.add_array("clip.vision.image_grid_pinpoints", [side, 2 * side, 2 * side, side, 2 * side, 2 * side])
    _add_vision(writer, side=side, patch=patch, width=width, n_ff=n_ff)

    def matrix(name: str, *shape: int, kind: type = np.float16) -> None:
        writer.add_tensor(name, (random.standard_normal(shape) * 0.1).astype(kind))

    matrix("v.patch_embd.weight", width, 3, patch, patch)
    matrix("v.position_embd.weight", (side // patch) ** 2, width)
    for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
        matrix(f"v.blk.0.{name}.weight", width, width)
    for name in ("ln1", "ln2"):
        matrix(f"v.blk.0.{name}.weight", width, kind=np.float32)
        matrix(f"v.blk.0.{name}.bias", width, kind=np.float32)
    matrix("v.blk.0.ffn_down.weight", n_ff, width)
    matrix("v.blk.0.ffn_up.weight", width, n_ff)
    for layer, size in ((0, width), (2, n_embd)):
        matrix(f"mm.{layer}.weight", n_embd, size)
        matrix(f"mm.{layer}.bias", n_embd, kind=np.float32)
    _finish(writer)
    return path


def write_recurrent_model(
    path: Path, *, layers: int = 2, n_embd: int = N_EMBD, tokenizer_of: Path | None = None, seed: int = 0
) -> Path:
    """A Mamba: its memory is a recurrent state, not a KV cache. `tokenizer_of`: a model whose tokenizer it borrows."""
    random = np.random.default_rng(seed)
    inner, state, rank, kernel = 2 * n_embd, 16, 16, 4
    writer = gguf.GGUFWriter(path, "mamba")
    writer.add_context_length(4096)
    writer.add_embedding_length(n_embd)
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_block_count(layers)
    writer.add_ssm_conv_kernel(kernel)
    writer.add_ssm_inner_size(inner)
    writer.add_ssm_state_size(state)
    writer.add_ssm_time_step_rank(rank)
    writer.add_layer_norm_rms_eps(1e-5)
    n_vocab = N_VOCAB
    if tokenizer_of is None:
        writer.add_vocab_size(n_vocab)
        writer.add_tokenizer_model("none")
    else:
        n_vocab = _copy_tokenizer(tokenizer_of, writer)

    def tensor(name: str, *shape: int, scale: float = 0.05, mean: float = 0.0, kind: type = np.float32) -> None:
        writer.add_tensor(name, (mean + random.standard_normal(shape) * scale).astype(kind))

    tensor("token_embd.weight", n_vocab, n_embd, scale=1.0, kind=np.float16)
    tensor("output_norm.weight", n_embd, mean=1.0)
    for layer in range(layers):
        prefix = f"blk.{layer}."
        tensor(prefix + "attn_norm.weight", n_embd, mean=1.0)
        tensor(prefix + "ssm_in.weight", 2 * inner, n_embd, kind=np.float16)
        tensor(prefix + "ssm_conv1d.weight", inner, kernel)
        tensor(prefix + "ssm_conv1d.bias", inner)
        tensor(prefix + "ssm_x.weight", rank + 2 * state, inner, kind=np.float16)
        tensor(prefix + "ssm_dt.weight", inner, rank)
        tensor(prefix + "ssm_dt.bias", inner)
        tensor(prefix + "ssm_a", inner, state, mean=-1.0)
        tensor(prefix + "ssm_d", inner)
        tensor(prefix + "ssm_out.weight", n_embd, inner, kind=np.float16)
    _finish(writer)
    return path


def _add_vision(writer: gguf.GGUFWriter, *, side: int, patch: int, width: int, n_ff: int) -> None:
    writer.add_uint32("clip.vision.image_size", side)
    writer.add_uint32("clip.vision.patch_size", patch)
    writer.add_uint32("clip.vision.embedding_length", width)
    writer.add_uint32("clip.vision.feed_forward_length", n_ff)
    writer.add_uint32("clip.vision.projection_dim", 0)
    writer.add_uint32("clip.vision.block_count", 1)
    writer.add_uint32("clip.vision.attention.head_count", 2)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-6)
    writer.add_array("clip.vision.image_mean", [0.5, 0.5, 0.5])
    writer.add_array("clip.vision.image_std", [0.5, 0.5, 0.5])


def _add_tokenizer(writer: gguf.GGUFWriter, names: Sequence[str]) -> None:
    """Byte-level BPE with one merge (llama.cpp wants some), then the names, then tokens that nothing makes."""
    shown = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in shown]
    letters = {byte: chr(byte) for byte in shown} | {byte: chr(256 + i) for i, byte in enumerate(others)}
    tokens = [letters[byte] for byte in range(256)] + ["th", *names]
    kinds = [gguf.TokenType.NORMAL] * 257 + [gguf.TokenType.CONTROL] * len(names)
    spare = N_VOCAB - len(tokens)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens + [f"[unused{i}]" for i in range(spare)])
    writer.add_token_types(kinds + [gguf.TokenType.UNUSED] * spare)
    writer.add_token_merges(["t h"])
    if "<|im_end|>" in names:
        writer.add_eos_token_id(tokens.index("<|im_end|>"))


def _copy_tokenizer(source: Path, writer: gguf.GGUFWriter) -> int:
    """Copy every tokenizer field; the size of the vocabulary."""
    fields = gguf.GGUFReader(source).fields
    for name, field in fields.items():
        if name.startswith(TOKENIZER_PREFIX):
            kind = field.types[0]
            sub_type = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), kind, sub_type)
    return len(fields["tokenizer.ggml.tokens"].data)


def _finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
