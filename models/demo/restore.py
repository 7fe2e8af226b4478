"""Turn the shipped GGUF files back into a folder that training begins with.

python -m models.demo.restore --out build/demo

Matrices come back as the 16 bits that the files hold. The result has tokenizer.json and model.safetensors, as
`models.demo.train` writes them.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from gguf import GGUFReader
from tokenizers import AddedToken, Tokenizer, models

from models.demo import architecture, tokenizer
from models.demo.convert import PROJECTOR, TEXT

_TEXT_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_VISION_NAMES = {
    "ln1": "norm1",
    "ln2": "norm2",
    "attn_q": "attn.q",
    "attn_k": "attn.k",
    "attn_v": "attn.v",
    "attn_out": "attn.proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_AUDIO_NAMES = {
    "ln1": "self_attn_layer_norm",
    "ln2": "final_layer_norm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_out": "self_attn.out_proj",
    "ffn_up": "fc1",
    "ffn_down": "fc2",
}
_OTHERS = {
    "v.post_ln": "visual.merger.ln_q",
    "mm.0": "visual.merger.mlp.0",
    "mm.2": "visual.merger.mlp.2",
    "a.conv1d.1": "audio_tower.conv1",
    "a.conv1d.2": "audio_tower.conv2",
    "a.post_ln": "audio_tower.ln_post",
    "mm.a.fc": "audio_tower.proj",
}
_NOT_CONVERTED = ("lm_head.weight", "audio_tower.audio_bos_eos_token.weight")  # tied, and not used


def main() -> None:
    """Read both files and write the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=Path, default=Path(__file__).parent, help="folder of the two GGUF files")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    text = GGUFReader(options.files / TEXT)
    words = _tokenizer(text, options.out)
    model = architecture.create(words)
    restored = _weights(text, GGUFReader(options.files / PROJECTOR))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name not in _NOT_CONVERTED:
                weight.copy_(restored.pop(name).reshape(weight.shape))
    if restored:
        raise ValueError(f"no place for {sorted(restored)}")
    architecture.save(model, options.out)


def _tokenizer(file: GGUFReader, out: Path) -> Tokenizer:
    tokens = file.fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(pair.split(" ")) for pair in file.fields["tokenizer.ggml.merges"].contents()]
    first = min(tokens.index(name) for name in tokenizer.SPECIAL)
    made = tokenizer.empty(models.BPE({token: index for index, token in enumerate(tokens[:first])}, merges))
    made.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in tokens[first:]])
    tokenizer.write(made, out, first)
    return made


def _weights(text: GGUFReader, projector: GGUFReader) -> dict[str, torch.Tensor]:
    found = {t.name: torch.from_numpy(np.array(t.data, np.float32)) for r in (text, projector) for t in r.tensors}
    slices = [found.pop("v.patch_embd.weight"), found.pop("v.patch_embd.weight.1")]
    weights = {"visual.patch_embed.proj.weight": torch.stack(slices, 2)}
    found.pop("a.position_embd.weight")  # sines: the architecture makes them
    return weights | {_name(name): weight for name, weight in found.items()}


def _name(name: str) -> str:
    """The name that the model gives a tensor of the files."""
    stem, _, kind = name.rpartition(".")
    if stem in _OTHERS:
        return f"{_OTHERS[stem]}.{kind}"
    if stem in _TEXT_NAMES:
        return f"{_TEXT_NAMES[stem]}.{kind}"
    *tower, _, layer, part = stem.split(".")
    if tower == ["v"]:
        return f"visual.blocks.{layer}.{_VISION_NAMES[part]}.{kind}"
    if tower == ["a"]:
        return f"audio_tower.layers.{layer}.{_AUDIO_NAMES[part]}.{kind}"
    return f"model.layers.{layer}.{_TEXT_NAMES[part]}.{kind}"


if __name__ == "__main__":
    main()
