"""Colours come out as a viewer would see them, however they are stored."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest
from av.video.reformatter import ColorPrimaries, ColorRange, Colorspace, ColorTrc
from helpers_media import Video, make_clip, plain
from numpy.typing import NDArray

from omnitide_cli.media import FrameFit, open_source
from omnitide_cli.media.picture import ordinary, upright_picture

FIT = FrameFit.square(128)
PATCHES = [
    *[(0, 0, 0), (20, 20, 20), (128, 128, 128), (200, 200, 200)],
    *[(240, 240, 240), (255, 255, 255), (230, 20, 20), (20, 200, 20)],
    *[(20, 20, 230), (200, 40, 40), (240, 220, 30), (180, 120, 90)],
    *[(40, 90, 160), (90, 60, 40), (10, 60, 20), (220, 180, 160)],
]
BRIGHT = 230
"""Above it an HDR picture of a white wall is a little darker than its twin, to leave room for highlights."""
HDR_TOLERANCE, BRIGHT_TOLERANCE = 6, 14

TO_BT2020 = np.array([[0.6274, 0.3293, 0.0433], [0.0691, 0.9195, 0.0114], [0.0164, 0.0880, 0.8956]])  # BT.2087


def board() -> NDArray[np.uint8]:
    """The patches, four by four, in 128 × 128 pixels."""
    return np.array(PATCHES, np.uint8).reshape(4, 4, 3).repeat(32, 0).repeat(32, 1)


def patches_of(picture: NDArray[np.uint8]) -> NDArray[np.int64]:
    return picture[16::32, 16::32].reshape(-1, 3).astype(np.int64)


def pq(light: NDArray[np.float64]) -> NDArray[np.float64]:
    """SMPTE ST 2084: cd/m² → code value."""
    power = (light / 10_000) ** 0.1593017578125
    return ((0.8359375 + 18.8515625 * power) / (1 + 18.6875 * power)) ** 78.84375


def hlg(light: NDArray[np.float64]) -> NDArray[np.float64]:
    """ITU-R BT.2100: cd/m² on a display of 1000 cd/m² → code value."""
    luminance = np.maximum(light @ [0.2627, 0.678, 0.0593] / 1000, 1e-9)
    scene = light / 1000 * (luminance ** (1 / 1.2 - 1))[..., None]
    a, b, c = 0.17883277, 0.28466892, 0.55991073
    return np.where(scene <= 1 / 12, np.sqrt(3 * scene), a * np.log(np.maximum(12 * scene - b, 1e-9)) + c)


def wide(light: NDArray[np.float64]) -> NDArray[np.float64]:
    """An ordinary screen's code values."""
    return (light / 203) ** (1 / 2.2)


def ten_bits(code: NDArray[np.float64], color_range: ColorRange) -> NDArray[np.uint16]:
    """Code values [H, W, 3] as the planes of yuv420p10le, ITU-R BT.2100."""
    luma = code @ [0.2627, 0.678, 0.0593]
    chroma = [((code[..., i] - luma) / scale)[::2, ::2] for i, scale in ((2, 1.8814), (0, 1.4746))]
    black, steps, chroma_steps = (0, 1023, 1023) if color_range == ColorRange.JPEG else (64, 876, 896)
    planes = [black + steps * luma, *(512 + chroma_steps * plane for plane in chroma)]
    return (
        np.rint(np.concatenate([plane.reshape(-1, luma.shape[1]) for plane in planes])).clip(0, 1023).astype(np.uint16)
    )


GRADES = {
    "HDR10": (pq, ColorTrc.SMPTE2084, ColorRange.MPEG),
    "HDR10, full range": (pq, ColorTrc.SMPTE2084, ColorRange.JPEG),
    "HLG": (hlg, ColorTrc.ARIB_STD_B67, ColorRange.MPEG),
    "wide gamut": (wide, ColorTrc.BT2020_10, ColorRange.MPEG),
}


