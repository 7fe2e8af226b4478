#include "recall/score.h"

#include "recall/half.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ot {
namespace {

// Eight sums at once: the order in which they are added up is the same on every processor.
float dot(const float * a, const float * b, uint32_t n) {
    float sums[8] = {};
    uint32_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (uint32_t j = 0; j < 8; ++j) sums[j] += a[i + j] * b[i + j];
    }
    float sum = ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
    for (; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

// Adds the mass of the queries of one key head of one layer to `out`.
class HeadMass {
public:
    HeadMass(const std::vector<IndexedKeys> & units, const Queries & queries, size_t n_keys) : units_(units), queries_(queries), logits_(n_keys) {}

    void add(uint32_t layer, uint32_t key_head, std::vector<double> & out) {
        const uint32_t group = queries_.heads / queries_.key_heads;
        gather(layer, key_head);
        for (uint32_t token = 0; token < queries_.tokens; ++token) {
            for (uint32_t i = 0; i < group; ++i) {
                const size_t head = key_head * group + i;
                const size_t row = (size_t{layer} * queries_.tokens + token) * queries_.heads + head;
                spread(queries_.values.data() + row * queries_.head, out);
            }
        }
    }

private:
    // This head's keys of all units, one after the other: converted once for all queries.
    void gather(uint32_t layer, uint32_t key_head) {
        const uint32_t head = queries_.head;
        const size_t key_size = size_t{queries_.layers} * queries_.width();
        const size_t offset = size_t{layer} * queries_.width() + size_t{key_head} * head;
        keys_.resize(logits_.size() * head);
        float * to = keys_.data();
        for (const IndexedKeys & unit : units_) {
            for (uint32_t k = 0; k < unit.n_keys; ++k, to += head) {
                const uint16_t * from = unit.keys + k * key_size + offset;
                for (uint32_t i = 0; i < head; ++i) to[i] = from_half(from[i]);
            }
        }
    }

    void spread(const float * query, std::vector<double> & out) {
        float largest = -INFINITY;
        for (size_t k = 0; k < logits_.size(); ++k) {
            logits_[k] = dot(query, keys_.data() + k * queries_.head, queries_.head) * queries_.scale;
            largest = std::max(largest, logits_[k]);
        }
        double sum = 0;
        for (float & logit : logits_) {
            logit = std::exp(logit - largest);
            sum += static_cast<double>(logit);
        }
        size_t k = 0;
        for (size_t unit = 0; unit < units_.size(); ++unit) {
            double own = 0;
            for (uint32_t i = 0; i < units_[unit].n_keys; ++i) own += static_cast<double>(logits_[k++]);
            out[unit] += own / sum;
        }
    }

    const std::vector<IndexedKeys> & units_;
    const Queries & queries_;
    std::vector<float> keys_;
    std::vector<float> logits_;
};

}  // namespace

std::vector<float> masses(const std::vector<IndexedKeys> & units, const Queries & queries) {
    std::vector<double> sums(units.size(), 0.0);
    size_t n_keys = 0;
    for (const IndexedKeys & unit : units) n_keys += unit.n_keys;
    const double n_rows = static_cast<double>(queries.layers) * queries.tokens * queries.heads;
    if (n_keys > 0 && n_rows > 0) {
        HeadMass mass{units, queries, n_keys};
        for (uint32_t layer = 0; layer < queries.layers; ++layer) {
            for (uint32_t key_head = 0; key_head < queries.key_heads; ++key_head) mass.add(layer, key_head, sums);
        }
    }
    std::vector<float> shares;
    shares.reserve(sums.size());
    for (const double sum : sums) shares.push_back(static_cast<float>(n_rows > 0 ? sum / n_rows : 0.0));
    return shares;
}

std::vector<float> against(const std::vector<float> & shares, const std::vector<float> & reference) {
    constexpr double kLeast = 1e-9;  // of attention: less is nothing
    std::vector<double> scores(shares.size(), 0.0);
    for (size_t i = 0; i < shares.size(); ++i) {
        const double share = shares[i];
        scores[i] = share * share / std::max(static_cast<double>(reference[i]), kLeast);
    }
    const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
    std::vector<float> out;
    out.reserve(scores.size());
    for (const double score : scores) out.push_back(static_cast<float>(sum > 0 ? score / sum : 0.0));
    return out;
}

Likeness::Likeness(const std::vector<IndexedKeys> & units, size_t key_size) : size_(key_size), means_(units.size() * key_size, 0.0f) {
    std::vector<double> all(size_, 0.0);
    for (size_t unit = 0; unit < units.size(); ++unit) {
        float * mean = means_.data() + unit * size_;
        for (uint32_t k = 0; k < units[unit].n_keys; ++k) {
            const uint16_t * key = units[unit].keys + k * size_;
            for (size_t i = 0; i < size_; ++i) mean[i] += from_half(key[i]) / static_cast<float>(units[unit].n_keys);
        }
        for (size_t i = 0; i < size_; ++i) all[i] += static_cast<double>(mean[i]) / static_cast<double>(units.size());
    }
    for (size_t unit = 0; unit < units.size(); ++unit) {
        float * mean = means_.data() + unit * size_;
        for (size_t i = 0; i < size_; ++i) mean[i] -= static_cast<float>(all[i]);
        const float length = std::sqrt(std::inner_product(mean, mean + size_, mean, 0.0f));
        for (size_t i = 0; i < size_; ++i) mean[i] /= length > 0 ? length : 1.0f;
    }
}

float Likeness::operator()(size_t a, size_t b) const {
    const float * one = means_.data() + a * size_;
    return std::inner_product(one, one + size_, means_.data() + b * size_, 0.0f);
}

}  // namespace ot
