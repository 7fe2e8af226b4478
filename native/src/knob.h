// A setting of a policy or a planner by its name, as it comes through the C API.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace ot {

enum class KnobFit : uint8_t { Set, Unknown, OutOfRange };

// Sets `field` if the value fits its type and isn't below `least`.
template <typename Field>
KnobFit set_knob(Field & field, double value, double least) {
    const bool whole = !std::numeric_limits<Field>::is_integer || value == std::floor(value);
    if (!(value >= least && value <= static_cast<double>(std::numeric_limits<Field>::max()) && whole)) return KnobFit::OutOfRange;
    field = static_cast<Field>(value);
    return KnobFit::Set;
}

}  // namespace ot
