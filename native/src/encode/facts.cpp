#include "encode/facts.h"

#include "encode/errors.h"
#include "encode/sound_encoder.h"

#include "clip-impl.h"
#include "clip-model.h"
#include "clip.h"

#include <algorithm>
#include <memory>

namespace ot {
namespace {

constexpr uint32_t kMostSlices = 9;       // that libmtmd makes of a picture
constexpr uint32_t kMostTokens = 1 << 14;  // of a picture; some encoders set no bound
constexpr uint32_t kLeastCells = 4;        // a picture of 2 x 2

struct FreeClip {
    void operator()(clip_ctx * clip) const { clip_free(clip); }
};
using Clip = std::unique_ptr<clip_ctx, FreeClip>;

std::string name_of(const clip_ctx * clip) { return PROJECTOR_TYPE_NAMES[clip_get_projector_type(clip)]; }

// As mtmd_context::init_vision() chooses how pictures are prepared. What cuts pictures, but cuts none of this size, is Fixed.
EncoderFacts::Frames frames_of(const clip_ctx * clip) {
    using Frames = EncoderFacts::Frames;
    switch (clip_get_projector_type(clip)) {
        case PROJECTOR_TYPE_MLP:
        case PROJECTOR_TYPE_MLP_NORM:
        case PROJECTOR_TYPE_LDP:
        case PROJECTOR_TYPE_LDPV2:
        case PROJECTOR_TYPE_COGVLM:
        case PROJECTOR_TYPE_JANUS_PRO:
        case PROJECTOR_TYPE_GLM_EDGE:
            return clip_get_hparams(clip)->image_res_candidates.empty() ? Frames::Fixed : Frames::Unknown;
        case PROJECTOR_TYPE_GEMMA3:
        case PROJECTOR_TYPE_GEMMA3NV:
        case PROJECTOR_TYPE_NEMOTRON_V2_VL:
        case PROJECTOR_TYPE_YASA2:
        case PROJECTOR_TYPE_INTERNVL:  // of this size it has one tile
        case PROJECTOR_TYPE_IDEFICS3:  // its overview is taken
            return Frames::Fixed;
        case PROJECTOR_TYPE_QWEN2VL:
        case PROJECTOR_TYPE_QWEN25VL:
        case PROJECTOR_TYPE_QWEN3VL:
        case PROJECTOR_TYPE_LING3VL:
        case PROJECTOR_TYPE_MIMOVL:
        case PROJECTOR_TYPE_MINIMAX_M3:
        case PROJECTOR_TYPE_PIXTRAL:
        case PROJECTOR_TYPE_PHI4:
        case PROJECTOR_TYPE_KIMIVL:
        case PROJECTOR_TYPE_KIMIK25:
        case PROJECTOR_TYPE_DOTS_OCR:
        case PROJECTOR_TYPE_DOTS3NOTE_V:
        case PROJECTOR_TYPE_GLM4V:
        case PROJECTOR_TYPE_PADDLEOCR:
        case PROJECTOR_TYPE_GEMMA4V:
        case PROJECTOR_TYPE_GEMMA4UV:
        case PROJECTOR_TYPE_EXAONE4_5:
        case PROJECTOR_TYPE_LFM2:  // up to its most pixels it has one tile
            return Frames::Patches;
        case PROJECTOR_TYPE_MINICPMV:
            return Frames::Slices;
        default:
            return Frames::Unknown;
    }
}

uint32_t tokens_of(const clip_ctx * clip, uint32_t width, uint32_t height) {
    clip_image_f32 picture;
    picture.set_size({static_cast<int>(width), static_cast<int>(height)}, true, false);
    return static_cast<uint32_t>(std::max(clip_n_output_tokens(clip, &picture), 0));
}

void see(EncoderFacts & facts, const clip_ctx * clip) {
    const clip_hparams & hparams = *clip_get_hparams(clip);
    facts.vision = name_of(clip);
    facts.frames = frames_of(clip);
    if (facts.frames == EncoderFacts::Frames::Unknown) return;
    facts.size = static_cast<uint32_t>(std::max(hparams.image_size, 0));
    if (facts.frames == EncoderFacts::Frames::Fixed) {
        facts.min_tokens = facts.max_tokens = tokens_of(clip, facts.size, facts.size);
    } else if (facts.frames == EncoderFacts::Frames::Slices) {
        facts.slice_tokens = facts.min_tokens = tokens_of(clip, facts.size, facts.size);
        facts.max_tokens = facts.slice_tokens * (1 + kMostSlices);
    } else {
        const auto cell = static_cast<uint32_t>(std::max(hparams.patch_size * std::max(hparams.n_merge, 1), 1));
        const auto cells = [cell](int pixels) { return pixels <= 0 ? 0 : static_cast<uint32_t>(pixels) / (cell * cell); };
        facts.multiple = cell;
        facts.min_tokens = std::max(cells(hparams.image_min_pixels), kLeastCells);
        facts.max_tokens = hparams.image_max_pixels > 0 ? std::max(cells(hparams.image_max_pixels), facts.min_tokens) : kMostTokens;
        facts.max_tokens = std::min(facts.max_tokens, kMostTokens);
        facts.ends_rows = tokens_of(clip, 2 * cell, 2 * cell) > kLeastCells;
    }
    facts.n_embd = static_cast<uint32_t>(clip_n_mmproj_embd(clip));
}

void hear(EncoderFacts & facts, clip_ctx * clip) {
    facts.audio = name_of(clip);
    facts.n_embd = static_cast<uint32_t>(clip_n_mmproj_embd(clip));
    std::string why_not;
    const SoundEncoderEntry * entry = sound_encoder_for(*clip, why_not);
    if (!entry) return;
    facts.sound = static_cast<int32_t>(entry->kind);
    facts.sound_tokens = entry->open(*clip, facts.n_embd, 1)->rows(entry->format.rate);
}

}  // namespace

EncoderFacts encoder_facts(const char * path) {
    clip_context_params params{};
    params.flash_attn_type = CLIP_FLASH_ATTN_TYPE_DISABLED;
    params.image_min_tokens = params.image_max_tokens = -1;
    params.no_alloc = true;
    const clip_init_result loaded = clip_init(path, params);
    const Clip vision{loaded.ctx_v}, audio{loaded.ctx_a}, speech{loaded.ctx_gen_a};
    if (!vision && !audio) throw EncodeError{std::string(path) + " has no encoder that libmtmd can load", true};
    EncoderFacts facts;
    if (vision) see(facts, vision.get());
    if (audio) hear(facts, audio.get());
    return facts;
}

}  // namespace ot
