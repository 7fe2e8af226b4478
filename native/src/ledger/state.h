// The ledger's values as bytes: what saved histories and archives have in common.
#pragma once

#include "bytes.h"
#include "ledger/ledger.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace ot {

inline constexpr size_t kSpanBytes = 22;

template <typename Enum>
Enum read_enum(ByteReader & in, Enum last, const char * name) {
    const auto value = in.get<uint8_t>();
    if (value > static_cast<uint8_t>(last)) throw StateError{std::string("it has an unknown ") + name};
    return static_cast<Enum>(value);
}

bool read_flag(ByteReader & in);

void write_span(const Span & span, ByteWriter & out);
// Of any values: violation() tells whether a unit may have it.
Span read_span(ByteReader & in);

}  // namespace ot
