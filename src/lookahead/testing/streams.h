// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "base/split_mix.h"
#include "lookahead/oracle.h"

namespace recmill::lookahead::testing {

/// Distinct rows of each step, ascending.
using Stream = std::vector<std::vector<int64_t>>;

inline constexpr int64_t kSkewedRows = 5307;  // of its tables together
inline constexpr int64_t kSkewedSteps = 60, kSkewedBatch = 256;

/// The row that sample `i` names in table `t` of three, which are numbered one after another: R s,
/// where s is a skewed fraction.
inline int64_t skewed_row(uint64_t t, int64_t i) {
  constexpr int64_t kRows[] = {5000, 300, 7}, kBegins[] = {0, 5000, 5300};
  const uint64_t a = split_mix((1ull << 48) ^ (t << 40) ^ static_cast<uint64_t>(i)) >> 40;
  const auto s = static_cast<int64_t>((((a * a) >> 24) * a) >> 24);
  return kBegins[t] + (s * kRows[t] >> 24);
}

/// Of the samples of rank `rank` of `ranks`.
inline Stream skewed_stream(int64_t rank = 0, int64_t ranks = 1) {
  Stream stream;
  for (int64_t step = 0; step < kSkewedSteps; ++step) {
    std::set<int64_t> rows;
    for (int64_t i = rank * kSkewedBatch / ranks; i < (rank + 1) * kSkewedBatch / ranks; ++i)
      for (uint64_t t = 0; t < 3; ++t) rows.insert(skewed_row(t, step * kSkewedBatch + i));
    stream.emplace_back(rows.begin(), rows.end());
  }
  return stream;
}

/// Calls `use` with each decision; the status of the first that fails.
template <typename Use>
Status decide_all(const Stream& stream, const OracleOptions& options, const Use& use) {
  Oracle oracle(options);
  size_t seen = 0;
  for (size_t decided = 0; decided < stream.size(); ++decided) {
    while (!oracle.ready()) {
      if (seen < stream.size()) {
        oracle.see(stream[seen++]);
      } else {
        oracle.end();
      }
    }
    RECMILL_ASSIGN_OR_RETURN(const LookaheadStep decision, oracle.decide());
    use(decision);
  }
  return oracle.ready() || oracle.resident() != 0 ? Status::Failed("something is left") : Status();
}

}  // namespace recmill::lookahead::testing
