// SPDX-License-Identifier: Apache-2.0
#include "preprocess/ops/sigrid_hash.h"

#include <gtest/gtest.h>

#include <vector>

namespace recmill::preprocess {

// Computed from the definition in the header with arbitrary-precision integers, not with this code.
TEST(SigridHash, has_golden_values) {
  struct Golden {
    uint64_t id, salt, rows, row;
  };
  const Golden kGolden[] = {
      {0x0ull, 0x0ull, 1ull, 0ull},
      {0x0ull, 0x0ull, 1000ull, 883ull},
      {0x1ull, 0x0ull, 1000ull, 566ull},
      {0x68FD1E64ull, 0x0ull, 1461ull, 435ull},
      {0x68FD1E64ull, 0x9E3779B97F4A7C15ull, 1461ull, 966ull},
      {0xFFFFFFFFFFFFFFFFull, 0x0ull, 40000000ull, 35757716ull},
      {0x6D697373696E6721ull, 0x5ull, 10131227ull, 4982832ull},
      {0xFFFFFFFFFFull, 0xFFFFFFFFFFFFFFFFull, 4294967295ull, 2126705618ull},
      {0x3039ull, 0x2A6ull, 4294967296ull, 3833544897ull},
      {0x3039ull, 0x2A6ull, 1099511627783ull, 981387493883ull},
      {0x8000000000000000ull, 0x1ull, 9223372036854775808ull, 7932239845603077397ull},
  };
  for (const Golden& golden : kGolden) {
    EXPECT_EQ(SigridHash::row(golden.id, golden.salt, golden.rows), golden.row)
        << golden.id << ' ' << golden.salt << ' ' << golden.rows;
  }
}

TEST(SigridHash, spreads_consecutive_ids_evenly) {
  constexpr uint64_t kRows = 1000, kIds = 1000000;
  std::vector<int64_t> counts(kRows);
  for (uint64_t id = 0; id < kIds; ++id) ++counts[SigridHash::row(id, 3, kRows)];
  double chi_square = 0;
  for (const int64_t count : counts) {
    const double difference = static_cast<double>(count) - 1000.0;
    chi_square += difference * difference / 1000.0;
  }
  // 999 degrees of freedom: mean 999, standard deviation 44.7.
  EXPECT_GT(chi_square, 999 - 5 * 44.7);
  EXPECT_LT(chi_square, 999 + 5 * 44.7);
}

TEST(SigridHash, salts_make_equal_ids_unrelated) {
  int equal = 0;
  for (uint64_t id = 0; id < 100000; ++id) {
    equal += SigridHash::row(id, 1, 100) == SigridHash::row(id, 2, 100);
  }
  EXPECT_NEAR(equal, 1000, 160);
}

}  // namespace recmill::preprocess
