#pragma once

#include <string>

namespace ot {

struct EncodeError {
    std::string what;
    bool unsupported = false;  // not this input but this model can't be used
};

}  // namespace ot
