// Whisper-like sound encoders, on the audio model that libmtmd has loaded. libmtmd itself pads every sound to 30 s; here it
// is encoded by the window it comes in.
#include "encode/audio_rows.h"
#include "encode/errors.h"
#include "encode/mel.h"
#include "encode/sound_encoder.h"

#include "clip-impl.h"
#include "clip-model.h"
#include "clip.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace ot {
namespace {

constexpr uint32_t kMaxFrames = 3000;  // positions the encoder has

static_assert(kWhisperFormat.rate == kSampleRate);
static_assert(kWhisperFormat.after == kWindow / 2, "what the last frame reaches into");

AudioTail tail_of(clip_ctx & audio) {
    const projector_type type = clip_get_projector_type(&audio);
    const clip_hparams & hparams = *clip_get_hparams(&audio);
    AudioTail tail;
    tail.pools = type == PROJECTOR_TYPE_QWEN2A || type == PROJECTOR_TYPE_QWEN25O || type == PROJECTOR_TYPE_VOXTRAL || type == PROJECTOR_TYPE_MUSIC_FLAMINGO;
    tail.enclosed = type == PROJECTOR_TYPE_GLMA;
    const bool stacks = tail.enclosed || type == PROJECTOR_TYPE_VOXTRAL || type == PROJECTOR_TYPE_ULTRAVOX || type == PROJECTOR_TYPE_MERALION;
    tail.stack = stacks ? static_cast<uint32_t>(std::max(hparams.proj_stack_factor, 1)) : 1;
    tail.n_embd = static_cast<uint32_t>(hparams.n_embd);
    return tail;
}

class WhisperEncoder : public SoundEncoder {
public:
    WhisperEncoder(clip_ctx & audio, uint32_t n_embd, int threads) : audio_(audio), n_embd_(n_embd), threads_(threads), tail_(tail_of(audio)) {}

    uint32_t samples_per_token() const override { return kHop * 2 * (tail_.pools ? 2 : 1) * tail_.stack; }  // the encoder halves frames
    uint32_t longest() const override { return kHop * kMaxFrames; }

    uint32_t rows(size_t samples) const override {
        const uint32_t frames = frames_for(samples);
        return frames == 0 ? 0 : computed_rows(tail_, frames);
    }

    std::vector<float> encode(Sound window, Sound left, Sound right) override {
        const uint32_t frames = frames_for(window.size);
        if (frames == 0) return {};
        const Mel mel = log_mel(window, left, right, static_cast<uint32_t>(clip_get_hparams(&audio_)->n_mel_bins));
        const uint32_t heard = mel.n_frames / 2 * 2;
        std::vector<float> even(static_cast<size_t>(mel.n_mel) * frames, mel.silence);
        for (uint32_t m = 0; m < mel.n_mel; ++m) {
            std::copy_n(mel.data.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(m) * mel.n_frames), heard,
                        even.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(m) * frames));
        }
        clip_image_f32 spectrogram;
        spectrogram.set_size({static_cast<int>(frames), static_cast<int>(mel.n_mel)}, false, true);
        spectrogram.cpy_buf(even);
        clip_image_f32_batch batch;
        batch.is_audio = true;
        const uint32_t n_rows = computed_rows(tail_, frames);
        if (static_cast<uint32_t>(clip_n_output_tokens(&audio_, &spectrogram)) != n_rows) {
            throw EncodeError{"this model's audio encoder is another than expected", true};
        }
        batch.entries.push_back(std::move(spectrogram));
        std::vector<float> rows(static_cast<size_t>(n_rows) * n_embd_);
        if (!clip_image_batch_encode(&audio_, threads_, &batch, rows)) throw EncodeError{"the audio encoder failed"};
        return rows;
    }

private:
    // Frames that are encoded for so much sound; 0: it is too short for a token. Some encoders take some lengths alone: then
    // silence follows, up to the next of those.
    uint32_t frames_for(size_t samples) const {
        const size_t heard = samples / kHop / 2 * 2;  // odd counts abort
        if (heard < kWhisperFormat.shortest / kHop) return 0;
        if (heard > kMaxFrames) throw EncodeError{"a unit may hold at most 30 seconds of sound"};
        const uint32_t frames = fitting_frames(tail_, static_cast<uint32_t>(heard), kMaxFrames);
        if (frames == 0) throw EncodeError{"this model's audio encoder can't take so much sound at once: libmtmd expects another number of tokens than it computes"};
        return frames;
    }

    clip_ctx & audio_;
    uint32_t n_embd_;
    int threads_;
    AudioTail tail_;
};

}  // namespace

// Projectors whose audio mtmd prepares as Whisper does.
bool takes_whisper(clip_ctx & audio) {
    switch (clip_get_projector_type(&audio)) {
        case PROJECTOR_TYPE_QWEN2A:
        case PROJECTOR_TYPE_QWEN25O:
        case PROJECTOR_TYPE_VOXTRAL:
        case PROJECTOR_TYPE_ULTRAVOX:
        case PROJECTOR_TYPE_GLMA:
        case PROJECTOR_TYPE_MERALION:
        case PROJECTOR_TYPE_MUSIC_FLAMINGO:
            return true;
        default:
            return false;
    }
}

std::unique_ptr<SoundEncoder> open_whisper(clip_ctx & audio, uint32_t n_embd, int threads) {
    return std::make_unique<WhisperEncoder>(audio, n_embd, threads);
}

}  // namespace ot
