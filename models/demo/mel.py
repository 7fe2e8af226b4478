"""Whisper's log-mel of one second, alone or inside a longer recording."""

import torch
from torch import Tensor
from transformers.audio_utils import mel_filter_bank

_FILTERS = torch.tensor(mel_filter_bank(201, 128, 0, 8000, 16000, norm="slaney", mel_scale="slaney")).float().T
_WINDOW = torch.hann_window(400)


def log_mel(waves: Tensor, isolated: Tensor) -> Tensor:
    """float32 [n, 320 + 16000 + 200] → [n, 128, 100].

    isolated bool [n]: forget the neighbouring sound; mirror the start and put silence after the end, as
    Whisper does with a clip of one second.
    """
    if not len(waves):
        return waves.new_zeros(0, 128, 100)
    near = waves[:, 120:].clone()  # frame i is centred on sample 160 · i of the second and spans 400
    alone = isolated.nonzero()[:, 0]
    near[alone, :200] = near[alone, 201:401].flip(1)
    near[alone, 16200:] = 0
    power = torch.stft(near, 400, 160, window=_WINDOW, center=False, return_complex=True).abs() ** 2
    level = (_FILTERS @ power[..., :100]).clamp_min(1e-10).log10()
    level = torch.maximum(level, level.amax((1, 2), keepdim=True) - 8)
    return (level + 4) / 4


def darken(waves: Tensor, cutoffs: Tensor) -> Tensor:
    """Take away what lies above each wave's cutoff in Hz, as codecs and resamplers do."""
    if not len(waves):
        return waves
    spectrum = torch.fft.rfft(waves)
    frequency = torch.linspace(0, 8000, spectrum.shape[1])
    return torch.fft.irfft(spectrum * torch.sigmoid((cutoffs[:, None] - frequency) / 60), waves.shape[1])
