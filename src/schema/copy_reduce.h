// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/options.h"

namespace recmill {

/// How gradients of rows with copies become the same sums at all holders, which all then update
/// their copies: bitwise the same in every way.
///   sparse      ranks send sums of the rows that they looked up to the rows' homes, which send the
///               finished gradients to the other holders
///   dense       all rows with copies, looked up or not, are one vector that ordered_reduce adds
///               (OPER, equation 5)
///   all_gather  ranks send sums of the rows that they looked up to all holders, each of which
///               finishes them
///   automatic   what takes the least by the rows that the ranks of an iteration look up; plans are
///               rated as by sparse
enum class CopyReduce { automatic, sparse, dense, all_gather };

template <>
struct EnumNames<CopyReduce> {
  static constexpr std::array names{
      std::pair{CopyReduce::automatic, std::string_view{"auto"}},
      std::pair{CopyReduce::sparse, std::string_view{"sparse"}},
      std::pair{CopyReduce::dense, std::string_view{"dense"}},
      std::pair{CopyReduce::all_gather, std::string_view{"all_gather"}}};
};

}  // namespace recmill
