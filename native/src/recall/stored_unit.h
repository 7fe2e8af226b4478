// A unit that left the history, as the archive has it.
#pragma once

#include "ledger/ledger.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ot {

struct StoredUnit {
    uint64_t id = 0;
    UnitKind kind = UnitKind::Media;
    double start_s = 0;
    double end_s = 0;
    // What is stored of it; the bases are the positions that the stored keys are rotated for.
    std::vector<Span> spans;
    uint32_t whole_tokens = 0;      // when it came
    std::vector<uint32_t> telling;  // every stored token once, by its place in `spans`, the most telling first
    std::vector<uint16_t> keys;     // its index: [pooled key][layer][width] as f16, their rotation taken out
    std::string text;               // what it says, of units of text
    std::vector<uint8_t> picture;   // a thumbnail, as an image file

    uint32_t tokens() const {
        uint32_t n = 0;
        for (const Span & span : spans) n += span.length;
        return n;
    }
};

// Runs of tokens whose keys are pooled to one, in token order: about twelve a second of sound and picture. Sound is pooled
// by 5, pictures by 4 runs an image (cut into slices: one a slice), text by 12 runs a unit; markers stay as they are.
struct TokenRun {
    uint32_t begin, end;
};
std::vector<TokenRun> pooled_runs(const std::vector<Span> & spans);

// Tokens in the order of what is lost least by keeping the first k: markers, then, again and again, the token whose key is
// least like those taken before it. `keys`: [token][width] without rotation.
std::vector<uint32_t> by_telling(const std::vector<Span> & spans, const std::vector<float> & keys);

// What is left of `unit` when only its `most` most telling tokens are, and which they are, ascending. Spans fall into pieces
// as in a retention. The index stays.
std::vector<uint32_t> thin(StoredUnit & unit, uint32_t most, bool mrope);

}  // namespace ot
