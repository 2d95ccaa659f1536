// SPDX-License-Identifier: Apache-2.0
#include "reader/text_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/temporary_folder.h"
#include "reader/reader_contract.h"

namespace recmill::reader {
namespace {

using ::testing::HasSubstr;

// Criteo rows with missing cells and negative integers, all different.
std::string criteo_text(uint64_t seed, int64_t rows, int digits = 8) {
  const Random random(seed, Purpose::test);
  std::string text;
  for (int64_t row = 0; row < rows; ++row) {
    text += std::to_string(random.bits(row, 0) & 1);
    for (int c = 0; c < 13; ++c) {
      const uint32_t bits = random.bits(row, 1 + c);
      text += '\t';
      if (bits % 5 != 0) text += std::to_string(static_cast<int>(bits % 3000) - 3);
    }
    for (int c = 0; c < 26; ++c) {
      const uint64_t bits = random.bits64(row, 100 + c);
      text += '\t';
      if (bits % 7 == 0) continue;
      for (int d = 0; d < digits; ++d) text += "0123456789abcdef"[(bits >> (4 * d)) & 15];
    }
    text += '\n';
  }
  return text;
}

// Files of the contract's cases, made once.
const std::string& folder() {
  static const TemporaryFolder folder;
  static const bool made = [] {
    Files& files = posix_files();
    for (int part = 0; part < 3; ++part) {
      const std::string path = folder.path() + "/part-" + std::to_string(part) + ".tsv";
      EXPECT_TRUE(write_atomically(files, path, criteo_text(part, 300 + 97 * part)).ok());
    }
    return true;
  }();
  EXPECT_TRUE(made);
  return folder.path();
}

DataOptions criteo_options() {
  DataOptions options;
  options.path = folder();
  options.cache = folder() + "/cache";
  options.train = {"part-*.tsv"};
  return options;
}

DataOptions with_split(SplitKind kind) {
  DataOptions options = criteo_options();
  options.split.by = kind;
  options.split.eval_fraction = 0.3;
  options.split.column = "C1";
  return options;
}

INSTANTIATE_TEST_SUITE_P(Text, ReaderContract,
                         ::testing::Values(ReaderCase{"criteo", criteo_options()},
                                           ReaderCase{"criteo_fraction",
                                                      with_split(SplitKind::fraction)},
                                           ReaderCase{"criteo_hash", with_split(SplitKind::hash)}),
                         ReaderCase::name_of);

}  // namespace
}  // namespace recmill::reader
