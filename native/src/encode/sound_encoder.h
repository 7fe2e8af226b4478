// What encodes sound: one interface, one implementation for each kind of encoder in sound_encoders.def, chosen by what the
// model's audio encoder is. A session has an encoder of its own, so that one may keep what it needs from unit to unit.
#pragma once

#include "encode/sound.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct clip_ctx;

namespace ot {

enum class SoundKind : uint8_t {
#define SOUND_ENCODER(value, Enumerator, name, sentence, rate, before, after, shortest) Enumerator = value,
#include "encode/sound_encoders.def"
};

// What an encoder takes, of whatever model. Counts are samples of one channel.
struct SoundFormat {
    uint32_t rate;      // samples a second
    uint32_t before;    // of the sound right before a unit
    uint32_t after;     // and right behind it
    uint32_t shortest;  // that give a token
};

#define SOUND_ENCODER(value, Enumerator, name, sentence, rate, before, after, shortest) \
    inline constexpr SoundFormat k##Enumerator##Format{rate, before, after, shortest};
#include "encode/sound_encoders.def"

class SoundEncoder {
public:
    virtual ~SoundEncoder() = default;

    // Of this model: samples that a token is made of, and the most that are encoded at once.
    virtual uint32_t samples_per_token() const = 0;
    virtual uint32_t longest() const = 0;

    // How many rows so much sound gives; 0 when it is too short for one. Throws EncodeError when it is too long.
    virtual uint32_t rows(size_t samples) const = 0;
    // Those rows, of the width of the language model's input. Throws EncodeError.
    virtual std::vector<float> encode(Sound window, Sound left, Sound right) = 0;
};

// A line of sound_encoders.def.
struct SoundEncoderEntry {
    SoundKind kind;
    const char * sentence;
    SoundFormat format;
    bool (*takes)(clip_ctx & audio);  // whether the audio model that libmtmd has loaded is of this kind
    std::unique_ptr<SoundEncoder> (*open)(clip_ctx & audio, uint32_t n_embd, int threads);
};

const std::vector<SoundEncoderEntry> & sound_encoders();

// The kind that takes an audio model; null: none does, and `why_not` says so.
const SoundEncoderEntry * sound_encoder_for(clip_ctx & audio, std::string & why_not);

}  // namespace ot
