// Rotation of keys that are stored as f16, by what the processor has for it.
#pragma once

#include <cstdint>

namespace ot {

// One head, from f16 to f16: halves turn against each other, to[i] = from[i] x cosines[i] - from[half + i] x sines[i] and
// to[half + i] = from[half + i] x cosines[i] + from[i] x sines[i], computed in f32, rounded to the nearest.
using RotateHalf = void (*)(const uint16_t * from, uint16_t * to, const float * cosines, const float * sines, int64_t half);

// nullptr: this processor converts f16 only in software.
RotateHalf rotate_half();

}  // namespace ot
