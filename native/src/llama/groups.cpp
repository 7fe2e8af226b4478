#include "llama/groups.h"

#include "llama/original_keys.h"

namespace ot {

Groups group(const std::vector<Row> & rows, OriginalKeys & original_keys, bool keep) {
    Groups groups;
    for (const Row & row : rows) {
        if (row.src != row.dst) {
            groups.values.src.values.push_back(static_cast<int32_t>(row.src));
            groups.values.dst.values.push_back(row.dst);
        }
        if (row.delta == 0 && row.src == row.dst) continue;
        // Never through rope without need: a rotation by zero would round the key again.
        const bool is_kept = row.delta != 0 && original_keys.has(row.src);
        const bool is_back = is_kept && original_keys.shifted_by(row.src) + row.delta == 0;
        Group & target = row.delta == 0 ? groups.moved : is_back ? groups.back : is_kept ? groups.again : groups.first;
        target.dst.values.push_back(row.dst);
        if (is_back) {
            target.src.values.push_back(original_keys.slot(row.src));
        } else if (is_kept) {
            target.src.values.push_back(original_keys.slot(row.src));
            target.delta.values.push_back(original_keys.shifted_by(row.src) + row.delta);
        } else {
            target.src.values.push_back(static_cast<int32_t>(row.src));
        }
        if (&target == &groups.first) {
            target.delta.values.push_back(row.delta);
            if (keep) target.slot.values.push_back(original_keys.claim(row.src));
        }
    }
    return groups;
}

}  // namespace ot
