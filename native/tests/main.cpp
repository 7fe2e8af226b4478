// Runs every test, or those whose name contains the first argument.
#include "check.h"

#include <cstring>

int main(int argc, char ** argv) {
    int passed = 0;
    int failed = 0;
    for (const check::Test & test : check::tests()) {
        if (argc > 1 && std::strstr(test.name, argv[1]) == nullptr) continue;
        check::failed() = false;
        test.run();
        (check::failed() ? failed : passed) += 1;
        if (check::failed()) std::fprintf(stderr, "FAILED %s\n", test.name);
    }
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