def first_frame(path: Path) -> NDArray[np.uint8]:
    with open_source(str(path), fit=FIT) as source:
        (unit,) = source
        assert source.warnings == []
    assert unit.frame is not None
    return unit.frame


@pytest.mark.parametrize("grade", list(GRADES))
def test_an_hdr_clip_looks_like_its_ordinary_twin(tmp_path: Path, grade: str) -> None:
    """The same scene, graded for both as BT.2408 says: plain white of an ordinary screen is 203 cd/m²."""
    encode, transfer, color_range = GRADES[grade]
    light = 203 * (board() / 255) ** 2.2 @ TO_BT2020.T
    stored = av.VideoFrame.from_ndarray(ten_bits(encode(light).clip(0, 1), color_range), "yuv420p10le")
    path = tmp_path / "hdr.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx265", rate=10, options={"x265-params": "log-level=none:lossless=1"})
        stream.width = stream.height = 128
        stream.pix_fmt = "yuv420p10le"
        coder = stream.codec_context
        coder.color_trc, coder.color_range = transfer, color_range
        coder.color_primaries, coder.colorspace = ColorPrimaries.BT2020, Colorspace.BT2020
        for _ in range(5):
            container.mux(stream.encode(stored))
        container.mux(stream.encode(None))
    twin = make_clip(tmp_path / "sdr.mkv", Video(lambda _: board(), 0.5, fps=10, codec="ffv1", pix_fmt="yuv444p"))
    seen, expected = patches_of(first_frame(path)), patches_of(first_frame(Path(twin)))
    off = np.abs(seen - expected).max(axis=1)
    bright = expected.max(axis=1) > BRIGHT
    assert off[~bright].max() <= HDR_TOLERANCE
    assert off[bright].max() <= (HDR_TOLERANCE if grade == "wide gamut" else BRIGHT_TOLERANCE)


@pytest.mark.parametrize(("transfer", "white"), [(ColorTrc.SMPTE2084, 0.5807), (ColorTrc.ARIB_STD_B67, 0.75)])
def test_hdr_white_is_white_and_dark_is_dark(transfer: int, white: float) -> None:
    """ITU-R BT.2408: plain white has the code value 58 % in PQ and 75 % in HLG."""
    levels = np.array([0.0, white / 2, white, 1.0])
    picture = np.rint(65535 * levels[None, :, None].repeat(3, axis=2)).astype(np.uint16)
    mapped = ordinary(picture, transfer, ColorPrimaries.BT2020)[0].astype(int)
    assert np.ptp(mapped, axis=1).max() <= 2  # grey stays grey
    black, grey, plain_white, highlight = mapped[:, 0]
    assert black == 0 < grey < 170
    assert 220 <= plain_white < highlight <= 255


@pytest.mark.parametrize("size", [(64, 48), (1280, 720)])
@pytest.mark.parametrize("colour", [(200, 40, 40), (40, 180, 60), (250, 250, 250), (128, 128, 128)])
@pytest.mark.parametrize("pixels", ["yuv420p", "yuvj420p", "yuv422p10le", "yuv444p", "yuv444p12le", "nv12", "p010le"])
@pytest.mark.parametrize("color_range", [ColorRange.MPEG, ColorRange.JPEG])
def test_colours_survive(
    size: tuple[int, int], colour: tuple[int, int, int], pixels: str, color_range: ColorRange
) -> None:
    """Without a tag, HD is BT.709 and what is smaller BT.601; the range is always tagged."""
    frame = av.VideoFrame.from_ndarray(plain(colour, size)(0), "rgb24")
    from_space = Colorspace.ITU709 if size[1] >= 720 else Colorspace.ITU601
    stored = frame.reformat(format=pixels, dst_colorspace=from_space, dst_color_range=color_range)
    stored.colorspace = 2
    fitted = upright_picture(stored, FIT)
    np.testing.assert_allclose(fitted[64, 64], colour, atol=5)


