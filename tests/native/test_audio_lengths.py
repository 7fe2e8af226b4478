"""Sound of every length: libmtmd aborts where its two counts of rows differ, so those lengths are avoided."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from random_stream import Running
from tiny_models import AUDIO_PROJECTORS, N_EMBD, write_attention_model, write_audio_encoder

from omnitide_cli.errors import OmniTideError
from omnitide_cli.runtime.options import EngineOptions

RATE = 16000
FRAMES = (4, 5, 6, 10, 34, 36, 40, 44, 90, 92, 98, 100, 106, 108, 116, 1098, 3000)
"""Of them, libmtmd's counts differ at 36 to 44 and 90 to 116, here and there, with each projector that joins rows."""


@pytest.mark.parametrize("projector", AUDIO_PROJECTORS)
def test_sound_of_any_length_gives_rows(tmp_path: Path, projector: str) -> None:
    names = ["[BEGIN_AUDIO]", "<|audio_bos|>", "<|audio_eos|>"]
    model = write_attention_model(tmp_path / "model.gguf", "llama", names=names)
    encoder = write_audio_encoder(tmp_path / "mmproj.gguf", projector)
    running = Running.open(model, EngineOptions(threads=2), 2048, mmproj=encoder)
    sound = np.random.default_rng(0).standard_normal(30 * RATE).astype(np.float32) * 0.1
    form = running.session.audio_format
    assert (form.encoder, form.rate, form.before, form.after, form.shortest) == ("whisper", RATE, 320, 200, 640)
    assert form.longest == 30 * RATE
    counts = []
    for frames in FRAMES:
        rows = running.session.encode_audio(sound[: 160 * frames], N_EMBD)
        assert np.isfinite(rows).all()
        counts.append(len(rows))
    assert counts == sorted(counts), "longer sound never gives fewer rows"
    assert counts[0] >= 1
    assert counts[-1] == pytest.approx(form.longest / form.samples_per_token, abs=2)
    assert len(running.session.encode_audio(sound[: form.shortest - 1], N_EMBD)) == 0
    running.session.begin("media")
    assert running.session.add_audio(sound[:RATE]) == counts[FRAMES.index(100)]
    running.session.commit()
    with pytest.raises(OmniTideError, match="30 seconds"):
        running.session.encode_audio(np.zeros(31 * RATE, np.float32), N_EMBD)
    running.close()
