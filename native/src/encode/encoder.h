// Image and audio encoders on libmtmd: pixels and samples in, rows of embeddings for the language model out.
//
// Stock mtmd wraps images in text that Qwen2.5-Omni's vocabulary lacks. We take the image chunk alone. Of models that cut a
// picture into a source image and slices we take the marks between them, too. Sound: sound_encoder.h.
#pragma once

#include "encode/errors.h"
#include "encode/sound_encoder.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

struct mtmd_context;
struct mtmd_input_chunk;

namespace ot {

struct Embedding {
    uint32_t n_rows = 0;
    uint32_t width = 0;       // > 0: a raster with this many tokens a row
    std::vector<float> rows;  // n_rows x n_embd
};

// A stretch of an encoded picture, in the order in which the language model reads them.
struct Piece {
    enum class Kind : uint8_t {
        Mark,    // the model's own tokens before, between and behind images
        Source,  // the whole picture, by a model that cuts pictures
        Slice,   // a part of it; or the picture, by a model that cuts none
    };
    Kind kind = Kind::Slice;
    std::vector<int32_t> tokens;  // of a mark
    Embedding image;              // of a source or a slice
};

class Encoder {
public:
    // mtmd may be null: then there is neither vision nor sound. n_embd: row width of the language model's input.
    Encoder(mtmd_context * mtmd, uint32_t n_embd, bool mrope, int threads);

    bool has_vision() const { return vision_; }
    // Whether the language model must see a picture's tokens at once, each of them all others.
    bool attends_freely() const { return attends_freely_; }
    bool has_audio() const { return sound_ != nullptr; }
    // The sound encoder, and its line in the registry. Throw EncodeError, with the reason, where there is none.
    const SoundEncoder & sound() const;
    const SoundEncoderEntry & sound_entry() const;

    // 8-bit RGB, row-major. `before_each` is called before every image that is encoded, and may throw to give up.
    // Throws EncodeError.
    std::vector<Piece> image(const uint8_t * rgb, uint32_t width, uint32_t height, const std::function<void()> & before_each = [] {});

    // One channel at the encoder's rate; no rows when the window is too short for one token. Throws EncodeError.
    Embedding audio(Sound window, Sound left, Sound right);

private:
    Embedding encode(const mtmd_input_chunk * image) const;

    mtmd_context * mtmd_;
    bool vision_ = false;
    bool attends_freely_ = false;
    bool cuts_ = false;      // pictures into a source image and slices
    bool overview_ = false;  // of what libmtmd cuts, the whole picture alone is taken
    bool mrope_;
    uint32_t n_embd_;
    const SoundEncoderEntry * sound_entry_ = nullptr;
    std::unique_ptr<SoundEncoder> sound_;  // null: the model has none that can be used
    std::string why_no_audio_ = "the model has no audio encoder";
};

// Tokens of the largest picture that the language model must see at once; 0: it need not.
uint32_t largest_whole_picture(const mtmd_context * mtmd);

}  // namespace ot
