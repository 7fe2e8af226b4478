"""A batched forward pass of the thinker for units of one size: a 112² picture and one second of sound.

Same weights and same mathematics as Hugging Face's modules, without their loops over pictures and clips.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import Qwen2_5OmniThinkerForConditionalGeneration as Thinker

from models.demo.architecture import DEVIATION, MEAN

SIDE = 112
IMAGE_TOKENS = 16
AUDIO_TOKENS = 25
_PATCHES = 64
_BLOCK = 256


def picture_embeddings(model: Thinker, pictures: Tensor) -> Tensor:
    """uint8 [n, 112, 112, 3] → [n, 16, hidden]."""
    tower = model.visual
    pixels = (pictures.permute(0, 3, 1, 2).float() / 255 - _column(MEAN)) / _column(DEVIATION)
    count = len(pixels)
    patches = pixels.reshape(count, 3, 4, 2, 14, 4, 2, 14).permute(0, 2, 5, 3, 6, 1, 4, 7).reshape(count, _PATCHES, -1)
    kernel = tower.patch_embed.proj.weight.sum(2).flatten(1)  # a still picture is two equal frames
    x = F.linear(patches, kernel)
    heads = tower.config.num_heads
    width = x.shape[-1] // heads
    cos, sin = _grid_angles(width)
    for block in tower.blocks:
        h = _rms(x, block.norm1)
        q, k, v = (_split(layer(h), heads) for layer in (block.attn.q, block.attn.k, block.attn.v))
        x = x + block.attn.proj(_attend(_rotate(q, cos, sin), _rotate(k, cos, sin), v))
        x = x + block.mlp(_rms(x, block.norm2))
    merger = tower.merger
    return merger.mlp(_rms(x, merger.ln_q).reshape(count, IMAGE_TOKENS, -1))


def sound_embeddings(model: Thinker, mel: Tensor) -> Tensor:
    """Log-mel [n, 128, 100] → [n, 25, hidden]."""
    tower = model.audio_tower
    x = F.gelu(tower.conv2(F.gelu(tower.conv1(mel)))).transpose(1, 2)
    x = x + tower.positional_embedding.positional_embedding[: x.shape[1]]
    for layer in tower.layers:
        attention = layer.self_attn
        h = layer.self_attn_layer_norm(x)
        q, k, v = (_split(p(h), attention.num_heads) for p in (attention.q_proj, attention.k_proj, attention.v_proj))
        x = x + attention.out_proj(_attend(q, k, v))
        x = x + layer.fc2(F.gelu(layer.fc1(layer.final_layer_norm(x))))
    pooled = F.avg_pool1d(x.transpose(1, 2), 2, 2).transpose(1, 2)
    return tower.proj(tower.ln_post(pooled))


def hidden_states(
    model: Thinker, embeddings: Tensor, positions: Tensor, wanted: Tensor, ends: Tensor, asks: Tensor, looks: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Causal text layers: embeddings [n, tokens, hidden], positions [3, n, tokens] → states at three sets of places.

    `wanted` [n, w] are the places whose final states are needed; the last layer computes only these. `ends` [n, e] are
    places whose states after half of the layers are returned, `asks` [n, a] those before the last layer. `looks` [n, l]
    are places from which the first head of the last layer but one looks back: how much at every place, [n, l, tokens].
    """
    decoder = model.model
    config = decoder.config
    heads, shared = config.num_attention_heads, config.num_key_value_heads
    angles = positions[..., None].float() * decoder.rotary_emb.inv_freq
    parts = angles.split(config.rope_scaling["mrope_section"], -1)
    half = torch.cat([part[axis] for axis, part in enumerate(parts)], -1)
    angle = torch.cat([half, half], -1)[:, None]
    cos, sin = angle.cos().to(embeddings.dtype), angle.sin().to(embeddings.dtype)
    x, halfway, late, views = embeddings, embeddings, embeddings, embeddings
    for index, layer in enumerate(decoder.layers):
        last = index == len(decoder.layers) - 1
        attention = layer.self_attn
        h = _rms(x, layer.input_layernorm)
        k = _rotate(_split(attention.k_proj(h), shared), cos, sin).repeat_interleave(heads // shared, 1)
        v = _split(attention.v_proj(h), shared).repeat_interleave(heads // shared, 1)
        if last:
            x, h = _at(x, wanted), _at(h, wanted)
            place = wanted[:, None, :, None].expand(-1, 1, -1, cos.shape[-1])
            q = _rotate(_split(attention.q_proj(h), heads), cos.gather(2, place), sin.gather(2, place))
            mixed = _masked(q, k, v, wanted)
        else:
            q = _rotate(_split(attention.q_proj(h), heads), cos, sin)
            mixed = _causal(q, k, v)
            if index == len(decoder.layers) - 2:
                later = torch.arange(k.shape[2]) > looks[..., None]
                views = (_at(q[:, 0], looks) @ k[:, 0].transpose(1, 2)).float() * q.shape[-1] ** -0.5
                views = views.masked_fill(later, -1e9)
        x = x + attention.o_proj(mixed)
        x = x + layer.mlp(_rms(x, layer.post_attention_layernorm))
        if index == len(decoder.layers) // 2 - 1:
            halfway = _at(x, ends)
        if index == len(decoder.layers) - 2:
            late = _at(x, asks)
    return _rms(x, decoder.norm), _rms(halfway, decoder.norm), _rms(late, decoder.norm), views


def logits(model: Thinker, states: Tensor) -> Tensor:
    """Scores of the next token, by the tied embeddings."""
    return F.linear(states, model.model.embed_tokens.weight.to(states.dtype)).float()


def _at(states: Tensor, places: Tensor) -> Tensor:
    return states.gather(1, places[..., None].expand(-1, -1, states.shape[-1]))


def _column(values: tuple[float, ...]) -> Tensor:
    return torch.tensor(values).view(1, 3, 1, 1)


def _grid_angles(width: int) -> tuple[Tensor, Tensor]:
    """cos and sin of the vision rotary embedding, patches in the order of 2×2 merge blocks: [64, width]."""
    block = [(y + dy, x + dx) for y in range(0, 8, 2) for x in range(0, 8, 2) for dy in (0, 1) for dx in (0, 1)]
    place = torch.tensor(block).float()
    frequency = 10000.0 ** -(torch.arange(0, width // 2, 2).float() / (width // 2))
    half = torch.cat([place[:, :1] * frequency, place[:, 1:] * frequency], -1)
    angle = torch.cat([half, half], -1)
    return angle.cos(), angle.sin()


def _rms(x: Tensor, norm: nn.Module) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],), norm.weight, norm.variance_epsilon)


def _split(x: Tensor, heads: int) -> Tensor:
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return (x * cos + torch.cat((-second, first), -1) * sin).to(x.dtype)


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attention, heads joined again. Written out: on a CPU, PyTorch's fused kernel trains far slower."""
    scores = (q @ k.transpose(2, 3)) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores + mask
    return (scores.softmax(-1).to(v.dtype) @ v).transpose(1, 2).flatten(2)


def _causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention, a block of queries at a time, so that nothing is computed for keys after the block."""
    parts = []
    for first in range(0, q.shape[2], _BLOCK):
        end = min(first + _BLOCK, q.shape[2])
        mask = torch.full((end - first, end), -1e9, dtype=q.dtype).triu(first + 1)
        parts.append(_attend(q[:, :, first:end], k[:, :, :end], v[:, :, :end], mask))
    return torch.cat(parts, 1)


def _masked(q: Tensor, k: Tensor, v: Tensor, places: Tensor) -> Tensor:
    """Attention of queries that stand at `places` [n, w]."""
    later = torch.arange(k.shape[2]) > places[..., None]
    return _attend(q, k, v, torch.zeros_like(later, dtype=q.dtype).masked_fill(later, -1e9)[:, None])
