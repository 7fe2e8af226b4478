// Rows on disk: a file of at most so many bytes, in which records come and go.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ot {

// A record's place, and what its bytes add up to: a file that was damaged under us is noticed.
struct Extent {
    uint64_t offset = 0;
    uint64_t size = 0;
    uint64_t sum = 0;
};

class RowFile {
public:
    // Makes the file, which is gone from its folder at once and from the disk with this object, whatever becomes of the
    // process. Where it can't be made, problem() says why and nothing can be put.
    RowFile(const std::string & path, uint64_t limit);
    ~RowFile();
    RowFile(const RowFile &) = delete;
    RowFile & operator=(const RowFile &) = delete;

    // Nothing where it doesn't fit, or couldn't be written: then problem() says why, and nothing is written any more.
    std::optional<Extent> put(const std::vector<uint8_t> & record);
    // false where it can't be read, or isn't what was put.
    bool get(const Extent & extent, std::vector<uint8_t> & record) const;
    void free(const Extent & extent);

    uint64_t used() const { return used_; }
    const std::string & problem() const { return problem_; }

private:
    std::optional<uint64_t> room(uint64_t size);

    int file_ = -1;
    uint64_t limit_;
    uint64_t end_ = 0;   // behind the last record
    uint64_t used_ = 0;  // bytes of records
    std::map<uint64_t, uint64_t> holes_;  // offset -> size, none beside another
    std::string problem_;
};

}  // namespace ot