@pytest.mark.parametrize("pixels", ["gray", "gray10le", "gray16be", "monob", "ya8", "grayf32le"])
@pytest.mark.parametrize("level", [0, 255])
def test_pictures_without_colours_are_grey(pixels: str, level: int) -> None:
    stored = av.VideoFrame.from_ndarray(plain((level, level, level))(0), "rgb24").reformat(format=pixels)
    np.testing.assert_allclose(upright_picture(stored, FIT)[64, 64], (level,) * 3, atol=5)


@pytest.mark.parametrize(
    "pixels", ["rgb24", "bgr0", "gbrp10le", "rgb565le", "rgb48be", "x2rgb10le", "gbrpf32le", "argb"]
)
def test_rgb_of_any_order_and_depth(pixels: str) -> None:
    stored = av.VideoFrame.from_ndarray(plain((200, 40, 40))(0), "rgb24").reformat(format=pixels)
    np.testing.assert_allclose(upright_picture(stored, FIT)[64, 64], (200, 40, 40), atol=8)


def test_what_is_transparent_is_white() -> None:
    pixels = np.zeros((64, 64, 4), np.uint8)
    pixels[:, :, 0] = 200
    pixels[:, :32, 3] = 255
    pixels[:, 32:48, 3] = 128
    seen = upright_picture(av.VideoFrame.from_ndarray(pixels, "rgba"), FrameFit.square(64))
    np.testing.assert_allclose(seen[32, 16], (200, 0, 0), atol=1)
    np.testing.assert_allclose(seen[32, 40], (227, 127, 127), atol=1)
    np.testing.assert_allclose(seen[32, 56], (255, 255, 255), atol=1)


def test_palettes_are_looked_up() -> None:
    palette = np.zeros((256, 4), np.uint8)
    palette[1], palette[2] = (255, 200, 40, 40), (0, 9, 9, 9)  # alpha, red, green, blue
    numbers = np.repeat(np.array([[1, 2]], np.uint8), 32, axis=1).repeat(64, axis=0)
    stored = av.VideoFrame.from_ndarray((numbers, palette), "pal8")  # pyright: ignore[reportArgumentType]
    seen = upright_picture(stored, FrameFit.square(64))
    np.testing.assert_allclose(seen[32, 8], (200, 40, 40), atol=1)
    np.testing.assert_allclose(seen[32, 56], (255, 255, 255), atol=1)


@pytest.mark.parametrize("space", range(25))
def test_no_tag_stops_a_picture(space: int) -> None:
    """Some matrices are unknown to swscale, and damaged headers hold any number."""
    stored = av.VideoFrame.from_ndarray(plain((128, 128, 128))(0), "rgb24").reformat(format="yuv420p")
    stored.colorspace = stored.color_primaries = space
    np.testing.assert_allclose(upright_picture(stored, FIT)[64, 64], (128, 128, 128), atol=5)


@pytest.mark.parametrize(
    ("name", "codec", "pixels"),
    [
        ("clip.mkv", "libx264", "yuv444p"),
        ("clip.mkv", "libx264", "yuv420p10le"),
        ("clip.mkv", "ffv1", "gray"),
        ("clip.mkv", "ffv1", "bgr0"),
        ("clip.avi", "mpeg4", "yuv420p"),
        ("clip.webm", "libvpx-vp9", "yuv420p"),
        ("clip.gif", "gif", "gray"),
        ("clip.mov", "prores_ks", "yuva444p10le"),
        ("clip.mov", "qtrle", "argb"),
        ("clip.apng", "apng", "rgba"),
    ],
)
def test_odd_pixel_formats_decode(tmp_path: Path, name: str, codec: str, pixels: str) -> None:
    video = Video(plain((128, 128, 128)), 0.5, codec=codec, pix_fmt=pixels)
    path = make_clip(tmp_path / name, video)
    np.testing.assert_allclose(first_frame(Path(path))[64, 64], (128, 128, 128), atol=4)
