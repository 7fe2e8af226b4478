// The archive: units that were cut from the history, oldest first, within a budget of memory and one of disk.
//
// What is over a budget is thinned, not dropped, the oldest first: rows go to disk; then all tokens of a unit but the most
// telling 64; but 16; no rows, the index and the thumbnail alone; of the index, the last key; no thumbnail. Only then is the
// oldest unit forgotten.
//
// Pure: a row is bytes. Single-threaded, like everything below the session.
#pragma once

#include "bytes.h"
#include "recall/row_file.h"
#include "recall/score.h"
#include "recall/stored_unit.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace ot {

struct ArchiveSettings {
    bool mrope = false;
    uint32_t key_size = 0;         // of an index key: [layer][width] numbers
    uint64_t memory = 512u << 20;  // bytes, the index and thumbnails included
    uint64_t disk = 0;             // bytes; 0: rows stay in memory
    std::string file;              // made where `disk` allows any
};

struct ArchiveCounts {
    uint32_t units = 0;
    uint32_t whole = 0;    // as they were cut
    uint32_t thinned = 0;  // with their most telling tokens
    uint32_t bare = 0;     // without rows
    uint64_t dropped = 0;  // forgotten, since the session began
    uint64_t lost = 0;     // whose rows couldn't be read back
    uint64_t memory = 0;   // bytes
    uint64_t disk = 0;
    uint64_t index = 0;    // bytes, of those of `memory`
};

class Archive {
public:
    explicit Archive(ArchiveSettings settings);

    // REQUIRES: one row a token of `unit`, all of one size, in token order; index keys of settings.key_size. A unit
    // that is archived already is ignored. Text that stayed longer than the seconds around it comes late.
    void add(StoredUnit unit, std::vector<uint8_t> rows);

    size_t size() const { return entries_.size(); }
    // By age, the oldest first.
    const StoredUnit & unit(size_t index) const { return entries_[index].unit; }
    IndexedKeys keys(size_t index) const;
    bool has_rows(size_t index) const { return entries_[index].size > 0; }
    // Its rows, one after the other. false where they are gone or can't be read, after which they are gone.
    bool rows(size_t index, std::vector<uint8_t> & out);
    // Forgets the units from that id on: a session that went back to an earlier state gives their ids to others.
    void forget_from(uint64_t id);
    // The unit of that id, or size().
    size_t find(uint64_t id) const;

    // Everything, rows on disk included; those that can't be read are gone, so that fewer bytes may be written than were
    // counted before (archive_state.cpp).
    void write(ByteWriter & out);
    // Takes what write() wrote, into an archive that is still empty; what is over this one's budgets is thinned. `row_size`:
    // bytes of a token's row; ids are below `next_id`. Throws StateError for anything else, after which it is of no use.
    void read(ByteReader & in, uint64_t row_size, uint64_t next_id);

    ArchiveCounts counts() const;
    // Why nothing is written to disk any more; empty when all is well.
    std::string problem() const { return file_ ? file_->problem() : ""; }

private:
    struct Entry {
        StoredUnit unit;
        std::vector<uint8_t> rows;  // in memory; else on disk, where there are any
        Extent extent;
        uint64_t size = 0;          // bytes of its rows, wherever they are
    };

    uint64_t memory_of(const Entry & entry) const;
    void insert(Entry entry);
    bool to_disk(Entry & entry);
    void lose(Entry & entry);
    void write_entry(Entry & entry, ByteWriter & out);
    bool relieve();
    bool spill();
    bool thin_next();
    void thin_to(Entry & entry, uint32_t most);
    bool coarsen_next();
    bool drop_picture();
    bool drop_oldest();
    template <typename Change>
    void change(Entry & entry, Change && apply);
    template <typename Done>
    Entry * next(size_t & cursor, Done && done);

    ArchiveSettings settings_;
    std::unique_ptr<RowFile> file_;
    std::deque<Entry> entries_;
    uint64_t memory_ = 0;
    uint64_t dropped_ = 0;
    uint64_t lost_ = 0;
    // The first unit that hasn't been treated so yet; what comes later is always further behind.
    size_t spilled_ = 0;
    size_t coarse_ = 0;
    size_t pictureless_ = 0;
    std::vector<size_t> thinned_;  // one a level
};

}  // namespace ot
