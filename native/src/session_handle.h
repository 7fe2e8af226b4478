// What the C API hands out as a session; for its files alone.
#pragma once

#include "session/session.h"

#include <string>

struct ot_session {
    ot::Session session;
    std::string piece;  // of the answer's last token
};
