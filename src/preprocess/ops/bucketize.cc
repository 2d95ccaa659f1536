// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/json/json.h"
#include "preprocess/ops/op.h"
#include "preprocess/ops/parameters.h"

namespace recmill::preprocess {
namespace {

/// Bucketize: the number of borders below x: row = |{b : b < x}|, in [0, borders]; NaN takes row 0.
/// Parameter: borders, ascending; compared in float32.
class Bucketize final : public BucketOp {
 public:
  explicit Bucketize(std::vector<float> borders) : borders_(std::move(borders)) {}
  uint64_t plain(float x) const override;
  void run(std::span<const float> in, std::span<uint64_t> out) const override;
  std::optional<GpuOp> on_gpu() const override {
    return GpuOp{.kind = GpuOpKind::bucketize, .bucketize = formula()};
  }

 private:
  formulas::Bucketize formula() const {
    return {borders_.data(), static_cast<int64_t>(borders_.size())};
  }
  const std::vector<float> borders_;
};

}  // namespace

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
