#include "llama/log.h"

#include <llama.h>
#include <mtmd-helper.h>
#include <mtmd.h>

#include <mutex>
#include <utility>

namespace ot {
namespace {

std::mutex mutex;
std::string first_error;

void keep_errors(ggml_log_level level, const char * line, void *) {
    if (level != GGML_LOG_LEVEL_ERROR) return;
    std::string text = line;
    text.erase(text.find_last_not_of(" \r\n") + 1);
    if (text.empty()) return;
    const std::lock_guard lock{mutex};
    if (first_error.empty()) first_error = std::move(text);
}

}  // namespace

void take_log() {
    llama_log_set(keep_errors, nullptr);
    mtmd_log_set(keep_errors, nullptr);
    mtmd_helper_log_set(keep_errors, nullptr);
}

std::string take_log_error() {
    const std::lock_guard lock{mutex};
    return std::exchange(first_error, {});
}

}  // namespace ot
