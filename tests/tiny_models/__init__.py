"""Tiny random models as GGUF files: the architectures the runtime must handle or refuse, in milliseconds.

Weights are random but scaled so that logits depend on every cached row. Most have no tokenizer: token ids are given.
"""

from tiny_models.attention import write_attention_model
from tiny_models.cogvlm import write_cogvlm
from tiny_models.common import HEAD_DIM, N_EMBD, N_FF, N_HEAD, N_HEAD_KV, N_VOCAB
from tiny_models.cutting import write_cutting_encoder, write_tiling_encoder
from tiny_models.deepseek_ocr import write_deepseek_ocr
from tiny_models.latent import write_latent_model
from tiny_models.learned import write_learned_model
from tiny_models.phi3 import write_phi3
from tiny_models.recurrent import write_recurrent_model
from tiny_models.whisper import AUDIO_PROJECTORS, write_audio_encoder

__all__ = [
    "AUDIO_PROJECTORS",
    "HEAD_DIM",
    "N_EMBD",
    "N_FF",
    "N_HEAD",
    "N_HEAD_KV",
    "N_VOCAB",
    "write_attention_model",
    "write_audio_encoder",
    "write_cogvlm",
    "write_cutting_encoder",
    "write_deepseek_ocr",
    "write_latent_model",
    "write_learned_model",
    "write_phi3",
    "write_recurrent_model",
    "write_tiling_encoder",
]
