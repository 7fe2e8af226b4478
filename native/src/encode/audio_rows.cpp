#include "encode/audio_rows.h"

namespace ot {

// As clip_n_output_tokens() does.
uint32_t expected_rows(const AudioTail & tail, uint32_t frames) {
    if (tail.enclosed) return frames / 2 / tail.stack + 2;
    const uint32_t stacked = (frames + tail.stack - 1) / tail.stack;
    return stacked / 2 / (tail.pools ? 2 : 1);
}

// As the graph of clip_graph_whisper_enc comes out, build_stack's GGML_PAD included.
uint32_t computed_rows(const AudioTail & tail, uint32_t frames) {
    const uint64_t rows = frames / 2 / (tail.pools ? 2 : 1);
    if (tail.stack <= 1) return static_cast<uint32_t>(rows) + (tail.enclosed ? 2 : 0);
    const uint64_t row = static_cast<uint64_t>(tail.n_embd) * tail.stack;
    const uint64_t padded = (rows * tail.n_embd + row - 1) & ~(row - 1);
    return static_cast<uint32_t>(padded / row) + (tail.enclosed ? 2 : 0);
}

uint32_t fitting_frames(const AudioTail & tail, uint32_t frames, uint32_t most) {
    for (uint32_t n = (frames + 1) / 2 * 2; n <= most; n += 2) {
        const uint32_t rows = computed_rows(tail, n);
        if (rows == expected_rows(tail, n) && rows > (tail.enclosed ? 2u : 0u)) return n;
    }
    return 0;
}

}  // namespace ot
