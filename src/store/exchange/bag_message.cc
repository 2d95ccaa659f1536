// SPDX-License-Identifier: Apache-2.0
#include "store/exchange/bag_message.h"

#include <cstring>

#include "base/status.h"

namespace recmill::store {
namespace {

constexpr int64_t kWord = sizeof(int64_t);

/// Words of so many weights.
int64_t words_of(int64_t weights) {
  constexpr int64_t kOfAWord = kWord / static_cast<int64_t>(sizeof(float));
  return (weights + kOfAWord - 1) / kOfAWord;
}

}  // namespace

void append_bags(const JaggedView& bags, std::vector<int64_t>& message) {
  const int64_t lookups = bags.lookups();
  message.insert(message.end(), {lookups, bags.one_each, bags.weights != nullptr});
  const int64_t first = bags.samples == 0 ? 0 : bags.offsets[0];
  for (int64_t sample = 0; sample < bags.samples && !bags.one_each; ++sample)
    message.push_back(bags.offsets[sample + 1] - first);
  message.insert(message.end(), bags.rows + first, bags.rows + first + lookups);
  if (bags.weights == nullptr || lookups == 0) return;
  const size_t at = message.size();
  message.resize(at + words_of(lookups), 0);
  std::memcpy(&message[at], bags.weights + first, lookups * sizeof(float));
}

template <class T>
void BagReader::read(int64_t count, std::vector<T>& onto) {
  const size_t bytes = count * sizeof(T), before = onto.size();
  RECMILL_CHECK(count >= 0 && bytes <= rest_.size(), "a message that ends too soon");
  onto.resize(before + count);
  if (bytes > 0) std::memcpy(&onto[before], rest_.data(), bytes);
  rest_ = rest_.subspan(bytes);
}

void BagReader::take(int64_t samples, SparseFeature& onto) {
  std::vector<int64_t> head;  // lookups, one_each, has weights
  read(3, head);
  const int64_t lookups = head[0];
  const int64_t before = onto.offsets.back();
  if (samples > 0) onto.one_each = (onto.offsets.size() == 1 || onto.one_each) && head[1] != 0;
  const size_t ends = onto.offsets.size();
  if (head[1] != 0) {
    for (int64_t sample = 0; sample < samples; ++sample) onto.offsets.push_back(sample + 1);
  } else {
    read(samples, onto.offsets);
  }
  for (size_t i = ends; i < onto.offsets.size(); ++i) onto.offsets[i] += before;
  read(lookups, onto.rows);
  RECMILL_CHECK(onto.offsets.back() == std::ssize(onto.rows), "bags that do not fit their lookups");
  if (head[2] == 0) {
    if (!onto.weights.empty()) onto.weights.resize(onto.rows.size(), 1.0f);
    return;
  }
  onto.weights.resize(before, 1.0f);
  read(lookups, onto.weights);
  const int64_t gap = words_of(lookups) * kWord - lookups * static_cast<int64_t>(sizeof(float));
  rest_ = rest_.subspan(gap);
}

}  // namespace recmill::store
