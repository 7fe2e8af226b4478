// An archive to bytes and back, and bytes that are none.
#include "recall/archive.h"

#include "builders.h"
#include "check.h"

#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <limits>

using namespace ot;

namespace {

constexpr uint32_t kRow = 24;
constexpr uint32_t kKey = 8;
constexpr uint64_t kNext = 1000;

ArchiveSettings settings(uint64_t memory, uint64_t disk = 0) {
    static int files = 0;
    const char * folder = std::getenv("TMPDIR");
    ArchiveSettings s;
    s.key_size = kKey;
    s.memory = memory;
    s.disk = disk;
    s.file = std::string(folder ? folder : "/tmp") + "/omnitide-state-" + std::to_string(::getpid()) + "-" + std::to_string(files++);
    return s;
}

void add_second(Archive & archive, Random & random, uint64_t id) {
    StoredUnit unit;
    unit.id = id;
    unit.kind = random.chance(20) ? UnitKind::Question : UnitKind::Media;
    unit.start_s = static_cast<double>(id);
    unit.end_s = unit.start_s + 1;
    unit.spans = {run(Role::Boundary, 1), run(Role::Audio, random.between(1, 90)), run(Role::Boundary, 1)};
    Position at = 7;
    for (Span & span : unit.spans) {
        span.base = at;
        at += static_cast<Position>(span.length);
    }
    unit.whole_tokens = unit.tokens();
    for (uint32_t i = unit.whole_tokens; i-- > 0;) unit.telling.push_back(i);
    unit.keys.assign(random.between(1, 5) * kKey, static_cast<uint16_t>(id * 11 % 0x7bff));
    if (random.chance(50)) unit.text = "word " + std::to_string(id);
    unit.picture.assign(random.below(60), static_cast<uint8_t>(id));
    std::vector<uint8_t> rows(size_t{unit.whole_tokens} * kRow);
    for (uint8_t & byte : rows) byte = static_cast<uint8_t>(random.below(256));
    archive.add(std::move(unit), std::move(rows));
}

std::vector<uint8_t> bytes_of(Archive & archive) {
    ByteWriter count(nullptr, 0);
    archive.write(count);
    std::vector<uint8_t> bytes(count.size());
    ByteWriter out(bytes.data(), bytes.size());
    archive.write(out);
    bytes.resize(out.size());
    return bytes;
}

void read_into(Archive & archive, const std::vector<uint8_t> & bytes) {
    ByteReader in(bytes.data(), bytes.size());
    archive.read(in, kRow, kNext);
    if (in.left() != 0) throw StateError{"longer"};
}

// What it says of bytes that it refuses; empty when it takes them.
std::string refusal(const std::vector<uint8_t> & bytes) {
    try {
        Archive archive(settings(1 << 20));
        read_into(archive, bytes);
    } catch (const StateError & error) {
        return error.what;
    }
    return "";
}

bool same(Archive & a, Archive & b) {
    const ArchiveCounts one = a.counts(), other = b.counts();
    if (one.units != other.units || one.whole != other.whole || one.thinned != other.thinned || one.bare != other.bare) return false;
    if (one.memory != other.memory || one.disk != other.disk || one.index != other.index || one.dropped != other.dropped) return false;
    std::vector<uint8_t> mine, theirs;
    for (size_t i = 0; i < a.size(); ++i) {
        const StoredUnit &u = a.unit(i), &v = b.unit(i);
        if (u.id != v.id || u.kind != v.kind || u.start_s != v.start_s || u.end_s != v.end_s || u.whole_tokens != v.whole_tokens) return false;
        if (u.telling != v.telling || u.keys != v.keys || u.text != v.text || u.picture != v.picture || u.spans.size() != v.spans.size()) return false;
        if (a.has_rows(i) != b.has_rows(i) || (a.has_rows(i) && (!a.rows(i, mine) || !b.rows(i, theirs) || mine != theirs))) return false;
    }
    return true;
}

}  // namespace

TEST(a_saved_archive_is_the_same_again_and_goes_on_alike) {
    for (uint32_t seed = 1; seed <= 40; ++seed) {
        Random random(seed);
        const uint64_t memory = random.between(4000, 60000), disk = random.chance(50) ? random.between(1, 40000) : 0;
        Archive archive(settings(memory, disk)), again(settings(memory, disk));
        uint64_t id = 0;
        for (const uint64_t end = random.below(150); id < end; id += random.between(1, 3)) add_second(archive, random, id);
        const std::vector<uint8_t> bytes = bytes_of(archive);
        read_into(again, bytes);
        CHECK(same(archive, again));
        CHECK(bytes_of(again) == bytes);
        if (disk > 0) continue;  // holes in the file are not saved
        Random one(seed + 1000), other(seed + 1000);
        for (int i = 0; i < 30; ++i, ++id) {
            add_second(archive, one, id);
            add_second(again, other, id);
        }
        CHECK(same(archive, again));
    }
}

