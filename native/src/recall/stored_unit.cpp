#include "recall/stored_unit.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ot {
namespace {

constexpr uint32_t kRunsOfImage = 4;
constexpr uint32_t kTokensOfSound = 5;
constexpr uint32_t kRunsOfSound = 5;  // a long unit's sound is pooled by more
constexpr uint32_t kRunsOfText = 12;

void add_runs(uint32_t begin, uint32_t length, uint32_t step, std::vector<TokenRun> & runs) {
    for (uint32_t at = 0; at < length; at += step) runs.push_back({begin + at, begin + std::min(at + step, length)});
}

uint32_t divide_up(uint32_t n, uint32_t unit) { return (n + unit - 1) / unit; }

}  // namespace

std::vector<TokenRun> pooled_runs(const std::vector<Span> & spans) {
    uint32_t n_slices = 0, n_text = 0;
    for (const Span & span : spans) {
        n_slices += span.role == Role::ImageSlice;
        n_text += span.role == Role::Text || span.role == Role::Response || span.role == Role::System ? span.length : 0;
    }
    std::vector<TokenRun> runs;
    uint32_t begin = 0;
    for (const Span & span : spans) {
        uint32_t step = 1;
        switch (span.role) {
            case Role::Boundary: break;
            case Role::ImageSource: step = divide_up(span.length, kRunsOfImage); break;
            case Role::ImageSlice: step = n_slices > 1 ? span.length : divide_up(span.length, kRunsOfImage); break;
            case Role::Audio: step = std::max(kTokensOfSound, divide_up(span.length, kRunsOfSound)); break;
            case Role::Text:
            case Role::Response:
            case Role::System: step = divide_up(n_text, kRunsOfText); break;
        }
        add_runs(begin, span.length, std::max(step, 1u), runs);
        begin += span.length;
    }
    return runs;
}

std::vector<uint32_t> by_telling(const std::vector<Span> & spans, const std::vector<float> & keys) {
    std::vector<uint32_t> order, rest;
    uint32_t token = 0;
    for (const Span & span : spans) {
        for (uint32_t i = 0; i < span.length; ++i, ++token) (span.role == Role::Boundary ? order : rest).push_back(token);
    }
    const size_t width = token == 0 ? 0 : keys.size() / token;
    std::vector<float> unit(keys);  // of length 1
    for (size_t t = 0; t < token; ++t) {
        float * key = unit.data() + t * width;
        const float length = std::sqrt(std::inner_product(key, key + width, key, 0.0f));
        for (size_t i = 0; i < width; ++i) key[i] /= length > 0 ? length : 1.0f;
    }
    // How like each of the rest is to the one of those taken that it is most like.
    std::vector<float> likeness(token, -2.0f);
    const auto took = [&](uint32_t taken) {
        const float * key = unit.data() + taken * width;
        for (const uint32_t other : rest) {
            likeness[other] = std::max(likeness[other], std::inner_product(key, key + width, unit.data() + other * width, 0.0f));
        }
    };
    for (const uint32_t taken : order) took(taken);
    while (!rest.empty()) {
        const auto next = std::min_element(rest.begin(), rest.end(), [&](uint32_t a, uint32_t b) { return likeness[a] < likeness[b]; });
        order.push_back(*next);
        rest.erase(next);
        took(order.back());
    }
    return order;
}

std::vector<uint32_t> thin(StoredUnit & unit, uint32_t most, bool mrope) {
    std::vector<uint32_t> kept(unit.telling.begin(), unit.telling.begin() + std::min<std::ptrdiff_t>(most, static_cast<std::ptrdiff_t>(unit.telling.size())));
    const std::vector<uint32_t> order = kept;
    std::sort(kept.begin(), kept.end());

    std::vector<Span> spans;
    auto next = kept.begin();
    uint32_t begin = 0;
    bool has_earlier_piece = false;
    for (const Span & span : unit.spans) {
        if (!span.continues) has_earlier_piece = false;
        const uint32_t end = begin + span.length;
        for (uint32_t last = UINT32_MAX; next != kept.end() && *next < end; ++next) {
            const uint32_t offset = *next - begin;
            if (last != UINT32_MAX && offset == last + 1) {
                spans.back().length += 1;
            } else {
                Span piece = span;
                piece.length = 1;
                piece.first += offset;
                if (!(mrope && span.width != 0)) piece.base += static_cast<Position>(offset);
                piece.continues = has_earlier_piece;
                spans.push_back(piece);
            }
            has_earlier_piece = true;
            last = offset;
        }
        begin = end;
    }
    unit.spans = std::move(spans);
    // Their places among those that are left.
    unit.telling.clear();
    for (const uint32_t token : order) {
        unit.telling.push_back(static_cast<uint32_t>(std::lower_bound(kept.begin(), kept.end(), token) - kept.begin()));
    }
    return kept;
}

}  // namespace ot
