// The smallest test harness that reads well: TEST(name) { CHECK(...); CHECK_EQ(got, wanted); }
#pragma once

#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

namespace check {

struct Test {
    const char * name;
    void (*run)();
};

inline std::vector<Test> & tests() {
    static std::vector<Test> all;
    return all;
}

inline bool & failed() {
    static bool flag = false;
    return flag;
}

struct Registration {
    Registration(const char * name, void (*run)()) { tests().push_back({name, run}); }
};

inline void fail(const char * file, int line, const std::string & what) {
    failed() = true;
    std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
}

inline void that(const char * file, int line, const char * text, bool condition) {
    if (!condition) fail(file, line, text);
}

template <typename A, typename B>
void equal(const char * file, int line, const char * text, const A & got, const B & wanted) {
    if (got == wanted) return;
    std::ostringstream out;
    out << text << ": got " << got << ", wanted " << wanted;
    fail(file, line, out.str());
}

}  // namespace check

#define TEST(name)                                                  \
    static void name();                                             \
    static const check::Registration registration_##name{#name, name}; \
    static void name()

#define CHECK(condition) check::that(__FILE__, __LINE__, #condition, static_cast<bool>(condition))
#define CHECK_EQ(got, wanted) check::equal(__FILE__, __LINE__, #got, got, wanted)
