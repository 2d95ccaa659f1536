// SPDX-License-Identifier: Apache-2.0
// How the placed store carries a placement plan out.
#pragma once

#include "schema/options.h"

namespace recmill::store {

/// How gradients of rows with copies become the same sums at all holders, which all then update
/// their copies: bitwise the same in every way.
///   sparse      ranks send sums of the rows that they looked up to the rows' homes, which send the
///               finished gradients to the other holders
///   dense       all rows with copies, looked up or not, are one vector that ordered_reduce adds
///   all_gather  ranks send sums of the rows that they looked up to all holders, each of which
///               finishes them
///   automatic   what takes the least by the rows that the ranks of an iteration look up
enum class CopyReduce { automatic, sparse, dense, all_gather };

struct PlacedOptions {
  /// Each distinct row is fetched once a rank and batch, and one sum of its gradients sent back;
  /// else once for each lookup. Of rows with copies always sums are sent.
  bool dedup_fetch = true;
  CopyReduce reduce = CopyReduce::automatic;
  /// One round of messages fetches the rows of all tables; else one a table.
  bool one_call = true;
  /// Rows that this rank holds are read while others are on their way; else once they are here.
  bool overlap = true;
};

}  // namespace recmill::store

namespace recmill {
template <>
struct EnumNames<store::CopyReduce> {
  static constexpr std::array names{
      std::pair{store::CopyReduce::automatic, std::string_view{"auto"}},
      std::pair{store::CopyReduce::sparse, std::string_view{"sparse"}},
      std::pair{store::CopyReduce::dense, std::string_view{"dense"}},
      std::pair{store::CopyReduce::all_gather, std::string_view{"all_gather"}}};
};
}  // namespace recmill
