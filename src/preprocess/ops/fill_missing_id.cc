// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/json/json.h"
#include "preprocess/ops/op.h"
#include "preprocess/ops/parameters.h"

namespace recmill::preprocess {
namespace {

/// FillNull for ids: an empty bag (a missing cell) becomes the bag {id} of weight 1; others stay.
/// Parameter: id.
class FillMissingId final : public BagOp {
 public:
  explicit FillMissingId(uint64_t id) : formula_{id} {}
  int64_t length(int64_t before) const override { return formula_.length(before); }
  Bag plain(const Bag& bag) const override {
    return bag.ids.empty() ? Bag{{formula_.id}, {1.0f}} : bag;
  }
  bool keeps_single() const override { return true; }
  void run(const BagView& in, const int64_t* out_offsets, uint64_t* out,
           float* weights) const override;
  std::optional<GpuOp> on_gpu() const override {
    return GpuOp{.kind = GpuOpKind::fill_missing_id, .fill_missing_id = formula_};
  }

 private:
  const formulas::FillMissingId formula_;
};

/// Bags of at most one id, without branches: which cells are missing cannot be predicted.
void fill_singles(const BagView& in, uint64_t id, uint64_t* out) {
  const int64_t end = in.offsets[in.samples];
  for (int64_t s = 0; s < in.samples; ++s) {
    const int64_t from = in.offsets[s];
    // An empty bag reads the id that follows, or one before the end, and does not use it.
    const uint64_t next = in.ids[from - (from == end)];
    const uint64_t missing = uint64_t{0} - static_cast<uint64_t>(in.offsets[s + 1] == from);
    out[s] = (next & ~missing) | (id & missing);
  }
}

bool only_singles(const BagView& in) {
  int64_t others = 0;
  for (int64_t s = 0; s < in.samples; ++s) others |= in.offsets[s + 1] - in.offsets[s];
  return (others & ~int64_t{1}) == 0 && in.offsets[in.samples] > 0;
}

}  // namespace

void FillMissingId::run(const BagView& in, const int64_t* out_offsets, uint64_t* out,
                        float* weights) const {
  if (weights == nullptr && only_singles(in)) {
    fill_singles(in, formula_.id, out);
    return;
  }
  for (int64_t s = 0; s < in.samples; ++s) {
    const int64_t from = in.offsets[s];
    const int64_t size = in.offsets[s + 1] - from;
    const int64_t to = out_offsets[s] - out_offsets[0];
    if (size == 1) {
      out[to] = in.ids[from];
    } else if (size == 0) {
      out[to] = formula_.id;
    } else {
      std::copy_n(in.ids + from, size, out + to);
    }
    if (weights == nullptr) continue;
    if (size == 0 || in.weights == nullptr) {
      std::fill_n(weights + to, length(size), 1.0f);
    } else {
      std::copy_n(in.weights + from, size, weights + to);
    }
  }
}

Result<std::unique_ptr<Op>> make_fill_missing_id(const Json& parameters) {
  RECMILL_ASSIGN_OR_RETURN(const uint64_t id, id_parameter(parameters, "id"));
  return std::unique_ptr<Op>(new FillMissingId(id));
}

}  // namespace recmill::preprocess
