#include "llama/self_test.h"

#include "llama/memory.h"
#include "llama/rope_tables.h"
#include "llama/token_rows.h"

#include "llama-context.h"
#include "llama-model.h"

#include <llama.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <vector>

namespace ot {
namespace {

// Far enough for all but the slowest pairs of a long window to turn visibly, and no multiple of a small number.
constexpr int32_t kDistance = 1021;

// Radians by which sine and cosine may be off at that distance where a backend computes them fast.
constexpr double kAngle = 1e-2;
// Of a head's root mean square: what the order of summation may change in hidden states.
constexpr double kNoise = 1e-3;
// Of the largest logit.
constexpr float kLogitsNoise = 1e-2f;

using Keys = std::vector<std::vector<float>>;  // by layer

struct Decoded {
    Keys keys;
    std::vector<float> logits;
};

struct Undecodable {
    std::string why;
};

// What is lost where a value is stored, of the value (float types)...
double rounding(ggml_type type) {
    switch (type) {
        case GGML_TYPE_F32: return 0;
        case GGML_TYPE_BF16: return 1.0 / (1 << 8);
        default: return 1.0 / (1 << 11);
    }
}

// ... and its expected square over the values of a head (types with a scale a block): a step of the scale, evenly spread.
double squared_rounding(ggml_type type, const float * values, size_t n) {
    const auto block = static_cast<size_t>(ggml_blck_size(type));
    const double levels = type == GGML_TYPE_Q8_0 ? 127 : 8;
    double sum = 0;
    for (size_t first = 0; first < n; first += block) {
        float largest = 0;
        for (size_t i = first; i < std::min(n, first + block); ++i) largest = std::max(largest, std::fabs(values[i]));
        sum += static_cast<double>(block) / 12 * (largest / levels) * (largest / levels);
    }
    return sum;
}

class Trial {
public:
    Trial(llama_context & context, CacheHandle * cache, const TokenRows & token_rows)
        : context_(context),
          model_(context.get_model()),
          cache_(cache),
          token_rows_(token_rows),
          n_vocab_(llama_vocab_n_tokens(llama_model_get_vocab(&model_))),
          token_(n_vocab_ / 2),
          layers_(cache ? cache->layers() : std::vector<uint32_t>{}) {}

    SelfTested run() {
        SelfTested result;
        const bool rows = token_rows_.available();
        if (!cache_ && !rows) return result;
        const int32_t distance = std::min(kDistance, std::max(llama_model_n_ctx_train(&model_), 2) - 1);
        const Decoded near = decode(0, false);
        Decoded far = decode(distance, rows);
        result.rows_as_tokens = rows && alike(near.logits, far.logits);
        if (!cache_) return result;
        if (rows && !result.rows_as_tokens) far = decode(distance, false);
        const uint32_t target = std::min<uint32_t>(1, cache_->n_cells() - 1);
        if (!cache_->try_shift({0, target, -distance})) {
            result.refusal = "llama.cpp could not shift a cached key";
            return result;
        }
        const Keys shifted = keys(target);
        for (size_t i = 0; i < layers_.size() && result.refusal.empty(); ++i) {
            if (fits(layers_[i], shifted[i], near.keys[i])) continue;
            result.refusal = "its positions can't be shifted (a shifted key in layer " + std::to_string(layers_[i]) +
                             " is not what the model computes at that position)";
        }
        return result;
    }

private:
    Decoded decode(int32_t position, bool as_row) {
        llama_memory_clear(llama_get_memory(&context_), false);
        const llama_rope_type rope = model_.hparams.rope_type;
        const bool four = as_row && (rope == LLAMA_ROPE_TYPE_MROPE || rope == LLAMA_ROPE_TYPE_IMROPE);
        std::vector<llama_pos> positions(four ? 4 : 1, position);
        if (four) positions[3] = 0;  // as llama.cpp gives it to tokens
        std::vector<float> row;
        if (as_row) token_rows_.append(token_, row);
        int32_t n_seq = 1;
        llama_seq_id zero = 0;
        llama_seq_id * seq = &zero;
        int8_t output = 1;
        if (cache_) cache_->place_next({0});
        const llama_batch batch{1, as_row ? nullptr : &token_, as_row ? row.data() : nullptr, positions.data(), &n_seq, &seq, &output};
        try {
            const int status = llama_decode(&context_, batch);
            if (status != 0) throw Undecodable{"llama.cpp can't decode a single token with it (status " + std::to_string(status) + ")"};
            llama_synchronize(&context_);
        } catch (const std::exception & error) {
            throw Undecodable{std::string("llama.cpp can't decode a single token with it: ") + error.what()};
        }
        const float * logits = llama_get_logits_ith(&context_, -1);
        return {keys(0), logits ? std::vector<float>(logits, logits + n_vocab_) : std::vector<float>{}};
    }

