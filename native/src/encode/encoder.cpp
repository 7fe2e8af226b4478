#include "encode/encoder.h"

#include "clip-impl.h"
#include "clip-model.h"
#include "clip.h"
#include "mtmd.h"

#include <algorithm>
#include <memory>

namespace ot {
namespace {

constexpr uint32_t kMaxSide = 1 << 14;  // libmtmd counts pixels in an int

// The first two members of mtmd_context; no API hands them out. check_layout() holds them against what the API says.
struct MtmdHead {
    clip_ctx * vision;
    clip_ctx * audio;
};

const MtmdHead & head_of(const mtmd_context * mtmd) { return *reinterpret_cast<const MtmdHead *>(mtmd); }

bool layout_as_expected(const mtmd_context * mtmd) {
    const MtmdHead & head = head_of(mtmd);
    return (head.vision != nullptr) == mtmd_support_vision(mtmd) && (head.audio != nullptr) == mtmd_support_audio(mtmd);
}

// Projectors whose slices were checked: a source image first, each image between marks, plain positions. MiniCPM-V and
// MiniCPM-o up to 4.5.
bool is_cutting_projector(projector_type type) { return type == PROJECTOR_TYPE_MINICPMV; }

// Projectors of which the overview alone is taken, as the models' own recipes for video do: tiles come first, it is the last
// image, and its marks are ours to write.
bool is_overview_projector(projector_type type) { return type == PROJECTOR_TYPE_IDEFICS3; }

struct FreeBitmap {
    void operator()(mtmd_bitmap * bitmap) const { mtmd_bitmap_free(bitmap); }
};
struct FreeChunks {
    void operator()(mtmd_input_chunks * chunks) const { mtmd_input_chunks_free(chunks); }
};

size_t last_image(const mtmd_input_chunks * chunks) {
    size_t last = 0;
    for (size_t i = 0; i < mtmd_input_chunks_size(chunks); ++i) {
        if (mtmd_input_chunk_get_type(mtmd_input_chunks_get(chunks, i)) == MTMD_INPUT_CHUNK_TYPE_IMAGE) last = i;
    }
    return last;
}

}  // namespace

Encoder::Encoder(mtmd_context * mtmd, uint32_t n_embd, bool mrope, int threads)
    : mtmd_(mtmd), mrope_(mrope), n_embd_(n_embd) {
    if (!mtmd) return;
    vision_ = mtmd_support_vision(mtmd);
    attends_freely_ = vision_ && mtmd_decode_use_non_causal(mtmd, nullptr);
    const bool as_expected = layout_as_expected(mtmd);
    cuts_ = vision_ && as_expected && is_cutting_projector(clip_get_projector_type(head_of(mtmd).vision));
    overview_ = vision_ && as_expected && is_overview_projector(clip_get_projector_type(head_of(mtmd).vision));
    if (!mtmd_support_audio(mtmd)) return;
    if (!as_expected) {
        why_no_audio_ = "libmtmd is laid out differently than expected";
        return;
    }
    clip_ctx * audio = head_of(mtmd).audio;
    const SoundEncoderEntry * entry = sound_encoder_for(*audio, why_no_audio_);
    if (!entry) return;
    if (static_cast<uint32_t>(clip_n_mmproj_embd(audio)) != n_embd) {
        why_no_audio_ = "the audio encoder belongs to another language model";
        return;
    }
    sound_entry_ = entry;
    sound_ = entry->open(*audio, n_embd, threads);
}

// Pictures are scaled to at most so many pixels; without a limit all get the encoder's own size.
uint32_t largest_whole_picture(const mtmd_context * mtmd) {
    if (!mtmd || !mtmd_support_vision(mtmd) || !mtmd_decode_use_non_causal(mtmd, nullptr) || !layout_as_expected(mtmd)) return 0;
    const clip_hparams & hparams = *clip_get_hparams(head_of(mtmd).vision);
    const int64_t side = std::max(1, hparams.patch_size * hparams.n_merge);
    const int64_t pixels = hparams.image_max_pixels > 0 ? hparams.image_max_pixels : int64_t{hparams.image_size} * hparams.image_size;
    return static_cast<uint32_t>((pixels + side * side - 1) / (side * side));
}

std::vector<Piece> Encoder::image(const uint8_t * rgb, uint32_t width, uint32_t height, const std::function<void()> & before_each) {
    if (!vision_) throw EncodeError{"the model has no vision encoder", true};
    if (!rgb || width == 0 || height == 0) throw EncodeError{"the image is empty"};  // libmtmd aborts at it
    if (width > kMaxSide || height > kMaxSide) throw EncodeError{"an image may have at most " + std::to_string(kMaxSide) + " pixels a side"};
    const std::unique_ptr<mtmd_bitmap, FreeBitmap> bitmap{mtmd_bitmap_init(width, height, rgb)};
    const std::unique_ptr<mtmd_input_chunks, FreeChunks> chunks{mtmd_input_chunks_init()};
    const mtmd_input_text text{mtmd_get_marker(mtmd_), std::char_traits<char>::length(mtmd_get_marker(mtmd_)), false, true};
    const mtmd_bitmap * bitmaps[] = {bitmap.get()};
    if (mtmd_tokenize(mtmd_, chunks.get(), &text, bitmaps, 1) != 0) throw EncodeError{"the image can't be prepared for the encoder"};

    std::vector<Piece> pieces;
    bool any_image = false;
    const size_t n_chunks = mtmd_input_chunks_size(chunks.get());
    for (size_t i = overview_ ? last_image(chunks.get()) : 0; i < n_chunks; ++i) {
        const mtmd_input_chunk * chunk = mtmd_input_chunks_get(chunks.get(), i);
        if (mtmd_input_chunk_get_type(chunk) == MTMD_INPUT_CHUNK_TYPE_IMAGE) {
            if (any_image && !cuts_) throw EncodeError{"this model cuts images into slices in a way that is not supported yet", true};
            before_each();
            pieces.push_back({cuts_ && !any_image ? Piece::Kind::Source : Piece::Kind::Slice, {}, encode(chunk)});
            any_image = true;
        } else if (cuts_) {  // other models' marks are ours to write
            size_t n = 0;
            const llama_token * tokens = mtmd_input_chunk_get_tokens_text(chunk, &n);
            if (std::find(tokens, tokens + n, LLAMA_TOKEN_NULL) != tokens + n) {
                throw EncodeError{"the language model's vocabulary lacks the marks between this encoder's images", true};
            }
            pieces.push_back({Piece::Kind::Mark, {tokens, tokens + n}, {}});
        }
    }
    if (!any_image) throw EncodeError{"the image gives no tokens"};
    return pieces;
}

Embedding Encoder::encode(const mtmd_input_chunk * image) const {
    Embedding out;
    out.n_rows = static_cast<uint32_t>(mtmd_input_chunk_get_n_tokens(image));
    if (mrope_) {
        // The raster's width: how far x goes before y takes its first step.
        const mtmd_image_tokens * tokens = mtmd_input_chunk_get_tokens_image(image);
        out.width = out.n_rows;
        for (uint32_t i = 0; i < out.n_rows; ++i) {
            if (mtmd_image_tokens_get_decoder_pos(tokens, 0, i).y == 0) continue;
            out.width = i;
            break;
        }
        for (uint32_t i = 0; i < out.n_rows; ++i) {
            const mtmd_decoder_pos pos = mtmd_image_tokens_get_decoder_pos(tokens, 0, i);
            if (pos.t == 0 && pos.y == i / out.width && pos.x == i % out.width) continue;
            throw EncodeError{"this model places the tokens of a picture in a way that is not supported yet", true};
        }
    }
    if (mtmd_encode_chunk(mtmd_, image) != 0) throw EncodeError{"the image encoder failed"};
    const float * rows = mtmd_get_output_embd(mtmd_);
    out.rows.assign(rows, rows + static_cast<size_t>(out.n_rows) * n_embd_);
    return out;
}

const SoundEncoder & Encoder::sound() const {
    if (!sound_) throw EncodeError{why_no_audio_, true};
    return *sound_;
}

const SoundEncoderEntry & Encoder::sound_entry() const {
    if (!sound_) throw EncodeError{why_no_audio_, true};
    return *sound_entry_;
}

Embedding Encoder::audio(Sound window, Sound left, Sound right) {
    Embedding out;
    out.n_rows = sound().rows(window.size);
    if (out.n_rows > 0) out.rows = sound_->encode(window, left, right);
    return out;
}

}  // namespace ot
