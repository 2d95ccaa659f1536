// SPDX-License-Identifier: Apache-2.0
// A row index file, its checksum put right: what is taken is written as it was read.
#include "base/hash.h"
#include "base/testing/fuzz.h"
#include "reader/lines/row_index_file.h"

namespace recmill {
namespace {

constexpr char kKey[] = "key";
constexpr size_t kChecksumBytes = 4;

}  // namespace

std::vector<std::string> fuzz::seeds() {
  reader::RowIndex index;
  index.bytes = 90'000;
  index.rows = 4'100;
  index.kept = 4'000;
  index.blocks = {{5, 2, 0}, {80'000, 4'098, 3'990}};
  index.bad = {7, 4'097};
  reader::RowIndex packed = index;
  packed.access = {{40'000, 900, 3, 5, false, "window"}, {60'000, 1'500, 0, 0, true, ""}};
  reader::RowIndex slices;  // of row groups
  slices.rows = 5'000;
  slices.kept = 4'999;
  slices.blocks = {{0, 0, 0}, {0, 100, 100}, {0, 200, 199}};
  slices.bad = {107};
  std::vector<std::string> seeds;
  for (const reader::RowIndex& one : {index, packed, slices}) {
    seeds.push_back(encode_row_index(one, kKey));
    seeds.back().resize(seeds.back().size() - kChecksumBytes);
  }
  return seeds;
}

void fuzz::feed(const std::string& bytes) {
  const uint32_t checksum = crc32c(std::as_bytes(std::span(bytes)));
  std::string file = bytes;
  file.append(reinterpret_cast<const char*>(&checksum), kChecksumBytes);
  const auto index = reader::decode_row_index(file, kKey);
  if (!index) return;
  RECMILL_CHECK(reader::decode_row_index(encode_row_index(*index, kKey), kKey) == index);
}

}  // namespace recmill
