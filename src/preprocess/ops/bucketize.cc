// SPDX-License-Identifier: Apache-2.0
#include "preprocess/ops/bucketize.h"

#include <algorithm>

#include "preprocess/ops/parameters.h"

namespace recmill::preprocess {

uint64_t Bucketize::plain(float x) const {
  uint64_t below = 0;
  for (const float border : borders_) below += border < x ? 1 : 0;
  return below;
}

void Bucketize::run(std::span<const float> in, std::span<uint64_t> out) const {
  const auto row = formula();
  for (size_t i = 0; i < in.size(); ++i) out[i] = row(in[i]);
}

Result<std::unique_ptr<Op>> make_bucketize(const Json& parameters) {
  const Json list = parameters.value("borders", Json());
  if (!list.is_array()) return wrong_parameter("borders", "a list of numbers");
  std::vector<float> borders;
  for (const Json& border : list) {
    if (!border.is_number()) return wrong_parameter("borders", "a list of numbers");
    borders.push_back(border.get<float>());
  }
  if (!std::is_sorted(borders.begin(), borders.end())) {
    return wrong_parameter("borders", "ascending");
  }
  return std::unique_ptr<Op>(new Bucketize(std::move(borders)));
}

}  // namespace recmill::preprocess