TEST(smaller_budgets_hold_for_a_saved_archive) {
    Random random(5);
    Archive large(settings(1 << 20));
    for (uint64_t id = 0; id < 100; ++id) add_second(large, random, id);
    const std::vector<uint8_t> bytes = bytes_of(large);
    for (const uint64_t memory : {0u, 3000u, 20000u, 100000u}) {
        for (const uint64_t disk : {0u, 5000u}) {
            Archive small(settings(memory, disk));
            read_into(small, bytes);
            CHECK(small.counts().memory <= memory);
            CHECK(small.counts().disk <= disk);
        }
    }
}

TEST(no_bytes_that_are_no_archive_do_harm) {
    Random random(9);
    Archive archive(settings(60000));
    for (uint64_t id = 0; id < 60; ++id) add_second(archive, random, id);
    const std::vector<uint8_t> sound = bytes_of(archive);
    CHECK_EQ(refusal(sound), std::string());
    for (size_t n = 0; n < sound.size(); n += 1 + n / 40) CHECK(!refusal({sound.begin(), sound.begin() + static_cast<std::ptrdiff_t>(n)}).empty());
    for (uint32_t i = 0; i < 4000; ++i) {
        std::vector<uint8_t> bytes = sound;
        for (uint32_t hits = random.between(1, 4); hits > 0; --hits) {
            const uint32_t n = static_cast<uint32_t>(random.chance(70) ? std::min<size_t>(3000, bytes.size()) : bytes.size());
            bytes[random.below(n)] = static_cast<uint8_t>(random.below(256));
        }
        try {
            Archive damaged(settings(60000));
            read_into(damaged, bytes);
            std::vector<uint8_t> rows;
            for (size_t unit = 0; unit < damaged.size(); ++unit) {  // whatever was taken can be worked with
                if (damaged.rows(unit, rows)) CHECK_EQ(rows.size(), size_t{damaged.unit(unit).tokens()} * kRow);
            }
            for (uint64_t id = 900; id < 960; ++id) add_second(damaged, random, id);
            CHECK(damaged.counts().memory <= 60000);
        } catch (const StateError &) {
        }
    }
}

TEST(an_archive_is_refused_for_what_a_recall_relies_on) {
    const auto with = [](const std::function<void(StoredUnit &)> & change) {
        Archive archive(settings(1 << 20));
        StoredUnit unit;
        unit.id = 4;
        unit.spans = {run(Role::Audio, 3)};
        unit.whole_tokens = 3;
        unit.telling = {2, 0, 1};
        unit.keys.assign(kKey, 0x3c00);
        change(unit);
        archive.add(unit, std::vector<uint8_t>(size_t{unit.tokens()} * kRow));
        return refusal(bytes_of(archive));
    };
    CHECK_EQ(with([](StoredUnit &) {}), std::string());
    CHECK(with([](StoredUnit & u) { u.kind = UnitKind::System; }).find("system") != std::string::npos);
    CHECK(with([](StoredUnit & u) { u.telling = {2, 2, 1}; }).find("order") != std::string::npos);
    CHECK(with([](StoredUnit & u) { u.keys[3] = 0x7c00; }).find("key") != std::string::npos);
    CHECK(with([](StoredUnit & u) { u.keys[3] = 0xfe01; }).find("key") != std::string::npos);
    CHECK(with([](StoredUnit & u) { u.keys.clear(); }).find("searched") != std::string::npos);
    CHECK(with([](StoredUnit & u) { u.end_s = std::numeric_limits<double>::quiet_NaN(); }).find("time") != std::string::npos);
    CHECK(with([](StoredUnit & u) { u.whole_tokens = 2; }).find("tokens") != std::string::npos);
    CHECK(with([](StoredUnit & u) { u.id = kNext; }).find("order") != std::string::npos);
    CHECK(with([](StoredUnit & u) { u.spans[0].base = -1; }).find("positions") != std::string::npos);
    CHECK(with([](StoredUnit & u) { u.spans[0].width = 2; }).find("raster") != std::string::npos);
}
