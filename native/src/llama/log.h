// llama.cpp's log, kept out of the terminal. Of a failure, its first error line is kept: it names the cause, later ones
// only say that something failed.
#pragma once

#include <string>

namespace ot {

// Takes over the log of llama.cpp, ggml and libmtmd for the whole process. Call before a model is loaded.
void take_log();

// The first error line since the last call, without its line end; empty if there was none.
std::string take_log_error();

}  // namespace ot
