// Which archived units come back for a question, or that none does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace ot {

// What a choice knows of an archived unit; they stand in the order of time.
struct Candidate {
    float score = 0;
    uint32_t tokens = 0;  // 0: its rows are gone, it can't come back
    double start_s = 0;
    double end_s = 0;
};

struct ChoiceSettings {
    uint32_t tokens = 0;        // at most so many come back
    float threshold = 6.0f;     // the best must have so many times the score of the one in the middle
    float share = 0.7f;         // what has less of the best one's score doesn't come back, but as a neighbour
    float neighbour = 0.5f;     // a neighbour comes along that has this share of the score
    float likeness = 0.1f;      // what being like one that was chosen takes from a score, in shares of the best
    double moment_s = 2.0;      // units no farther apart are neighbours
};

enum class Verdict : uint8_t { Recalled, Nothing, NotClear, NoRoom };

struct Choice {
    Verdict verdict = Verdict::Nothing;
    float clearness = 0;        // the best score / the median; 0: there is one candidate
    std::vector<size_t> units;  // in the order of time
    uint32_t tokens = 0;
};

// `alike(a, b)`: how alike two candidates are, 1 at most. Nothing: there are no candidates, or none has a score. NotClear: the
// best one doesn't stand out, as for a question about now. NoRoom: it stands out, but doesn't fit or has no rows any more.
Choice choose(const std::vector<Candidate> & candidates, const ChoiceSettings & settings, const std::function<float(size_t, size_t)> & alike);

}  // namespace ot
