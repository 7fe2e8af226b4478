#include "llama/recurrent_state.h"

#include "llama-context.h"
#include "llama-io.h"
#include "llama-memory-recurrent.h"

#include <ggml-backend.h>

#include <cstring>
#include <exception>
#include <stdexcept>

namespace ot {
namespace {

class Writer final : public llama_io_write_i {
public:
    explicit Writer(std::vector<uint8_t> & to) : to_(to) { to_.clear(); }

    void write(const void * from, size_t n) override {
        if (n > 0) std::memcpy(grow(n), from, n);
    }
    void write_tensor(ggml_tensor * tensor, size_t offset, size_t n) override {
        if (n > 0) ggml_backend_tensor_get(tensor, grow(n), offset, n);
    }
    size_t n_bytes() override { return to_.size(); }

private:
    uint8_t * grow(size_t n) {
        to_.resize(to_.size() + n);
        return to_.data() + to_.size() - n;
    }

    std::vector<uint8_t> & to_;
};

class Reader final : public llama_io_read_i {
public:
    Reader(const uint8_t * from, size_t n) : from_(from), size_(n) {}

    void read(void * to, size_t n) override {
        const uint8_t * bytes = take(n);
        if (n > 0) std::memcpy(to, bytes, n);
    }
    void read_tensor(ggml_tensor * tensor, size_t offset, size_t n) override {
        const uint8_t * bytes = take(n);
        if (n > 0) ggml_backend_tensor_set(tensor, bytes, offset, n);
    }
    size_t n_bytes() override { return read_; }

private:
    const uint8_t * take(size_t n) {
        if (n > size_ - read_) throw std::runtime_error("the state ends too early");
        read_ += n;
        return from_ + (read_ - n);
    }

    const uint8_t * from_;
    size_t size_;
    size_t read_ = 0;
};

}  // namespace

void RecurrentState::copy(std::vector<uint8_t> & to) const {
    context_.synchronize();
    Writer writer{to};
    memory_.state_write(writer, 0);
}

bool RecurrentState::bring_back(const uint8_t * bytes, size_t n) {
    context_.synchronize();
    Reader reader{bytes, n};
    try {
        memory_.state_read(reader, 0);
    } catch (const std::exception &) {
        return false;
    }
    return reader.n_bytes() == n;
}

int32_t RecurrentState::position() const { return memory_.seq_pos_max(0); }

void RecurrentState::set_position(int32_t position) {
    for (llama_memory_recurrent::mem_cell & cell : memory_.cells) {
        if (cell.has_seq_id(0)) cell.pos = position;
    }
}

uint64_t RecurrentState::bytes() const {
    uint64_t total = 0;
    for (const auto & [type, bytes] : memory_.memory_breakdown()) total += bytes;
    return total;
}

}  // namespace ot
