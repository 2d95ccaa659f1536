// SPDX-License-Identifier: Apache-2.0
// The section [hotset].
#pragma once

#include <cstdint>
#include <string>

#include "schema/options.h"

namespace recmill::train {

/// Which rows are hot where bytes say how many: all of a count or none, or one by one.
enum class HotPick { cutoff, top };

}  // namespace recmill::train

namespace recmill {
template <>
struct EnumNames<train::HotPick> {
  static constexpr std::array names{std::pair{train::HotPick::cutoff, std::string_view{"cutoff"}},
                                    std::pair{train::HotPick::top, std::string_view{"top"}}};
};
}  // namespace recmill

namespace recmill::train {

struct HotsetOptions {
  int64_t bytes = int64_t{256} << 20;
  double threshold = 0.0;
  HotPick pick = HotPick::cutoff;
  std::string plan;
};
template <typename Visitor>
void describe(Visitor& v, HotsetOptions& o) {
  v("bytes", o.bytes,
    "bytes that hot rows with their state may take of each device, or of each rank; 0: what it has "
    "free",
    between(0, 0x1p56));
  v("threshold", o.threshold,
    "a row is hot that is looked up at least this often for each training input, whatever its "
    "table; 0: as many rows are as hotset.bytes allow",
    between(0, 1e9));
  v("pick", o.pick,
    "cutoff: rows that are looked up equally often are hot together or not; top: hotset.bytes are "
    "filled with the rows that are looked up most");
  v("plan", o.plan,
    "file of the hot set that 'recmill plan hotset --out' has written; empty: lookups of all "
    "training rows are counted");
}

}  // namespace recmill::train
