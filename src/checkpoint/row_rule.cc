// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/row_rule.h"

#include <array>
#include <cstring>

#include "base/bfloat16.h"
#include "base/uniform_weight.h"
#include "checkpoint/format.h"

namespace recmill::checkpoint {
namespace {

void store(ElementType type, float value, std::byte* to) {
  switch (type) {
    case ElementType::bfloat16: {
      const BFloat16 narrow = to_bfloat16(value);
      std::memcpy(to, &narrow, sizeof(narrow));
      return;
    }
    case ElementType::float16: {
      const Float16 narrow = to_float16(value);
      std::memcpy(to, &narrow, sizeof(narrow));
      return;
    }
    default:
      std::memcpy(to, &value, sizeof(value));
  }
}

}  // namespace

bool can_make(const RowRule&, const EntrySpec& entry) {
  return entry.type == ElementType::float32 || entry.type == ElementType::bfloat16 ||
         entry.type == ElementType::float16;
}

void make_rows(const RowRule& rule, const EntrySpec& entry, int64_t first, int64_t count,
               ColumnRange columns, std::span<std::byte> out) {
  const Random random(rule.seed, Purpose::initial_row, rule.stream);
  const auto size = static_cast<size_t>(size_of(entry.type));
  std::byte* to = out.data();
  for (int64_t row = first; row < first + count; ++row) {
    std::array<uint32_t, 4> words{};
    int64_t block = -1;  // that words are of
    for (int64_t e = columns.first; e < columns.end(); ++e, to += size) {
      if (rule.kind == RowRule::Kind::constant) {
        store(entry.type, rule.value, to);
        continue;
      }
      if (e / 4 != block) {
        block = e / 4;
        words = random.block(static_cast<uint64_t>(row), static_cast<uint64_t>(block));
      }
      store(entry.type, uniform_weight(words[static_cast<size_t>(e % 4)], rule.value), to);
    }
  }
}

}  // namespace recmill::checkpoint
