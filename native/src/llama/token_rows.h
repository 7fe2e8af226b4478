// Rows of the model's token embedding table, so that a unit's text can share a batch with its pictures and sound.
#pragma once

#include <cstdint>
#include <vector>

struct llama_model;

namespace ot {

class TokenRows {
public:
    explicit TokenRows(const llama_model & model);

    // Whether a row given as an embedding computes what the token would: the table lies in plain host memory and the
    // model does nothing to token inputs that it does not do to embeddings.
    bool available() const { return available_; }

    // Appends the token's row, as long as those of embeddings: where these hold more for later layers (Qwen3-VL), a token's is
    // zero there, as in llama.cpp's graph. REQUIRES: available(), 0 <= token < vocabulary size.
    void append(int32_t token, std::vector<float> & rows) const;

private:
    const llama_model & model_;
    bool available_;
};

}  // namespace ot
