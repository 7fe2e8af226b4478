// Lengths of sound at which libmtmd's expected and computed rows agree.
#include "check.h"
#include "encode/audio_rows.h"

#include <string>

namespace ot {

namespace {

constexpr uint32_t kMost = 3000;

struct Encoder {
    const char * name;
    AudioTail tail;
    uint32_t rows_of_a_second;
    uint32_t most_silence;  // frames
};

const Encoder kEncoders[] = {
    {"qwen2a", {true, 1, false, 1280}, 25, 0},    {"ultravox", {false, 8, false, 1280}, 6, 12}, {"voxtral", {true, 4, false, 1280}, 6, 10},
    {"meralion", {false, 15, false, 1280}, 3, 26}, {"glma", {false, 4, true, 1280}, 14, 6},
};

}  // namespace

TEST(every_length_gets_one_that_fits) {
    for (const Encoder & encoder : kEncoders) {
        for (uint32_t frames = 4; frames <= kMost; ++frames) {
            const uint32_t fitting = fitting_frames(encoder.tail, frames, kMost);
            CHECK(fitting >= frames);
            CHECK(fitting % 2 == 0);
            CHECK(fitting <= frames + 1 + encoder.most_silence);
            CHECK_EQ(computed_rows(encoder.tail, fitting), expected_rows(encoder.tail, fitting));
        }
        CHECK_EQ(fitting_frames(encoder.tail, kMost, kMost), kMost);
    }
}

TEST(rows_of_a_second_and_where_the_counts_differ) {
    for (const Encoder & encoder : kEncoders) CHECK_EQ(expected_rows(encoder.tail, 100), encoder.rows_of_a_second);
    const AudioTail glma = kEncoders[4].tail, ultravox = kEncoders[1].tail;
    CHECK_EQ(computed_rows(glma, 100), 15u);  // where libmtmd expects 14, and aborts
    CHECK_EQ(fitting_frames(glma, 100, kMost), 102u);
    CHECK(computed_rows(ultravox, 98) != expected_rows(ultravox, 98));
    CHECK_EQ(fitting_frames(ultravox, 98, kMost), 100u);
}

TEST(what_never_fits_is_said) {
    const AudioTail power_of_two{true, 4, false, 64};  // a width at which rounding is right, which the other count isn't
    CHECK_EQ(fitting_frames(power_of_two, kMost, kMost), 0u);
    CHECK_EQ(fitting_frames(kEncoders[0].tail, kMost + 1, kMost), 0u);
}

}  // namespace ot
