"""Models that hear and don't see: a Llama behind a Whisper. Voxtral, Ultravox, GLM-ASR."""

from __future__ import annotations

from functools import partial

from tiny_models.families.base import Family
from tiny_models.families.chat import GLM, LLAMA_3, MISTRAL
from tiny_models.families.decoders import Vocabulary, write_plain
from tiny_models.families.encoders import MEL_BANDS, N_FF, EncoderFile

WIDTH = 80  # no power of 2, as no large Whisper's is: libmtmd's rounding of rows comes out as theirs


def _voxtral(writer: EncoderFile) -> None:
    writer.begin("audio", "voxtral", num_mel_bins=MEL_BANDS, projector__stack_factor=4)
    writer.whisper()
    writer.matrix("mm.a.mlp.1", writer.n_embd, 4 * writer.width)
    writer.matrix("mm.a.mlp.2", writer.n_embd, writer.n_embd)


def _ultravox(writer: EncoderFile) -> None:
    writer.begin("audio", "ultravox", num_mel_bins=MEL_BANDS, projector__stack_factor=8)
    writer.whisper()
    writer.norm("mm.a.norm_pre", 8 * writer.width)
    writer.matrix("mm.a.mlp.1", 2 * N_FF, 8 * writer.width)
    writer.norm("mm.a.norm_mid", N_FF)
    writer.matrix("mm.a.mlp.2", writer.n_embd, N_FF)


def _glm_asr(writer: EncoderFile) -> None:
    writer.begin("audio", "glma", num_mel_bins=MEL_BANDS, projector__stack_factor=4)
    writer.whisper()
    writer.norm("mm.a.norm_pre", writer.width, bias=True)
    writer.linear("mm.a.mlp.1", N_FF, 4 * writer.width)
    writer.linear("mm.a.mlp.2", writer.n_embd, N_FF)
    writer.vector("v.boi", 1, writer.n_embd, spread=1.0)
    writer.vector("v.eoi", 1, writer.n_embd, spread=1.0)


VOXTRAL = Family(
    "voxtral",
    partial(
        write_plain,
        arch="llama",
        vocabulary=Vocabulary(
            ("<s>", "</s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[BEGIN_AUDIO]"),
            "</s>",
            "<s>",
            MISTRAL,
        ),
    ),
    _voxtral,
    sound_marks=("[BEGIN_AUDIO]", ""),
    sees=False,
    hears=True,
    encoder_width=WIDTH,
)

ULTRAVOX = Family(
    "ultravox",
    partial(
        write_plain,
        arch="llama",
        vocabulary=Vocabulary(
            ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
            "<|eot_id|>",
            "<|begin_of_text|>",
            LLAMA_3,
        ),
    ),
    _ultravox,
    sees=False,
    hears=True,
    encoder_width=WIDTH,
)

GLM_ASR = Family(
    "glm-asr",
    partial(
        write_plain,
        arch="llama",
        vocabulary=Vocabulary(
            ("[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<think>", "</think>"),
            "<|user|>",
            chat=GLM,
        ),
    ),
    _glm_asr,
    sees=False,
    hears=True,
    encoder_width=WIDTH,
)
