// A unit under construction: its spans and, in token order, either tokens or rows of embeddings.
#pragma once

#include "encode/encoder.h"
#include "ledger/ledger.h"

#include <cstdint>
#include <vector>

namespace ot {

inline constexpr int32_t kNoToken = -1;

struct PendingUnit {
    UnitKind kind = UnitKind::Media;
    double start_s = 0;
    double end_s = 0;
    std::vector<Span> spans;
    std::vector<int32_t> tokens;  // kNoToken where a row is meant
    std::vector<float> rows;      // the rows, in order
    double encode_ms = 0;

    uint32_t size() const { return static_cast<uint32_t>(tokens.size()); }
    bool has_rows() const { return !rows.empty(); }

    // Neighbouring tokens of one role are one span; a raster is always its own.
    void add_tokens(Role role, const int32_t * first, size_t n) {
        if (n == 0) return;
        if (!spans.empty() && spans.back().role == role && spans.back().width == 0) {
            spans.back().length += static_cast<uint32_t>(n);
        } else {
            spans.push_back({role, static_cast<uint32_t>(n)});
        }
        tokens.insert(tokens.end(), first, first + n);
    }

    void add_rows(Role role, uint32_t width, uint32_t first, const std::vector<float> & data, uint32_t n) {
        if (n == 0) return;
        spans.push_back({role, n, first, width});
        tokens.insert(tokens.end(), n, kNoToken);
        rows.insert(rows.end(), data.begin(), data.end());
    }

    void add_image(const std::vector<Piece> & pieces) {
        for (const Piece & piece : pieces) {
            if (piece.kind == Piece::Kind::Mark) {
                add_tokens(Role::Boundary, piece.tokens.data(), piece.tokens.size());
            } else {
                const Role role = piece.kind == Piece::Kind::Source ? Role::ImageSource : Role::ImageSlice;
                add_rows(role, piece.image.width, 0, piece.image.rows, piece.image.n_rows);
            }
        }
    }
};

}  // namespace ot
