"""A decoded frame → an upright RGB picture on the canvas."""

from __future__ import annotations

from typing import NamedTuple, cast

import av
import numpy as np
from av.sidedata.sidedata import SideDataContainer
from av.sidedata.sidedata import Type as SideDataType
from av.video.reformatter import ColorPrimaries, Colorspace, ColorTrc
from av.video.stream import VideoStream
from numpy.typing import NDArray

from omnitide_cli.media.fit import FrameFit

COLORSPACES = {
    1: Colorspace.ITU709,
    4: Colorspace.FCC,
    5: Colorspace.ITU601,
    6: Colorspace.ITU601,
    7: Colorspace.SMPTE240M,
    9: Colorspace.BT2020,
    10: Colorspace.BT2020,  # of constant luminance, which swscale refuses; the difference is small
}
"""ISO/IEC 23091-2's numbers of the matrices that swscale knows."""

HD_HEIGHT = 720
WIDEST_PIXEL = 8  # what says more is damaged and would ask for gigabytes
HDR = (ColorTrc.SMPTE2084, ColorTrc.ARIB_STD_B67)


class PixelRatio(NamedTuple):
    """The width of a frame's pixels over their height."""

    value: float


class PixelShape:
    """The width of a pixel over its height: other than 1 on DVDs, DV tapes and many cameras, and it may change.

    What the container says holds for all of it. Else the decoder knows, and knows a new shape some frames before the
    first one that has it: a shape can only change where a frame stands by itself.
    """

    def __init__(self, stream: VideoStream) -> None:
        self._decoder = stream.codec_context
        stated, coded = stream.sample_aspect_ratio, self._decoder.sample_aspect_ratio
        self._stated = stated if stated and stated != coded else None
        self._current: float | None = None

    def note(self, frame: av.VideoFrame) -> None:
        """Let this frame, which the decoder has just given, bear its shape."""
        if self._current is None or frame.key_frame:
            ratio = float(self._stated or self._decoder.sample_aspect_ratio or 1)
            self._current = ratio if 1 / WIDEST_PIXEL <= ratio <= WIDEST_PIXEL else 1.0
        frame.opaque = PixelRatio(self._current)  # a new one each: PyAV forgets an object with the first frame it frees


def upright_picture(frame: av.VideoFrame, fit: FrameFit) -> NDArray[np.uint8]:
    """Fit `frame` on the canvas as a viewer would see it: [H, W, 3] RGB.

    Its `opaque` is the shape of its pixels, if PixelShape has noted it. What is transparent is white, as on a page.
    Raises libav's error for pixels that it can't convert.
    """
    shape = frame.opaque
    width = max(1, round(frame.width * shape.value)) if isinstance(shape, PixelRatio) else frame.width
    if frame.color_trc in HDR or frame.color_primaries == ColorPrimaries.BT2020:
        deep: NDArray[np.uint16] = _pixels(frame, width, "rgb48le").astype(np.uint16, copy=False)
        return ordinary(fit.fit(upright(deep, frame)), frame.color_trc, frame.color_primaries)
    if frame.format.has_palette or any(component.is_alpha for component in frame.format.components):
        plain = _on_white(_pixels(frame, width, "rgba").astype(np.uint8, copy=False))
    else:
        plain = _pixels(frame, width, "rgb24").astype(np.uint8, copy=False)
    return fit.fit(upright(plain, frame))


def _pixels(frame: av.VideoFrame, width: int, pixels: str) -> NDArray[np.generic]:
    # Where nothing says so, every player takes HD for BT.709 and smaller pictures for BT.601.
    guess = Colorspace.ITU709 if frame.height >= HD_HEIGHT else Colorspace.ITU601
    space = COLORSPACES.get(frame.colorspace, guess)
    return frame.reformat(width=width, format=pixels, src_colorspace=space, dst_colorspace=space).to_ndarray()


