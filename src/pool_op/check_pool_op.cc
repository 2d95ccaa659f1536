// SPDX-License-Identifier: Apache-2.0
#include "pool_op/check_pool_op.h"

#include <cstring>
#include <vector>

#include "device/buffer.h"
#include "pool_op/pool_op.h"

namespace recmill::kernels::codegen {
namespace {

constexpr int64_t kRows = 7, kSamples = 5;

/// Bags of all kinds, of exactly one lookup, and of too few to cover a table; lookups of any.
const std::vector<int64_t> kOffsets[] = {
    {0, 2, 2, 67, 200, 201}, {0, 1, 2, 3, 4, 5}, {0, 0, 2, 2, 2, 3}};
constexpr int64_t kMost = 201;

/// Bit patterns of small numbers in every precision, none of them special.
Result<Buffer> filled_table(const PoolOpTable& table) {
  RECMILL_ASSIGN_OR_RETURN(Buffer rows,
                           Buffer::allocate(kRows * table.dim * bytes_of(table.precision)));
  const auto halves = std::span(reinterpret_cast<uint16_t*>(rows.data()), rows.size() / 2);
  for (size_t i = 0; i < halves.size(); ++i)
    halves[i] = static_cast<uint16_t>(0x3800 + i * 2654435761u % 0x400);
  return rows;
}

struct Lookups {
  std::vector<int64_t> rows;
  std::vector<float> weights;
};
Lookups some_lookups() {
  Lookups some;
  for (int64_t j = 0; j < kMost; ++j) {
    some.rows.push_back((j * j + j / 3) % kRows);
    some.weights.push_back(0.3f + static_cast<float>(j % 11) * 0.7f);
  }
  return some;
}

PoolTask task_of(const PoolOp& op, size_t f, const JaggedView& bags, const Buffer& table) {
  const PoolOpTable& of = op.tables[op.features[f].table];
  const int64_t stride = of.dim * bytes_of(of.precision);
  PoolTask task;
  task.bags = bags;
  task.rows = {
      const_cast<std::byte*>(table.data()), kRows, stride, of.dim, 0, nullptr, of.precision};
  task.pooling = op.features[f].pooling;
  task.stride = of.dim;
  return task;
}

void one_after_the_other(int64_t count, void (*work)(void*, int64_t), void* of) {
  for (int64_t i = 0; i < count; ++i) work(of, i);
}

}  // namespace

Status check_pool_op(const PoolOp& op, const Library& library) {
  const auto entry =
      reinterpret_cast<const pool_op::Entries* (*)()>(library.symbol("recmill_pool_op"));
  if (entry == nullptr) return Status::Failed(library.path() + ": not of this program; remove it");
  std::vector<Buffer> tables;
  std::vector<pool_op::Rows> rows;
  for (const PoolOpTable& table : op.tables) {
    RECMILL_ASSIGN_OR_RETURN(Buffer filled, filled_table(table));
    rows.push_back({filled.data(), kRows});
    tables.push_back(std::move(filled));
  }
  const Lookups lookups = some_lookups();
  for (const std::vector<int64_t>& offsets : kOffsets) {
    std::vector<JaggedView> bags;
    std::vector<std::vector<float>> found;
    std::vector<float*> outputs;
    for (const PoolOpFeature& feature : op.features) {
      bags.push_back({offsets.data(), lookups.rows.data(),
                      feature.weighted ? lookups.weights.data() : nullptr, kSamples});
      found.emplace_back(kMost * op.tables[feature.table].dim, -1.0f);
    }
    for (auto& output : found) outputs.push_back(output.data());
    const std::string problem =
        entry()->on_cpu({rows, bags, outputs}, /*threads=*/2, one_after_the_other);
    if (!problem.empty()) return Status::Failed(library.path() + ": " + problem);
    for (size_t f = 0; f < op.features.size(); ++f) {
      PoolTask task = task_of(op, f, bags[f], tables[op.features[f].table]);
      std::vector<float> expected(found[f].size(), -1.0f);
      task.out = expected.data();
      embedding_pool_reference(task);
      if (std::memcmp(expected.data(), found[f].data(), expected.size() * sizeof(float)) != 0)
        return Status::Failed(library.path() + ": feature '" + op.features[f].name +
                              "' is pooled otherwise than by the reference");
    }
  }
  return {};
}

}  // namespace recmill::kernels::codegen
