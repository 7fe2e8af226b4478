// The archive and its budgets.
#include "recall/archive.h"

#include "builders.h"
#include "check.h"

#include <unistd.h>

#include <cstdlib>

using namespace ot;

namespace {

constexpr uint32_t kRow = 24;
constexpr uint32_t kKey = 8;

std::string scratch(const char * name) {
    const char * folder = std::getenv("TMPDIR");
    return std::string(folder ? folder : "/tmp") + "/omnitide-" + name + "-" + std::to_string(::getpid());
}

ArchiveSettings settings(uint64_t memory, uint64_t disk = 0) {
    static int files = 0;
    ArchiveSettings s;
    s.key_size = kKey;
    s.memory = memory;
    s.disk = disk;
    s.file = scratch("archive") + "-" + std::to_string(files++);
    return s;
}

// A second whose rows say whose they are.
StoredUnit second(uint64_t id, uint32_t audio) {
    StoredUnit unit;
    unit.id = id;
    unit.start_s = static_cast<double>(id);
    unit.end_s = unit.start_s + 1;
    unit.spans = {run(Role::Boundary, 1), run(Role::Audio, audio), run(Role::Boundary, 1)};
    Position at = 0;
    for (Span & span : unit.spans) {
        span.base = at;
        at += static_cast<Position>(span.length);
    }
    unit.whole_tokens = audio + 2;
    unit.telling.push_back(0);
    unit.telling.push_back(audio + 1);
    for (uint32_t i = 0; i < audio; ++i) unit.telling.push_back(audio - i);
    unit.keys.assign(4 * kKey, static_cast<uint16_t>(id));
    unit.picture.assign(50, static_cast<uint8_t>(id));
    return unit;
}

std::vector<uint8_t> row(uint64_t id, uint32_t token) {
    std::vector<uint8_t> bytes(kRow);
    for (uint32_t i = 0; i < kRow; ++i) bytes[i] = static_cast<uint8_t>(id * 31 + token * 7 + i);
    return bytes;
}

std::vector<uint8_t> rows(uint64_t id, uint32_t tokens) {
    std::vector<uint8_t> bytes;
    for (uint32_t token = 0; token < tokens; ++token) {
        const std::vector<uint8_t> one = row(id, token);
        bytes.insert(bytes.end(), one.begin(), one.end());
    }
    return bytes;
}

// Whether each token that is left still has its own row: tokens are known by their positions.
bool has_its_rows(Archive & archive, size_t index) {
    const StoredUnit & unit = archive.unit(index);
    std::vector<uint8_t> found, expected;
    if (!archive.rows(index, found)) return unit.tokens() == 0;
    for (const TokenPosition & position : token_positions(unit.spans, false)) {
        const std::vector<uint8_t> one = row(unit.id, static_cast<uint32_t>(position.t));
        expected.insert(expected.end(), one.begin(), one.end());
    }
    return found == expected;
}

bool is_sound(Archive & archive, uint64_t memory, uint64_t disk) {
    const ArchiveCounts counts = archive.counts();
    if (counts.memory > memory || counts.disk > disk || counts.units != archive.size()) return false;
    if (counts.whole + counts.thinned + counts.bare != counts.units) return false;
    for (size_t i = 0; i < archive.size(); ++i) {
        if (!has_its_rows(archive, i) || archive.find(archive.unit(i).id) != i) return false;
    }
    return true;
}

}  // namespace

TEST(an_archive_gives_back_what_it_took) {
    Archive archive(settings(1 << 20));
    for (uint64_t id = 1; id < 20; id += 2) archive.add(second(id, 9), rows(id, 11));
    CHECK_EQ(archive.size(), size_t{10});
    CHECK_EQ(archive.counts().whole, 10u);
    CHECK_EQ(archive.find(5), size_t{2});
    CHECK_EQ(archive.find(6), archive.size());
    CHECK_EQ(archive.keys(3).n_keys, 4u);
    CHECK_EQ(archive.keys(3).keys[kKey], uint16_t{7});
    CHECK(is_sound(archive, 1 << 20, 0));
}

TEST(over_its_budget_an_archive_thins_the_oldest_first) {
    const uint64_t memory = 60000;
    Archive archive(settings(memory));
    uint64_t id = 0;
    for (; archive.counts().thinned == 0; ++id) archive.add(second(id, 80), rows(id, 82));
    CHECK_EQ(archive.unit(0).tokens(), 64u);
    CHECK_EQ(archive.unit(archive.size() - 1).tokens(), 82u);
    CHECK_EQ(archive.unit(0).telling.size(), size_t{64});
    for (; archive.counts().bare == 0; ++id) archive.add(second(id, 80), rows(id, 82));
    CHECK_EQ(archive.unit(0).tokens(), 0u);
    CHECK_EQ(archive.unit(1).tokens(), 16u);
    CHECK(is_sound(archive, memory, 0));
    while (archive.keys(0).n_keys > 1) archive.add(second(id, 80), rows(id, 82)), ++id;
    CHECK_EQ(archive.counts().bare, archive.counts().units);
    CHECK(!archive.unit(0).picture.empty());
    for (; archive.counts().dropped == 0; ++id) archive.add(second(id, 80), rows(id, 82));
    CHECK(archive.unit(0).picture.empty());
    CHECK_EQ(archive.unit(0).id, uint64_t{1});
    CHECK(is_sound(archive, memory, 0));
}

