"""Every tiny family is one that stock llama.cpp and libmtmd load: what tests build on it means something."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tiny_models.families import FAMILIES

from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native import llama, mtmd
from omnitide_cli.runtime.options import EngineOptions, ModelFiles


@pytest.mark.parametrize("name", FAMILIES)
def test_stock_loads_it_and_says_what_it_senses(name: str, tiny_family_folder: Path) -> None:
    family = FAMILIES[name]
    model, mmproj = family.write(tiny_family_folder)
    loaded = Model(ModelFiles(name, model, None), EngineOptions(threads=1, gpu_layers=0))
    try:
        params = mtmd.mtmd_context_params_default()
        params.warmup = False
        params.use_gpu = False
        encoders = mtmd.mtmd_init_from_file(os.fsencode(mmproj), loaded._model, params)
        assert encoders
        assert bool(mtmd.mtmd_support_vision(encoders)) == family.sees
        assert bool(mtmd.mtmd_support_audio(encoders)) == family.hears
        mtmd.mtmd_free(encoders)
        context = loaded.new_context(EngineOptions(threads=1, gpu_layers=0), 256)
        llama.llama_free(context)
    finally:
        loaded.close()
