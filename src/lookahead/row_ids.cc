// SPDX-License-Identifier: Apache-2.0
#include "lookahead/row_ids.h"

namespace recmill::lookahead {

void RowIds::find_or_add(std::span<const int64_t> rows, std::span<Id> ids,
                         std::vector<bool>& fresh) {
  fresh.assign(rows.size(), false);
  index_.find_or_add(rows, ids, [&](size_t i) {
    fresh[i] = true;
    if (unused_.empty()) return ids_++;
    const Id id = unused_.back();
    unused_.pop_back();
    return id;
  });
}

void RowIds::remove(std::span<const Id> ids) {
  index_.remove(ids);
  unused_.insert(unused_.end(), ids.begin(), ids.end());
}

int64_t RowIds::bytes() const {
  return index_.bytes() + static_cast<int64_t>(unused_.capacity() * sizeof(Id));
}

}  // namespace recmill::lookahead