TEST(rows_go_to_disk_before_any_is_thinned) {
    const uint64_t memory = 40000, disk = 100000;
    Archive archive(settings(memory, disk));
    uint64_t id = 0;
    for (; archive.counts().thinned == 0; ++id) archive.add(second(id, 80), rows(id, 82));
    CHECK(archive.counts().disk > disk - 2 * 82 * kRow);
    CHECK(is_sound(archive, memory, disk));
    for (int i = 0; i < 200; ++i, ++id) archive.add(second(id, 80), rows(id, 82));
    CHECK(is_sound(archive, memory, disk));
}

TEST(budgets_hold_over_any_stream) {
    Random random(8);
    for (int round = 0; round < 25; ++round) {
        const uint64_t memory = random.between(2000, 40000), disk = random.chance(50) ? 0 : random.between(500, 60000);
        Archive archive(settings(memory, disk));
        for (uint64_t id = 0; id < 120; ++id) {
            const uint32_t audio = random.between(1, 90);
            archive.add(second(id, audio), rows(id, audio + 2));
            CHECK(archive.counts().memory <= memory && archive.counts().disk <= disk);
        }
        CHECK(is_sound(archive, memory, disk));
    }
}

TEST(a_unit_that_comes_late_has_its_place_and_one_that_comes_twice_is_ignored) {
    Random random(3);
    const uint64_t memory = 30000;
    Archive archive(settings(memory));
    for (uint64_t id = 0; id < 200; id += 2) {
        archive.add(second(id, 20), rows(id, 22));
        if (id > 10 && random.chance(40)) archive.add(second(id - 9, 20), rows(id - 9, 22));
        archive.add(second(id, 5), rows(id, 7));
        CHECK(archive.counts().memory <= memory);
    }
    CHECK(is_sound(archive, memory, 0));
    for (size_t i = 1; i < archive.size(); ++i) CHECK(archive.unit(i - 1).id < archive.unit(i).id);
    CHECK(archive.find(196) < archive.size());
    CHECK_EQ(archive.unit(archive.find(198)).whole_tokens, 22u);
}

TEST(an_archive_without_any_room_keeps_nothing) {
    Archive archive(settings(0));
    archive.add(second(1, 5), rows(1, 7));
    CHECK_EQ(archive.size(), size_t{0});
    CHECK_EQ(archive.counts().memory, uint64_t{0});
}

TEST(a_file_that_cannot_be_made_is_told_and_rows_stay_in_memory) {
    ArchiveSettings s = settings(1 << 20, 1 << 20);
    s.file = "/nowhere/at/all";
    Archive archive(s);
    for (uint64_t id = 0; id < 50; ++id) archive.add(second(id, 50), rows(id, 52));
    CHECK(!archive.problem().empty());
    CHECK(is_sound(archive, 1 << 20, 0));
}

TEST(records_come_and_go_in_a_file) {
    Random random(12);
    RowFile file(scratch("rows"), 5000);
    std::vector<std::pair<Extent, std::vector<uint8_t>>> kept;
    uint64_t used = 0;
    for (int round = 0; round < 2000; ++round) {
        if (kept.empty() || random.chance(55)) {
            std::vector<uint8_t> record(random.between(1, 400));
            for (uint8_t & byte : record) byte = static_cast<uint8_t>(random.below(256));
            if (const std::optional<Extent> extent = file.put(record)) {
                used += record.size();
                kept.emplace_back(*extent, record);
            }
        } else {
            const size_t which = random.below(static_cast<uint32_t>(kept.size()));
            file.free(kept[which].first);
            used -= kept[which].second.size();
            kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(which));
        }
        CHECK_EQ(file.used(), used);
        for (const auto & [extent, record] : kept) {
            CHECK(extent.offset + extent.size <= 5000);
            std::vector<uint8_t> found;
            CHECK(file.get(extent, found) && found == record);
        }
    }
    Extent other = kept.front().first;
    other.sum += 1;
    std::vector<uint8_t> found;
    CHECK(!file.get(other, found));
}

TEST(units_of_a_future_that_was_taken_back_are_forgotten) {
    for (const uint64_t disk : {uint64_t{0}, uint64_t{1} << 20}) {
        Archive archive{settings(disk ? 3000 : 1 << 20, disk)}, never{settings(disk ? 3000 : 1 << 20, disk)};
        for (uint64_t id = 0; id < 12; ++id) {
            archive.add(second(id, 5), rows(id, 7));
            if (id < 8) never.add(second(id, 5), rows(id, 7));
        }
        archive.forget_from(8);
        CHECK_EQ(archive.size(), 8u);
        CHECK_EQ(archive.find(8), archive.size());
        if (disk == 0) CHECK_EQ(archive.counts().memory, never.counts().memory);
        archive.add(second(8, 6), rows(8, 8));  // another unit got the id
        CHECK_EQ(archive.unit(8).tokens(), 8u);
        for (size_t i = 0; i < archive.size(); ++i) CHECK(has_its_rows(archive, i));
        archive.forget_from(0);
        CHECK_EQ(archive.size(), 0u);
        CHECK_EQ(archive.counts().memory, 0u);
        CHECK_EQ(archive.counts().disk, 0u);
    }
}
