// What the files of the C API share: how a failure is kept, and how a history is described. No exception crosses the API.
#pragma once

#include "omnitide.h"

#include "bytes.h"
#include "session/history.h"
#include "session/session.h"

#include <cstddef>
#include <exception>
#include <new>
#include <string>
#include <utility>

namespace ot::api {

// Keeps the text for ot_last_error(), returns the status.
int fail(int status, std::string what);

// Runs `body`, which may throw, and says how it went.
template <typename Body>
int guarded(Body && body) {
    try {
        body();
        return OT_OK;
    } catch (const Failure & failure) {
        return fail(failure.status, failure.what);
    } catch (const PolicyError & error) {
        return fail(OT_ERR_POLICY, error.what);
    } catch (const EncodeError & error) {
        return fail(error.unsupported ? OT_ERR_UNSUPPORTED : OT_ERR_ENCODE, error.what);
    } catch (const StateError & error) {
        return fail(OT_ERR_STATE, error.what);
    } catch (const std::bad_alloc &) {
        return fail(OT_ERR_DECODE, "out of memory");
    } catch (const std::exception & error) {
        return fail(OT_ERR_DECODE, error.what());
    }
}

template <typename Enum>
Enum checked(int32_t value, Enum last, const char * name) {
    if (value < 0 || value > static_cast<int32_t>(last)) throw Failure{OT_ERR_ARGUMENT, std::string("unknown ") + name + " " + std::to_string(value)};
    return static_cast<Enum>(value);
}

// Fills at most cap entries; the number there are.
template <typename T, typename Visit>
size_t fill(T * out, size_t cap, Visit && visit) {
    size_t n = 0;
    visit([&](const T & entry) {
        if (out && n < cap) out[n] = entry;
        ++n;
    });
    return n;
}

// The part of the parameters that a history without a model has, too. Throws Failure.
HistorySettings history_settings(const ot_session_params & params);

// Writes with `write(ByteWriter &)`, or says how much there is to write.
template <typename Write>
void write_state(void * out, size_t capacity, size_t * size, Write && write) {
    ByteWriter writer{static_cast<uint8_t *>(out), capacity};
    write(writer);
    *size = writer.size();
    if (out && capacity < writer.size()) throw Failure{OT_ERR_ARGUMENT, "the buffer is too small"};
}

ot_maintenance to_c(const Upkeep & upkeep);

// Looking inside; what only a model knows is left 0.
ot_snapshot snapshot(const History & history);
size_t cells(const History & history, uint8_t * classes, size_t cap);
size_t scores(const History & history, double * out, size_t cap);
size_t units(const History & history, ot_unit_info * out, size_t cap);
size_t spans(const History & history, ot_span_info * out, size_t cap);
size_t tokens(const History & history, ot_token_info * out, size_t cap);

}  // namespace ot::api
