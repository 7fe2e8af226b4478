#include "llama/half.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace ot {
namespace {

#if defined(__x86_64__)

// The wheel is built for any x86-64: what newer processors have is asked for by function, and tested before it is used.
__attribute__((target("avx2,f16c"))) void rotate_f16c(const uint16_t * from, uint16_t * to, const float * cosines, const float * sines, int64_t half) {
    constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    int64_t i = 0;
    for (; i + 8 <= half; i += 8) {
        const __m256 a = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i)));
        const __m256 b = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from + half + i)));
        const __m256 cosine = _mm256_loadu_ps(cosines + i), sine = _mm256_loadu_ps(sines + i);
        const __m256 first = _mm256_sub_ps(_mm256_mul_ps(a, cosine), _mm256_mul_ps(b, sine));
        const __m256 second = _mm256_add_ps(_mm256_mul_ps(b, cosine), _mm256_mul_ps(a, sine));
        _mm_storeu_si128(reinterpret_cast<__m128i *>(to + i), _mm256_cvtps_ph(first, nearest));
        _mm_storeu_si128(reinterpret_cast<__m128i *>(to + half + i), _mm256_cvtps_ph(second, nearest));
    }
    for (; i < half; ++i) {
        const float a = _cvtsh_ss(from[i]), b = _cvtsh_ss(from[half + i]);
        to[i] = _cvtss_sh(a * cosines[i] - b * sines[i], nearest);
        to[half + i] = _cvtss_sh(b * cosines[i] + a * sines[i], nearest);
    }
}

#elif defined(__aarch64__)

void rotate_fp16(const uint16_t * from, uint16_t * to, const float * cosines, const float * sines, int64_t half) {
    const auto * source = reinterpret_cast<const __fp16 *>(from);
    auto * __restrict target = reinterpret_cast<__fp16 *>(to);
    for (int64_t i = 0; i < half; ++i) {
        const float a = source[i], b = source[half + i];
        target[i] = static_cast<__fp16>(a * cosines[i] - b * sines[i]);
        target[half + i] = static_cast<__fp16>(b * cosines[i] + a * sines[i]);
    }
}

#endif

}  // namespace

RotateHalf rotate_half() {
#if defined(__x86_64__)
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    const bool has_f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
    return has_f16c && __builtin_cpu_supports("avx2") ? rotate_f16c : nullptr;
#elif defined(__aarch64__)
    return rotate_fp16;
#else
    return nullptr;
#endif
}

}  // namespace ot
