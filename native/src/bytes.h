// Saved state as bytes: plain values one after the other, little-endian as on every machine we run on.
//
// What is read may come from anyone: no length in it is trusted, and nothing is allocated that it doesn't fill.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace ot {

// Saved bytes are damaged, or belong to something else.
struct StateError {
    std::string what;
};

// Writes into a buffer, or counts alone where there is none or it is too small: compare size() with what it holds.
class ByteWriter {
public:
    ByteWriter(uint8_t * out, size_t capacity) : out_(out), capacity_(out ? capacity : 0) {}

    size_t size() const { return size_; }
    // false: it counts, or what was written so far didn't fit.
    bool is_writing() const { return out_ != nullptr && size_ <= capacity_; }

    // Room for n bytes to write into; null when only counting.
    uint8_t * room(size_t n) {
        uint8_t * to = n <= capacity_ && size_ <= capacity_ - n ? out_ + size_ : nullptr;
        size_ += n;
        return to;
    }

    template <typename T>
    void put(T value) {
        static_assert(std::is_arithmetic_v<T>);
        if (uint8_t * to = room(sizeof(T))) std::memcpy(to, &value, sizeof(T));
    }

private:
    uint8_t * out_;
    size_t capacity_;
    size_t size_ = 0;
};

// Reads what a ByteWriter wrote. Throws StateError where there is less than asked for.
class ByteReader {
public:
    ByteReader(const uint8_t * data, size_t size) : data_(data), left_(size) {}

    size_t left() const { return left_; }

    const uint8_t * take(size_t n) {
        if (n > left_) throw StateError{"it ends too early"};
        const uint8_t * from = data_;
        data_ += n;
        left_ -= n;
        return from;
    }

    template <typename T>
    T get() {
        static_assert(std::is_arithmetic_v<T>);
        T value;
        std::memcpy(&value, take(sizeof(T)), sizeof(T));
        return value;
    }

    // A count of things that take at least `bytes` each.
    uint32_t get_count(size_t bytes) {
        const auto n = get<uint32_t>();
        if (n > left_ / bytes) throw StateError{"it ends too early"};
        return n;
    }

private:
    const uint8_t * data_;
    size_t left_;
};

}  // namespace ot
