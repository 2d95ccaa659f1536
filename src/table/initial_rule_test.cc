// SPDX-License-Identifier: Apache-2.0
// The rule by which checkpoints leave initial rows out makes the rows that InitialRows makes.
#include <gtest/gtest.h>

#include <cstring>

#include "base/hash.h"
#include "checkpoint/format.h"
#include "checkpoint/row_rule.h"
#include "table/home/testing/home_trace.h"
#include "table/initial_rows.h"

namespace recmill::table {
namespace {

using checkpoint::ElementType;

TEST(InitialRule, makes_the_weights_of_every_precision_whole_or_by_columns) {
  for (TableSpec spec : testing::home_tables()) {
    if (spec.dim % 3 == 0) spec.initial_scale = 0.01;
    const uint64_t seed = 1'234'567'890'123;
    const InitialRows initial(spec, seed);
    const RowRecord record(spec);
    const auto type = spec.precision == RowPrecision::float32    ? ElementType::float32
                      : spec.precision == RowPrecision::bfloat16 ? ElementType::bfloat16
                                                                 : ElementType::float16;
    const checkpoint::EntrySpec entry{"e", type, {spec.rows, spec.dim}};
    const checkpoint::RowRule rule{checkpoint::RowRule::Kind::uniform, initial.scale(), seed,
                                   hash_bytes(spec.name)};
    const auto bytes = static_cast<size_t>(entry.row_bytes());
    const auto size = static_cast<size_t>(checkpoint::size_of(type));
    std::vector<std::byte> all(bytes * static_cast<size_t>(spec.rows));
    checkpoint::make_rows(rule, entry, 0, spec.rows, {0, spec.dim}, all);
    std::vector<float> aligned(static_cast<size_t>(record.bytes()) / sizeof(float) + 1);
    for (int64_t row = 0; row < spec.rows; ++row) {
      initial.make(row, reinterpret_cast<std::byte*>(aligned.data()));
      ASSERT_EQ(std::memcmp(aligned.data(), all.data() + static_cast<size_t>(row) * bytes, bytes),
                0)
          << spec.name << ", row " << row;
    }
    const ColumnRange some{spec.dim / 2, spec.dim - spec.dim / 2};
    std::vector<std::byte> part(size * static_cast<size_t>(some.count));
    checkpoint::make_rows(rule, entry, 2, 1, some, part);
    EXPECT_EQ(
        std::memcmp(part.data(), all.data() + 2 * bytes + size * static_cast<size_t>(some.first),
                    part.size()),
        0)
        << spec.name;
  }
}

}  // namespace
}  // namespace recmill::table
