// What the loaded model's graph does, tried with one token: descriptions of models promise more than graphs keep.
//
// Shifting a cached key assumes that llama.cpp rotates keys as the model's hyperparameters say. Some graphs don't: layers
// without rotation (SmolLM3), other dimension pairs than the rope type says (DeepSeek-OCR), norms behind the rotation
// (Hunyuan), learned positions (StarCoder, GPT-2), ALiBi (Baichuan 13B). And text given as rows of embeddings assumes that
// the graph does to rows what it does to tokens, which CogVLM's and Gemma 3's don't.
#pragma once

#include <cstdint>
#include <string>

struct llama_context;
struct llama_model;

namespace ot {

class CacheHandle;
class TokenRows;

struct SelfTested {
    std::string refusal;        // why shifts would be wrong; empty: they are right, or there is no cache of ours
    bool rows_as_tokens = false;  // text may be given as rows of embeddings
};

// Decodes one token alone at position 0 and alone at a distant one (two decodes; a third where rows are not as tokens),
// shifts the first key to the second's position, and compares all layers. A token that attends to itself alone has the same
// hidden states at any position, so that the keys may differ by the rotation only.
// `cache` may be null (llama.cpp's own memory). REQUIRES: the context is empty. Leaves it empty.
SelfTested self_test(llama_context & context, CacheHandle * cache, const TokenRows & token_rows);

// Positions for which the model has an embedding (learned positions); llama.cpp aborts beyond them. 0: no limit.
uint32_t learned_positions(const llama_model & model);

}  // namespace ot
