#include "ledger/state.h"

namespace ot {

bool read_flag(ByteReader & in) {
    const auto value = in.get<uint8_t>();
    if (value > 1) throw StateError{"a flag is neither set nor unset"};
    return value == 1;
}

void write_span(const Span & span, ByteWriter & out) {
    out.put(static_cast<uint8_t>(span.role));
    out.put(static_cast<uint8_t>(span.continues));
    out.put(span.length);
    out.put(span.first);
    out.put(span.width);
    out.put(span.base);
    out.put(span.rotations);
}

Span read_span(ByteReader & in) {
    Span span;
    span.role = read_enum(in, Role::System, "role");
    span.continues = read_flag(in);
    span.length = in.get<uint32_t>();
    span.first = in.get<uint32_t>();
    span.width = in.get<uint32_t>();
    span.base = in.get<Position>();
    span.rotations = in.get<uint32_t>();
    return span;
}

}  // namespace ot
