"""A tiny random model without a KV cache."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from tiny_models.common import N_EMBD, N_VOCAB, copy_tokenizer, finish


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
        n_vocab = copy_tokenizer(tokenizer_of, writer)

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
    finish(writer)
    return path
