// Samples of one channel, -1 ... 1, at the rate of whoever takes them.
#pragma once

#include <cstddef>

namespace ot {

struct Sound {
    const float * data = nullptr;
    size_t size = 0;
};

}  // namespace ot
