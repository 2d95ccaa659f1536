// SPDX-License-Identifier: Apache-2.0
#include "kernels/row_update/templates.h"

#include <algorithm>

#include "base/status.h"
#include "kernels/row_update/dense_sums.h"
#include "kernels/row_update/placed_sums.h"

namespace recmill::kernels {
namespace {

/// Of the folds that a table's update goes through: what a core's own cache holds beside the rest.
constexpr int64_t kDenseBytes = 1 << 20;
constexpr int64_t kPlacedRows = 1 << 16;

template <class Sums>
RowUpdateTemplate from_bags() {
  return {Sums::spec(), [] { return std::make_unique<Sums>(); }};
}

RowUpdateTemplate distinct_rows() {
  TemplateSpec spec;
  spec.name = "distinct_rows";
  spec.meaning = "distinct rows are found ahead of training; each sums its lookups in registers";
  spec.tunables = {{"block", "rows summed before they are applied", {16, 4, 8, 32, 64}},
                   {"ahead", "lookups that gradient rows are fetched ahead", {16, 8, 32}}};
  spec.valid = [](const FeatureShape&, ParameterValues, const DeviceSpec& device) {
    return device.kind == DeviceKind::cpu;
  };
  spec.scratch_bytes = [](const FeatureShape& shape, ParameterValues values) {
    return values[0] * shape.dim * 4;
  };
  return {std::move(spec), nullptr};
}

RowUpdateKernel default_of(const std::string& schedule) {
  auto kernel = row_update_kernel(*parse_schedule(schedule));
  RECMILL_CHECK(kernel.ok(), kernel.status().message());
  return *std::move(kernel);
}

}  // namespace

std::span<const RowUpdateTemplate> row_update_templates() {
  static const std::vector<RowUpdateTemplate> templates{distinct_rows(), from_bags<DenseSums>(),
                                                        from_bags<PlacedSums>()};
  return templates;
}

Result<RowUpdateKernel> row_update_kernel(const Schedule& schedule,
                                          std::span<const RowUpdateTemplate> templates) {
  for (const RowUpdateTemplate& of : templates) {
    if (of.spec.name != schedule.of) continue;
    RECMILL_ASSIGN_OR_RETURN(auto values, values_of(schedule, of.spec));
    return RowUpdateKernel{&of, std::move(values)};
  }
  return Status::BadRequest("schedule '" + schedule.name() + "': row_update has no template '" +
                            schedule.of + "'");
}

Schedule schedule_of(const RowUpdateKernel& kernel) {
  Schedule schedule{kernel.of->spec.name, {}};
  for (size_t i = 0; i < kernel.values.size(); ++i)
    schedule.parameters.push_back({kernel.of->spec.tunables[i].name, kernel.values[i]});
  return schedule;
}

const RowUpdateKernel& default_row_update(const RowUpdateWork& work) {
  static const RowUpdateKernel distinct = default_of("distinct_rows block=16 ahead=16");
  static const RowUpdateKernel dense = default_of("dense_sums leaves=8");
  static const RowUpdateKernel by_count = default_of("placed_sums by_count=1");
  static const RowUpdateKernel as_listed = default_of("placed_sums by_count=0");
  const auto [rows, dim, lookups, slices] = work;
  if (2 * lookups >= rows) {
    if (rows * dim * 4 * std::min(slices, 8) <= kDenseBytes) return dense;
    if (rows <= kPlacedRows) return lookups <= 8 * rows ? by_count : as_listed;
  }
  return dim <= 8 && rows <= std::min(kPlacedRows, 16 * lookups) ? as_listed : distinct;
}

std::unique_ptr<RowSums> RowSumsStock::take(const RowUpdateTemplate& of) {
  {
    std::lock_guard lock(mutex_);
    const auto found = std::find_if(resting_.rbegin(), resting_.rend(),
                                    [&](const Resting& resting) { return resting.of == &of; });
    if (found != resting_.rend()) {
      auto sums = std::move(found->sums);
      resting_.erase(std::next(found).base());
      return sums;
    }
  }
  return of.make_sums();
}

void RowSumsStock::give_back(const RowUpdateTemplate& of, std::unique_ptr<RowSums> sums) {
  std::lock_guard lock(mutex_);
  resting_.push_back({&of, std::move(sums)});
}

}  // namespace recmill::kernels
