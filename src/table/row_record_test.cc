// SPDX-License-Identifier: Apache-2.0
#include "table/row_record.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"
#include "table/embedding_table.h"

namespace recmill::table {
namespace {

// Every optimizer, and none, in every precision.
std::vector<TableSpec> specs_of(int64_t dim) {
  std::vector<TableSpec> specs;
  for (const auto& [precision, precision_name] : EnumNames<RowPrecision>::names) {
    const auto add = [&](OptimizerKind kind, BiasCorrection correction, bool frozen) {
      TableSpec spec;
      spec.name = std::string(precision_name) + std::to_string(specs.size());
      spec.rows = 20;
      spec.dim = dim;
      spec.precision = precision;
      spec.optimizer.kind = kind;
      spec.optimizer.correction = correction;
      spec.frozen = frozen;
      specs.push_back(spec);
    };
    for (const auto& [kind, name] : EnumNames<OptimizerKind>::names)
      add(kind, BiasCorrection::global, false);
    add(OptimizerKind::adam, BiasCorrection::row, false);
    add(OptimizerKind::adagrad, BiasCorrection::global, true);
  }
  return specs;
}

// A row's weights, then the columns of its state.
std::vector<float> row_of(const EmbeddingTable& table, int64_t slot) {
  std::vector<float> weights(table.rows().dim), values;
  std::vector<std::vector<float>> columns;
  for (const StateColumn& column : table.state()) columns.emplace_back(column.width);
  const std::vector<std::span<float>> state(columns.begin(), columns.end());
  table.read(slot, 1, weights, state);
  values = weights;
  for (const auto& column : columns) values.insert(values.end(), column.begin(), column.end());
  return values;
}

EmbeddingTable table_of(const TableSpec& spec, uint64_t seed, ThreadPool& pool) {
  auto table = *EmbeddingTable::create(spec, seed, RowShare(spec.rows, 0, 1), pool);
  const Random random(seed, Purpose::test);
  for (int64_t row = 0; row < spec.rows; ++row) {
    std::vector<float> weights(spec.dim);
    for (int64_t e = 0; e < spec.dim; ++e) weights[e] = random.uniform(row, e) - 0.5f;
    std::vector<std::vector<float>> columns;
    for (const StateColumn& column : table.state()) {
      columns.emplace_back(column.width);
      for (size_t i = 0; i < columns.back().size(); ++i)
        columns.back()[i] = random.uniform(row, 10000 * columns.size() + i);
    }
    const std::vector<std::span<const float>> state(columns.begin(), columns.end());
    table.write(row, 1, weights, state);
  }
  return table;
}

class RowRecordOfDim : public ::testing::TestWithParam<int64_t> {
 protected:
  ThreadPool pool_{1};
};
INSTANTIATE_TEST_SUITE_P(Dims, RowRecordOfDim, ::testing::Values(1, 2, 3, 16, 33, 1024));

TEST_P(RowRecordOfDim, brings_every_bit_of_a_row_to_another_slot) {
  for (const TableSpec& spec : specs_of(GetParam())) {
    const auto from = table_of(spec, 1, pool_);
    auto to = table_of(spec, 2, pool_);
    const RowRecord record(spec);
    std::vector<std::byte> bytes(record.bytes(), std::byte{0xFF}), again(bytes);
    record.pack(from.rows(), 7, bytes.data());
    record.unpack(bytes.data(), to.rows(), 12);
    EXPECT_EQ(row_of(to, 12), row_of(from, 7)) << spec.name;
    EXPECT_EQ(row_of(to, 11), row_of(table_of(spec, 2, pool_), 11)) << spec.name;
    EXPECT_EQ(row_of(to, 13), row_of(table_of(spec, 2, pool_), 13)) << spec.name;
    record.pack(to.rows(), 12, again.data());
    EXPECT_EQ(again, bytes) << spec.name << ": bytes beside the row";
  }
}

TEST_P(RowRecordOfDim, is_read_in_float32_as_the_table_is) {
  for (const TableSpec& spec : specs_of(GetParam())) {
    const auto table = table_of(spec, 3, pool_);
    const RowRecord record(spec);
    std::vector<std::byte> bytes(record.bytes());
    record.pack(table.rows(), 4, bytes.data());
    std::vector<float> values(row_of(table, 4).size());
    std::vector<std::span<float>> state;
    int64_t begin = spec.dim;
    for (const StateColumn& column : table.state()) {
      state.push_back(std::span(values).subspan(begin, column.width));
      begin += column.width;
    }
    record.read(bytes.data(), std::span(values).first(spec.dim), state);
    EXPECT_EQ(values, row_of(table, 4)) << spec.name;
  }
}

TEST_P(RowRecordOfDim, has_the_bytes_of_a_row_in_memory_padded_at_most_to_the_next_float) {
  for (const TableSpec& spec : specs_of(GetParam())) {
    const int64_t in_memory = EmbeddingTable::bytes(spec, RowShare(spec.rows, 0, 1)) / spec.rows;
    const RowRecord record(spec);
    EXPECT_GE(record.bytes(), in_memory) << spec.name;
    EXPECT_LE(record.bytes(), (in_memory + 3) / 4 * 4) << spec.name;
  }
}

TEST_P(RowRecordOfDim, is_put_together_from_its_parts_by_columns) {
  const int64_t dim = GetParam();
  for (const TableSpec& spec : specs_of(dim)) {
    const auto table = table_of(spec, 4, pool_);
    const RowRecord record(spec);
    std::vector<std::byte> whole(record.bytes()), together(record.bytes());
    record.pack(table.rows(), 9, whole.data());
    for (const ColumnRange columns : {ColumnRange{0, dim / 3}, ColumnRange{dim / 3, dim - dim / 3}})
      for (const auto& [first, count] : record.parts(columns, columns.first == dim / 3))
        std::copy_n(whole.begin() + first, count, together.begin() + first);
    EXPECT_EQ(together, whole) << spec.name;
  }
}

TEST(RowRecord, of_some_columns_is_that_of_a_table_with_as_many) {
  for (const TableSpec& spec : specs_of(33)) {
    TableSpec narrow = spec;
    narrow.dim = 16;
    EXPECT_EQ(RowRecord(spec, 16).bytes(), RowRecord(narrow).bytes()) << spec.name;
  }
}

}  // namespace
}  // namespace recmill::table
