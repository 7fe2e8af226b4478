"""Clips are cut from a file without encoding anything anew."""

from __future__ import annotations

from pathlib import Path

import av
import pytest

from omnitide_cli.errors import SourceError
from omnitide_cli.media.clip import copy_clip

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "shapes-and-notes.mp4"


def test_a_clip_holds_the_seconds_asked_for(tmp_path: Path) -> None:
    path = copy_clip(EXAMPLE, 10.0, 13.0, tmp_path / "clip")
    assert path == tmp_path / "clip.mp4"
    assert list(tmp_path.iterdir()) == [path]
    with av.open(str(path)) as clip:
        assert {stream.type for stream in clip.streams} == {"video", "audio"}
        frames = [frame.time for frame in clip.decode(video=0)]
    assert frames[0] == pytest.approx(0.0, abs=0.2)
    assert 2.8 <= frames[-1] - frames[0] <= 13.0  # from the key frame before


def test_codecs_that_mp4_lacks_go_into_matroska(tmp_path: Path) -> None:
    source = tmp_path / "sound.mkv"
    with av.open(str(EXAMPLE)) as given, av.open(str(source), "w") as written:
        sound = written.add_stream("pcm_s16le", rate=16_000, layout="mono")
        resampler = av.AudioResampler("s16", "mono", 16_000)
        for frame in given.decode(audio=0):
            for each in resampler.resample(frame):
                each.pts = None
                written.mux(sound.encode(each))
        written.mux(sound.encode(None))
    path = copy_clip(source, 2.0, 4.0, tmp_path / "clip")
    with av.open(str(path)) as clip:
        seconds = sum(frame.samples / 16_000 for frame in clip.decode(audio=0))
    assert 1.9 <= seconds <= 2.5


def test_where_nothing_is_there_is_no_clip(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no clip"):
        copy_clip(EXAMPLE, 9000.0, 9003.0, tmp_path / "clip")
    with pytest.raises(SourceError):
        copy_clip(tmp_path / "none.mp4", 0.0, 3.0, tmp_path / "clip")
    assert list(tmp_path.iterdir()) == []
