// Image and audio encoders on libmtmd: pixels and samples in, rows of embeddings for the language model out.
//
// Stock mtmd wraps images in text that Qwen2.5-Omni's vocabulary lacks and pads every sound to 30 s. We take the image
// chunk alone, and encode sound by the window it comes in (25 tokens a second) on the audio model mtmd has loaded.
#pragma once

#include "encode/mel.h"

#include <cstdint>
#include <string>
#include <vector>

struct mtmd_context;
struct clip_ctx;

namespace ot {

struct Embedding {
    uint32_t n_rows = 0;
    uint32_t width = 0;       // > 0: a raster with this many tokens a row
    std::vector<float> rows;  // n_rows x n_embd
};

class Encoder {
public:
    // mtmd may be null: then there is neither vision nor sound. n_embd: row width of the language model's input.
    Encoder(mtmd_context * mtmd, uint32_t n_embd, bool mrope, int threads);

    bool has_vision() const { return vision_; }
    bool has_audio() const { return audio_ != nullptr; }
    const std::string & why_no_audio() const { return why_no_audio_; }

    // 8-bit RGB, row-major. Throws EncodeError.
    Embedding image(const uint8_t * rgb, uint32_t width, uint32_t height);

    // Mono at 16 kHz; no rows when the window is too short for one token. Throws EncodeError.
    Embedding audio(Sound window, Sound left, Sound right);

private:
    mtmd_context * mtmd_;
    clip_ctx * audio_ = nullptr;
    bool vision_ = false;
    bool mrope_;
    uint32_t n_embd_;
    int threads_;
    std::string why_no_audio_ = "the model has no audio encoder";
};

struct EncodeError {
    std::string what;
    bool unsupported = false;  // not this input but this model can't be used
};

}  // namespace ot
