// The C API of what an mmproj file says of its encoders.
#include "api_common.h"

#include "encode/facts.h"

#include <algorithm>
#include <cstring>

using namespace ot;
using namespace ot::api;

namespace {

template <size_t Size>
void copy_name(const std::string & from, char (&to)[Size]) {
    const size_t n = std::min(from.size(), Size - 1);
    std::memcpy(to, from.data(), n);
    to[n] = 0;
}

}  // namespace

int ot_encoders_read(const char * mmproj, ot_encoders * out) {
    return guarded([&] {
        if (!out || out->size != sizeof(ot_encoders)) throw Failure{OT_ERR_ARGUMENT, "ot_encoders has another size: built against another header"};
        const EncoderFacts facts = encoder_facts(mmproj);
        copy_name(facts.vision, out->vision);
        out->frames = static_cast<int32_t>(facts.frames);
        out->side = facts.size;
        out->multiple = facts.multiple;
        out->min_tokens = facts.min_tokens;
        out->max_tokens = facts.max_tokens;
        out->slice_tokens = facts.slice_tokens;
        out->ends_rows = facts.ends_rows;
        copy_name(facts.audio, out->audio);
        out->sound = facts.sound;
        out->sound_tokens = facts.sound_tokens;
        out->n_embd = facts.n_embd;
    });
}
