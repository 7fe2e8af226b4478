// How many rows a Whisper-like audio encoder gives for so many frames: what libmtmd expects, and what its graph computes.
// It aborts the process where the two differ, and they do: by rounding that is right for powers of two alone, or for the
// 30 seconds to which libmtmd itself pads every sound.
#pragma once

#include <cstdint>

namespace ot {

// What follows the encoder's convolutions, which halve the frames.
struct AudioTail {
    bool pools = false;      // pairs of rows are averaged
    uint32_t stack = 1;      // rows that are joined to one
    bool enclosed = false;   // a row before and one after the sound; rows that are left over are expected to fall away
    uint32_t n_embd = 0;     // the encoder's width
};

uint32_t expected_rows(const AudioTail & tail, uint32_t frames);
uint32_t computed_rows(const AudioTail & tail, uint32_t frames);

// The least even number of frames from `frames` to `most` for which both are the same and there is sound in the rows; 0: none.
uint32_t fitting_frames(const AudioTail & tail, uint32_t frames, uint32_t most);

}  // namespace ot
