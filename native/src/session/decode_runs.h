// How a unit is cut into batches: of tokens or of rows, and none longer than may be.
#pragma once

#include "session/pending_unit.h"

#include <cstdint>
#include <vector>

namespace ot {

struct DecodeRun {
    uint32_t begin, end;  // tokens of the unit
    bool as_rows;         // all of it as rows of embeddings
    bool freely;          // a picture, whose tokens attend to each other whichever comes first
    size_t first_row;     // of the unit's own rows
};

struct RunRules {
    bool text_as_rows;     // where a unit has rows, its text may be given as rows, too
    bool pictures_freely;  // each picture goes alone, and whole
    uint32_t longest;      // tokens of a batch
};

// In order, and without a gap. A picture that goes freely may be longer than `longest`: the caller refuses it.
std::vector<DecodeRun> decode_runs(const PendingUnit & unit, const RunRules & rules);

}  // namespace ot
