#include "recall/row_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>

namespace ot {
namespace {

// Of words, each mixed in by a multiplication; not against malice, which doesn't come between writing and reading.
uint64_t sum_of(const std::vector<uint8_t> & bytes) {
    constexpr uint64_t factor = 0x9e3779b97f4a7c15u;
    uint64_t sum = bytes.size();
    size_t i = 0;
    for (; i + sizeof(uint64_t) <= bytes.size(); i += sizeof(uint64_t)) {
        uint64_t word;
        std::memcpy(&word, bytes.data() + i, sizeof word);
        sum = (sum ^ word) * factor;
        sum ^= sum >> 32;
    }
    for (; i < bytes.size(); ++i) sum = (sum ^ bytes[i]) * factor;
    return sum;
}

// Everything, in as many calls as it takes.
template <typename Call>
bool whole(Call call, size_t size, uint64_t offset) {
    for (size_t done = 0; done < size;) {
        const ssize_t n = call(done, size - done, static_cast<off_t>(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = EIO;
        if (n <= 0) return false;
        done += static_cast<size_t>(n);
    }
    return true;
}

}  // namespace

RowFile::RowFile(const std::string & path, uint64_t limit) : limit_(limit) {
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file_ < 0) {
        problem_ = path + ": " + std::strerror(errno);
    } else {
        ::unlink(path.c_str());
    }
}

RowFile::~RowFile() {
    if (file_ >= 0) ::close(file_);
}

std::optional<uint64_t> RowFile::room(uint64_t size) {
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
        if (hole->second < size) continue;
        const auto [offset, length] = *hole;
        holes_.erase(hole);
        if (length > size) holes_.emplace(offset + size, length - size);
        return offset;
    }
    if (size > limit_ - end_) return std::nullopt;
    const uint64_t offset = end_;
    end_ += size;
    return offset;
}

std::optional<Extent> RowFile::put(const std::vector<uint8_t> & record) {
    if (!problem_.empty() || record.empty()) return std::nullopt;
    const std::optional<uint64_t> offset = room(record.size());
    if (!offset) return std::nullopt;
    const Extent extent{*offset, record.size(), sum_of(record)};
    used_ += extent.size;
    const auto write = [&](size_t done, size_t n, off_t at) { return ::pwrite(file_, record.data() + done, n, at); };
    if (!whole(write, record.size(), *offset)) {
        problem_ = std::strerror(errno);
        free(extent);
        return std::nullopt;
    }
    return extent;
}

bool RowFile::get(const Extent & extent, std::vector<uint8_t> & record) const {
    record.resize(extent.size);
    const auto read = [&](size_t done, size_t n, off_t at) { return ::pread(file_, record.data() + done, n, at); };
    return whole(read, record.size(), extent.offset) && sum_of(record) == extent.sum;
}

void RowFile::free(const Extent & extent) {
    if (extent.size == 0) return;
    used_ -= extent.size;
    auto hole = holes_.emplace(extent.offset, extent.size).first;
    if (const auto next = std::next(hole); next != holes_.end() && hole->first + hole->second == next->first) {
        hole->second += next->second;
        holes_.erase(next);
    }
    if (hole != holes_.begin()) {
        const auto before = std::prev(hole);
        if (before->first + before->second == hole->first) {
            before->second += hole->second;
            holes_.erase(hole);
            hole = before;
        }
    }
    if (hole->first + hole->second == end_) {
        end_ = hole->first;
        holes_.erase(hole);
    }
}

}  // namespace ot
