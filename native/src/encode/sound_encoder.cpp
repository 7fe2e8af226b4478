#include "encode/sound_encoder.h"

namespace ot {

#define SOUND_ENCODER(value, Enumerator, name, sentence, rate, before, after, shortest) \
    bool takes_##name(clip_ctx & audio);                                                \
    std::unique_ptr<SoundEncoder> open_##name(clip_ctx & audio, uint32_t n_embd, int threads);
#include "encode/sound_encoders.def"

const std::vector<SoundEncoderEntry> & sound_encoders() {
    static const std::vector<SoundEncoderEntry> entries{
#define SOUND_ENCODER(value, Enumerator, name, sentence, rate, before, after, shortest) \
    {SoundKind::Enumerator, sentence, k##Enumerator##Format, takes_##name, open_##name},
#include "encode/sound_encoders.def"
    };
    return entries;
}

const SoundEncoderEntry * sound_encoder_for(clip_ctx & audio, std::string & why_not) {
    std::string known;
    for (const SoundEncoderEntry & entry : sound_encoders()) {
        if (entry.takes(audio)) return &entry;
        known += (known.empty() ? "" : " or ") + std::string(entry.sentence);
    }
    why_not = "this model's audio encoder does not take " + known;
    return nullptr;
}

}  // namespace ot