def _on_white(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Lay a picture with alpha [H, W, 4] on white."""
    alpha = picture[..., 3:].astype(np.uint16)
    return ((picture[..., :3] * alpha + 255 * (255 - alpha) + 127) // 255).astype(np.uint8)


def upright(picture: NDArray, frame: av.VideoFrame) -> NDArray:
    """Undo how the camera was held: quarter turns and mirroring of the frame's display matrix."""
    turn, mirrored = display_turn(frame)
    if mirrored:
        picture = picture[:, ::-1]
    return np.ascontiguousarray(np.rot90(picture, k=turn))


def display_turn(frame: av.VideoFrame) -> tuple[int, bool]:
    """Counterclockwise quarter turns to apply to `frame`, and whether to mirror it left to right before that."""
    side_data = cast(SideDataContainer, frame.side_data)
    if (matrix := side_data.get(SideDataType.DISPLAYMATRIX)) is None:
        return 0, False
    a, b, _, c, d = np.frombuffer(bytes(matrix), np.int32)[:5].tolist()
    mirrored = a * d - b * c < 0
    # The matrix maps (x, y) to (a·x + c·y, b·x + d·y), y downwards. Mirroring first flips the sign of x.
    x, y = (-a, -b) if mirrored else (a, b)
    return round(np.degrees(np.arctan2(-y, x)) / 90) % 4, mirrored


# A phone's HDR picture looks grey and washed out if its code values are shown as they are. swscale could convert it,
# too, but takes seconds a frame for its table and is farther off (a red of 230, 20, 20 comes out as 240, 19, 8).

SDR_WHITE = 203.0  # cd/m² of plain white in HDR pictures, ITU-R BT.2408
GAMMA = 2.2  # of the screens that ordinary pictures are made for
KNEE = 0.8  # of plain white; what is brighter shares the rest with the highlights
BT2020_TO_BT709 = np.array(
    [[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]], np.float32
)  # ITU-R BT.2087


def ordinary(picture: NDArray[np.uint16], transfer: int, primaries: int) -> NDArray[np.uint8]:
    """HDR or wide-gamut code values [H, W, 3] → an ordinary picture: plain white stays, highlights roll off."""
    code = picture.astype(np.float32) / np.float32(65535)
    if transfer == ColorTrc.SMPTE2084:
        light = pq_light(code) / SDR_WHITE
    elif transfer == ColorTrc.ARIB_STD_B67:
        light = hlg_light(code) / SDR_WHITE
    else:
        light = code**GAMMA
    if primaries != ColorPrimaries.BT709:  # HDR without a tag is BT.2020
        light = np.maximum(light @ BT2020_TO_BT709.T, 0)
    if transfer in HDR:
        over = np.maximum(light - KNEE, 0)
        light = np.where(light > KNEE, KNEE + (1 - KNEE) * over / (over + (1 - KNEE)), light)
    return np.rint(255 * np.clip(light, 0, 1) ** (1 / GAMMA)).astype(np.uint8)


def pq_light(code: NDArray[np.float32]) -> NDArray[np.float32]:
    """SMPTE ST 2084: code value 0 … 1 → cd/m²."""
    power = code ** np.float32(1 / 78.84375)
    light = (np.maximum(power - 0.8359375, 0) / (18.8515625 - 18.6875 * power)) ** np.float32(1 / 0.1593017578125)
    return (10_000 * light).astype(np.float32)


def hlg_light(code: NDArray[np.float32]) -> NDArray[np.float32]:
    """ITU-R BT.2100 HLG: code value 0 … 1 → cd/m² on a display of 1000 cd/m²."""
    a, b, c = 0.17883277, 0.28466892, 0.55991073
    scene = np.where(code <= 0.5, code**2 / 3, (np.exp((code - c) / a) + b) / 12)
    luminance = scene @ np.array([0.2627, 0.678, 0.0593], np.float32)
    return (1000 * scene * np.maximum(luminance, 1e-6)[..., None] ** 0.2).astype(np.float32)
