// Half-precision numbers without help of the processor, in loops that compilers vectorise.
#pragma once

#include <cstdint>
#include <cstring>

namespace ot {

// Exact for every finite number; an index holds no others.
inline float from_half(uint16_t half) {
    const uint32_t shifted = (half & 0x7fffu) << 13;
    float value;
    std::memcpy(&value, &shifted, sizeof value);
    value *= 5.192296858534828e33f;  // 2^112: the difference of the two exponents' biases
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    bits |= static_cast<uint32_t>(half & 0x8000u) << 16;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// To the nearest, ties to even; what is too large becomes the largest number, and no number becomes 0.
inline uint16_t to_half(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
    bits &= 0x7fffffffu;
    if (bits > 0x7f800000u) return 0;
    if (bits >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7bffu);  // rounds to 65520 or more
    if (bits < 0x38800000u) {  // subnormal: adding 0.5 leaves the rounded value in the low bits
        float magnitude;
        std::memcpy(&magnitude, &bits, sizeof magnitude);
        magnitude += 0.5f;
        uint32_t rounded;
        std::memcpy(&rounded, &magnitude, sizeof rounded);
        return static_cast<uint16_t>(sign | (rounded - 0x3f000000u));
    }
    bits += 0xfffu + ((bits >> 13) & 1u);
    return static_cast<uint16_t>(sign | ((bits - 0x38000000u) >> 13));
}

}  // namespace ot
