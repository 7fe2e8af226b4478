#include "llama/token_rows.h"

#include "llama-model.h"

#include <ggml-backend.h>

#include <cstring>

namespace ot {

TokenRows::TokenRows(const llama_model & model) : model_(model) {
    const ggml_tensor * table = model.tok_embd;
    const llama_hparams & hparams = model.hparams;
    available_ = table && table->buffer && ggml_backend_buffer_is_host(table->buffer) && hparams.f_embedding_scale == 0.0f &&
                 hparams.n_embd_inp() >= table->ne[0] && !model.per_layer_tok_embd;
}

void TokenRows::append(int32_t token, std::vector<float> & rows) const {
    const ggml_tensor * table = model_.tok_embd;
    const size_t width = model_.hparams.n_embd_inp();
    const uint8_t * row = static_cast<const uint8_t *>(table->data) + static_cast<size_t>(token) * table->nb[1];
    rows.resize(rows.size() + width);
    float * out = rows.data() + (rows.size() - width);
    if (table->type == GGML_TYPE_F32) {
        std::memcpy(out, row, static_cast<size_t>(table->ne[0]) * sizeof(float));
    } else {
        ggml_get_type_traits(table->type)->to_float(row, out, table->ne[0]);
    }
}

}  // namespace ot
