// SPDX-License-Identifier: Apache-2.0
#include "reader/row_split.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/key_text.h"
#include "base/random.h"

namespace recmill::reader {

int64_t rows_before_evaluation(int64_t rows, double eval_fraction) {
  const auto share = static_cast<int64_t>(eval_fraction * static_cast<double>(rows));
  return rows - std::clamp<int64_t>(share, std::min<int64_t>(rows, 1), rows);
}

Result<RowSplit> RowSplit::make(const SplitOptions& options, Subset subset) {
  RowSplit split;
  split.options_ = options;
  split.subset_ = subset;
  split.boundary_chosen_ = options.boundary != 0;
  return split;
}

bool RowSplit::lacks_boundary() const {
  return !keeps_all() && options_.by == SplitKind::time && options_.boundary == 0;
}

RowSplit RowSplit::with_boundary(int64_t boundary) const {
  RowSplit split = *this;
  split.options_.boundary = boundary;
  return split;
}

bool RowSplit::keeps_number(std::string_view file, int64_t number) const {
  const Random random(static_cast<uint64_t>(options_.seed), Purpose::split, hash_bytes(file));
  return keeps(random.uniform64(static_cast<uint64_t>(number)) < options_.eval_fraction);
}

bool RowSplit::keeps_key(uint64_t key) const {
  const Random random(static_cast<uint64_t>(options_.seed), Purpose::split);
  return keeps(random.uniform64(key) < options_.eval_fraction);
}

bool RowSplit::keeps_time(int64_t time) const {
  return keeps(time >= options_.boundary);
}

Status RowSplit::empty_side() const {
  const bool train = subset_ == Subset::train;
  const std::string side = train ? "training" : "evaluation";
  if (options_.by != SplitKind::time) {
    return Status::BadRequest(fmt::format("data.split.eval_fraction: {} leaves no rows for {}",
                                          options_.eval_fraction, side));
  }
  return Status::BadRequest(
      std::string("data.split.") + (boundary_chosen_ ? "boundary" : "eval_fraction") +
      ": no row for " + side + ": none has a time " + (train ? "before " : "from ") +
      std::to_string(options_.boundary) + (boundary_chosen_ ? "" : " (where evaluation begins)"));
}

Status RowSplit::no_time_column() {
  return Status::BadRequest("data.split.by: time needs a column of role time, and there is none");
}

std::string RowSplit::fingerprint() const {
  if (keeps_all()) return "all";
  KeyText key;
  key.add(name_of(subset_)).add(name_of(options_.by)).add(options_.eval_fraction);
  return key.add(options_.column).add(options_.boundary).add(options_.seed).text();
}

}  // namespace recmill::reader
