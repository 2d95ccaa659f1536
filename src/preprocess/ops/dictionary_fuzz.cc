// SPDX-License-Identifier: Apache-2.0
// A dictionary's ids as a checkpoint has them: those taken are found again, each at its own row.
#include <cstring>

#include "base/testing/fuzz.h"
#include "preprocess/ops/categorify.h"

namespace recmill {
namespace {

constexpr int64_t kRows = 100;

std::string bytes_of(const std::vector<uint64_t>& ids) {
  return {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(uint64_t)};
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  return {bytes_of({0, 1, ~uint64_t{0}}), bytes_of({7, 7}), bytes_of({1024, 2048, 4096, 8192})};
}

void fuzz::feed(const std::string& bytes) {
  using preprocess::Dictionary;
  std::vector<uint64_t> ids(bytes.size() / sizeof(uint64_t));
  if (!ids.empty()) std::memcpy(ids.data(), bytes.data(), ids.size() * sizeof(uint64_t));
  Dictionary dictionary(kRows, Dictionary::WhenFull::clamp);
  if (!dictionary.restore(ids).ok()) return;
  preprocess::IdCounts counts;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto row = static_cast<int64_t>(i) + 1;
    RECMILL_CHECK(dictionary.find(ids[i], row, counts) == static_cast<uint64_t>(row));
    RECMILL_CHECK(dictionary.find(ids[i], row - 1, counts) == 0);
    RECMILL_CHECK(dictionary.add(ids[i], counts) == static_cast<uint64_t>(row));
  }
  RECMILL_CHECK(std::ranges::equal(dictionary.ids(), ids));
}

}  // namespace recmill