    Keys keys(uint32_t cell) const {
        Keys keys;
        for (const uint32_t layer : layers_) keys.push_back(cache_->key_row(layer, cell));
        return keys;
    }

    static bool alike(const std::vector<float> & a, const std::vector<float> & b) {
        float largest = 0;
        for (const float logit : a) largest = std::max(largest, std::fabs(logit));
        for (size_t i = 0; i < a.size(); ++i) {
            if (!(std::fabs(a[i] - b[i]) <= kLogitsNoise * largest)) return false;  // NaN isn't alike either
        }
        return !a.empty();
    }

    // Head by head. Float types: a pair of dimensions that turn together may be off by a part of its own length. Others, whose
    // values share a scale and may be stored turned by a Hadamard matrix: the head may be off by three roundings, doubled.
    bool fits(uint32_t layer, const std::vector<float> & shifted, const std::vector<float> & computed) const {
        const RotatedPairs pairs = rotated_pairs(model_, layer);
        const ggml_type type = cache_->key_type(layer);
        const bool in_blocks = ggml_is_quantized(type);
        const auto head = static_cast<size_t>(model_.hparams.n_embd_head_k(layer));
        for (size_t first = 0; first + head <= computed.size(); first += head) {
            double squares = 0;
            for (size_t i = 0; i < head; ++i) squares += static_cast<double>(computed[first + i]) * computed[first + i];
            const double noise = kNoise * std::sqrt(squares / static_cast<double>(head));
            double off = 0;
            for (size_t i = 0; i < head; ++i) {
                const double difference = static_cast<double>(shifted[first + i]) - computed[first + i];
                off += difference * difference;
                if (in_blocks) continue;
                const size_t other = pairs.partner(i);
                const double length = std::hypot(computed[first + i], other == i ? 0.0f : computed[first + other]);
                if (!(std::fabs(difference) <= (kAngle + 3 * rounding(type)) * length + noise)) return false;
            }
            if (in_blocks && !(off <= kAngle * kAngle * squares + 4 * 3 * squared_rounding(type, &computed[first], head))) return false;
        }
        return true;
    }

    llama_context & context_;
    const llama_model & model_;
    CacheHandle * cache_;
    const TokenRows & token_rows_;
    int32_t n_vocab_;
    llama_token token_;
    std::vector<uint32_t> layers_;
};

}  // namespace

SelfTested self_test(llama_context & context, CacheHandle * cache, const TokenRows & token_rows) {
    SelfTested result;
    try {
        result = Trial{context, cache, token_rows}.run();
    } catch (const Undecodable & failed) {
        result.refusal = failed.why;
    }
    llama_memory_clear(llama_get_memory(&context), false);
    llama_perf_context_reset(&context);
    return result;
}

uint32_t learned_positions(const llama_model & model) { return model.pos_embd ? static_cast<uint32_t>(model.pos_embd->ne[1]) : 0; }

}  // namespace ot
