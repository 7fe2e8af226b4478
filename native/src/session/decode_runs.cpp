#include "session/decode_runs.h"

namespace ot {
namespace {

// By token: the number of the picture that it belongs to, from 1; 0: none.
std::vector<uint32_t> pictures(const std::vector<Span> & spans) {
    std::vector<uint32_t> of;
    uint32_t count = 0;
    for (const Span & span : spans) {
        if (is_image(span.role) && !span.continues) ++count;
        of.insert(of.end(), span.length, is_image(span.role) ? count : 0);
    }
    return of;
}

}  // namespace

std::vector<DecodeRun> decode_runs(const PendingUnit & unit, const RunRules & rules) {
    const bool all_rows = rules.text_as_rows && unit.has_rows();
    std::vector<uint32_t> picture(unit.size(), 0);
    if (rules.pictures_freely) picture = pictures(unit.spans);
    std::vector<DecodeRun> runs;
    size_t row = 0;
    for (uint32_t begin = 0; begin < unit.size();) {
        const bool is_row = unit.tokens[begin] == kNoToken;
        DecodeRun run{begin, begin, all_rows || is_row, picture[begin] > 0 && is_row, row};
        while (run.end < unit.size() && picture[run.end] == picture[begin] && (run.freely || run.end - begin < rules.longest) &&
               (all_rows || (unit.tokens[run.end] == kNoToken) == is_row)) {
            row += unit.tokens[run.end] == kNoToken;
            ++run.end;
        }
        begin = run.end;
        runs.push_back(run);
    }
    return runs;
}

}  // namespace ot
