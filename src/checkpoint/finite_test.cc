// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/finite.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "base/bfloat16.h"
#include "base/testing/faulty_files.h"
#include "checkpoint/testing/small_checkpoint.h"

namespace recmill::checkpoint {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLargest = std::numeric_limits<float>::max();

std::vector<std::byte> bytes_of(ElementType type, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * size_of(type));
  for (size_t i = 0; i < values.size(); ++i) {
    const double wide = values[i];
    const uint16_t bits =
        type == ElementType::bfloat16 ? to_bfloat16(values[i]).bits : to_float16(values[i]).bits;
    const void* from = type == ElementType::float64   ? static_cast<const void*>(&wide)
                       : type == ElementType::float32 ? static_cast<const void*>(&values[i])
                                                      : &bits;
    std::memcpy(bytes.data() + i * size_of(type), from, size_of(type));
  }
  return bytes;
}

TEST(CheckFinite, finds_the_first_value_that_is_not_in_every_type_and_place) {
  for (const ElementType type :
       {ElementType::float32, ElementType::bfloat16, ElementType::float16, ElementType::float64}) {
    const EntrySpec spec{"table/C1/weight", type, {3000, 1}};
    std::vector<float> values(3000, type == ElementType::float16 ? 65504.0f : 1e38f);
    values[5] = -0.0f;
    EXPECT_TRUE(check_finite(spec, {0, {}, bytes_of(type, values)}).ok()) << name_of(type);
    for (const size_t at : {0, 1023, 1024, 2999}) {
      for (const float value : {kInfinity, -kInfinity, kNan}) {
        std::vector<float> others = values;
        others[at] = others[2999] = value;
        EXPECT_EQ(check_finite(spec, {0, {}, bytes_of(type, others)}).message(),
                  "not finite: table C1, row " + std::to_string(at) +
                      ", weight; a checkpoint holds finite values alone")
            << name_of(type);
      }
    }
  }
}

TEST(CheckFinite, names_table_row_and_column_of_state_or_layer) {
  const auto words = [](const std::string& name, std::vector<int64_t> shape, RowBytes rows,
                        const std::vector<float>& values) {
    const auto bytes = bytes_of(ElementType::float32, values);
    rows.bytes = bytes;
    const std::string all = check_finite({name, ElementType::float32, shape}, rows).message();
    return all.substr(0, all.find(';'));
  };
  const std::vector<int64_t> listed{3, 8, 11};
  EXPECT_EQ(words("table/a/b/weight", {20, 2}, {0, listed, {}}, {1, 1, 1, kNan, 1, 1}),
            "not finite: table a/b, row 8, weight");
  EXPECT_EQ(words("table/C1/weight", {20, 8}, {4, {}, {}, {6, 2}}, {1, 1, 1, 1, kInfinity, 1}),
            "not finite: table C1, row 6, weight");
  EXPECT_EQ(words("table/C1/state/sum_of_squares", {20, 1}, {4, {}, {}}, {kLargest, kInfinity}),
            "not finite: table C1, row 5, optimizer state sum_of_squares");
  EXPECT_EQ(words("dense/top.0.weight", {2, 2}, {}, {1, 1, 1, kNan}),
            "not finite: layer top.0.weight");
  EXPECT_EQ(words("dense_state/top.0.weight/momentum", {2, 2}, {}, {1, -kInfinity, 1, 1}),
            "not finite: layer top.0.weight, optimizer state momentum");
  const EntrySpec ids{"dictionary/C1", ElementType::uint64, {1}};
  EXPECT_TRUE(check_finite(ids, {0, {}, bytes_of(ElementType::float64, {kNan})}).ok());
}

TEST(PartWriter, refuses_values_that_are_not_finite_and_names_its_file) {
  FaultyFiles files;
  auto writer = *Writer::create(files, "ck", 3);
  auto part = *PartWriter::create(files, writer->path(), 2);
  std::vector<float> values(120, 0.5f);
  values[25] = kNan;
  EXPECT_EQ(part->add(kWeight, 0, bytes_of(ElementType::float32, values)).message(),
            "ck/step-000000000003.tmp/part-2: not finite: table C1, row 8, weight; a checkpoint "
            "holds finite values alone");
}

}  // namespace
}  // namespace recmill::checkpoint
