// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/json/json.h"
#include "preprocess/ops/op.h"
#include "preprocess/ops/parameters.h"

namespace recmill::preprocess {
namespace {

/// Direct: the id is the row. An id outside [0, rows), read as a signed integer, is refused
/// (error), takes the nearest row (clamp), or is left out (drop), and counted.
/// Parameters: rows, out_of_range.
class Direct final : public IdOp {
 public:
  using OutOfRange = formulas::Direct::OutOfRange;
  Direct(int64_t rows, OutOfRange out_of_range)
      : formula_{static_cast<uint64_t>(rows), out_of_range} {}
  uint64_t plain(uint64_t id, IdCounts& counts) const override { return formula_(id, counts); }
  void run(std::span<const uint64_t> in, std::span<uint64_t> out, IdCounts& counts) const override;
  std::optional<GpuOp> on_gpu() const override {
    return GpuOp{.kind = GpuOpKind::direct, .direct = formula_};
  }

 private:
  const formulas::Direct formula_;
};

}  // namespace

void Direct::run(std::span<const uint64_t> in, std::span<uint64_t> out, IdCounts& counts) const {
  uint64_t largest = 0;
  for (const uint64_t id : in) largest = std::max(largest, id);
  if (largest < formula_.rows) {
    if (in.data() != out.data()) std::copy(in.begin(), in.end(), out.begin());
    return;
  }
  for (size_t i = 0; i < in.size(); ++i) out[i] = formula_(in[i], counts);
}

Result<std::unique_ptr<Op>> make_direct(const Json& parameters) {
  RECMILL_ASSIGN_OR_RETURN(const int64_t rows, count_parameter(parameters, "rows"));
  const Json policy = parameters.value("out_of_range", Json());
  for (const auto& [name, value] : {std::pair{"error", Direct::OutOfRange::error},
                                    std::pair{"clamp", Direct::OutOfRange::clamp},
                                    std::pair{"drop", Direct::OutOfRange::drop}}) {
    if (policy == name) return std::unique_ptr<Op>(new Direct(rows, value));
  }
  return wrong_parameter("out_of_range", "error, clamp or drop");
}

}  // namespace recmill::preprocess
