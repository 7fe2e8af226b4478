"""Families of models that see and hear, as tiny random weights: what people run with libmtmd today."""

from tiny_models.families.base import Family
from tiny_models.families.gemma3 import GEMMA3, write_gemma3_encoders
from tiny_models.families.gemma4 import GEMMA4, GEMMA4_E2B
from tiny_models.families.glm46v import GLM_46V
from tiny_models.families.hearing import GLM_ASR, ULTRAVOX, VOXTRAL
from tiny_models.families.internvl3 import INTERNVL3
from tiny_models.families.lfm2_vl import LFM2_VL, write_lfm2
from tiny_models.families.moondream2 import MOONDREAM2
from tiny_models.families.pixtral import PIXTRAL
from tiny_models.families.qwen3_omni import QWEN3_OMNI
from tiny_models.families.qwen3_vl import QWEN3_VL
from tiny_models.families.qwen25_omni import QWEN25_OMNI
from tiny_models.families.qwen25_vl import QWEN25_VL
from tiny_models.families.qwen35 import QWEN35
from tiny_models.families.smolvlm2 import SMOLVLM2

FAMILIES = {
    family.name: family
    for family in (
        QWEN25_OMNI,
        QWEN25_VL,
        QWEN3_VL,
        QWEN3_OMNI,
        GLM_46V,
        INTERNVL3,
        MOONDREAM2,
        PIXTRAL,
        VOXTRAL,
        ULTRAVOX,
        GLM_ASR,
        SMOLVLM2,
        GEMMA3,
        GEMMA4,
        GEMMA4_E2B,
        QWEN35,
        LFM2_VL,
    )
}

__all__ = ["FAMILIES", "Family", "write_gemma3_encoders", "write_lfm2"]
