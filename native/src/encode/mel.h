// Whisper's log-mel spectrogram of a short window (25 ms Hann, 10 ms hop, Slaney mel bands), for 16 kHz mono.
#pragma once

#include "encode/sound.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ot {

inline constexpr uint32_t kSampleRate = 16000;
inline constexpr uint32_t kHop = 160;
inline constexpr uint32_t kWindow = 400;

struct Mel {
    uint32_t n_mel = 0;
    uint32_t n_frames = 0;
    std::vector<float> data;  // n_mel rows of n_frames
    float silence = 0;        // what a band of a frame without sound would be
};

// Frame i is centred on sample 160 i of the window; there are floor(samples / 160) of them. Beyond the window the real
// neighbours are used as far as given, then, as Whisper pads a clip, its mirror image on the left and silence on the
// right. Values are clamped to 8 below the window's maximum and mapped to (x + 4) / 4.
Mel log_mel(Sound window, Sound left, Sound right, uint32_t n_mel);

}  // namespace ot
