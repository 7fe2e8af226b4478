// What an mmproj file says of its encoders, found without reading a weight: how frames must be sized for them, and how many
// tokens picture and sound give.
#pragma once

#include <cstdint>
#include <string>

namespace ot {

struct EncoderFacts {
    // How pictures become tokens.
    enum class Frames : uint8_t {
        None,     // there is no vision encoder
        Fixed,    // every picture is scaled to size x size
        Patches,  // the picture's own ratio, in cells of `multiple` pixels
        Slices,   // a source image and slices, each of slice_tokens
        Unknown,  // pictures are cut in a way that isn't known here
    };
    Frames frames = Frames::None;
    std::string vision;  // the projector's name, "" without one
    uint32_t size = 0;
    uint32_t multiple = 0;
    uint32_t min_tokens = 0;
    uint32_t max_tokens = 0;
    uint32_t slice_tokens = 0;
    bool ends_rows = false;  // each row of a picture has a token more
    std::string audio;       // the projector's name, "" without one
    int32_t sound = -1;  // the SoundKind that takes it
    uint32_t sound_tokens = 0;  // that a second of sound gives; 0: this encoder isn't known here
    uint32_t n_embd = 0;     // the width of its rows
};

// Throws EncodeError for what isn't an mmproj file.
EncoderFacts encoder_facts(const char * path);

}  // namespace ot
