// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/json/json.h"
#include "preprocess/ops/op.h"
#include "preprocess/ops/parameters.h"

namespace recmill::preprocess {
namespace {

/// FirstX: the first min(x, length) ids of a bag, with their weights. Parameter: x.
class FirstX final : public BagOp {
 public:
  explicit FirstX(int64_t x) : formula_{x} {}
  int64_t length(int64_t before) const override { return formula_.length(before); }
  Bag plain(const Bag& bag) const override;
  bool keeps_single() const override { return true; }
  void run(const BagView& in, const int64_t* out_offsets, uint64_t* out,
           float* weights) const override;
  std::optional<GpuOp> on_gpu() const override {
    return GpuOp{.kind = GpuOpKind::first_x, .first_x = formula_};
  }

 private:
  const formulas::FirstX formula_;
};

}  // namespace

Bag FirstX::plain(const Bag& bag) const {
  Bag out = bag;
  const auto kept = static_cast<size_t>(length(static_cast<int64_t>(bag.ids.size())));
  out.ids.resize(kept);
  out.weights.resize(kept);
  return out;
}

void FirstX::run(const BagView& in, const int64_t* out_offsets, uint64_t* out,
                 float* weights) const {
  for (int64_t s = 0; s < in.samples; ++s) {
    const int64_t kept = length(in.offsets[s + 1] - in.offsets[s]);
    const int64_t to = out_offsets[s] - out_offsets[0];
    std::copy_n(in.ids + in.offsets[s], kept, out + to);
    if (weights == nullptr) continue;
    if (in.weights == nullptr) {
      std::fill_n(weights + to, kept, 1.0f);
    } else {
      std::copy_n(in.weights + in.offsets[s], kept, weights + to);
    }
  }
}

Result<std::unique_ptr<Op>> make_first_x(const Json& parameters) {
  RECMILL_ASSIGN_OR_RETURN(const int64_t x, count_parameter(parameters, "x"));
  return std::unique_ptr<Op>(new FirstX(x));
}

}  // namespace recmill::preprocess
