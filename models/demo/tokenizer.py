"""The demo model's tokenizer: byte-level BPE with Qwen2's split and Qwen2.5-Omni's special names."""

import json
from collections.abc import Iterator
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from models.demo.stream import SYSTEM
from omnitide_cli.bench.world.question import sentences

ENTRIES = 2048
FILES = ("tokenizer.json", "vocab.json", "merges.txt", "tokenizer_config.json")
SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|AUDIO|>",
    "<|audio_bos|>",
    "<|audio_eos|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_bos|>",
    "<|vision_eos|>",
    "<|vision_pad|>",
    "<|IMAGE|>",
    "<|VIDEO|>",
)
_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def build(folder: Path, prose: list[Path]) -> Tokenizer:
    """Train on the world's sentences and on `prose`, write the Hugging Face files into `folder`."""
    tokenizer = empty(models.BPE())
    trainer = trainers.BpeTrainer(
        vocab_size=ENTRIES - len(SPECIAL), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(_corpus(prose), trainer)
    first = tokenizer.get_vocab_size()
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in SPECIAL])
    write(tokenizer, folder, first)
    return tokenizer


def empty(model: models.BPE) -> Tokenizer:
    """A tokenizer that splits as Qwen2's does, around a vocabulary."""
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _corpus(prose: list[Path]) -> Iterator[str]:
    """The world's own words first of all, so that each is one token; then ordinary text."""
    for text in (*sentences(), "system\n", "user\n", "assistant\n", SYSTEM):
        for _ in range(40):
            yield text
            yield text.lower()
    for path in prose:
        yield path.read_text(encoding="utf-8", errors="ignore")


def write(tokenizer: Tokenizer, folder: Path, first_special: int) -> None:
    """Write the Hugging Face files; special tokens begin at id `first_special`."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    model = json.loads((folder / "tokenizer.json").read_text())["model"]
    (folder / "vocab.json").write_text(json.dumps(model["vocab"], ensure_ascii=False))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(" ".join(pair) + "\n" for pair in model["merges"]))
    decoder = {
        str(first_special + index): {
            "content": name,
            "lstrip": False,
            "normalized": False,
            "rstrip": False,
            "single_word": False,
            "special": True,
        }
        for index, name in enumerate(SPECIAL)
    }
    settings = {
        "tokenizer_class": "Qwen2TokenizerFast",
        "add_bos_token": False,
        "add_prefix_space": False,
        "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "unk_token": None,
        "errors": "replace",
        "split_special_tokens": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 32768,
        "chat_template": _TEMPLATE,
        "added_tokens_decoder": decoder,
        "additional_special_tokens": list(SPECIAL[1:]),
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1))
