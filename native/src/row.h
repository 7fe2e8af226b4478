// A survivor that changes its place or its position: the one struct for it from the plan to the cache and the C API.
#pragma once

#include "omnitide.h"

namespace ot {

using Row = ot_row;

}  // namespace ot
