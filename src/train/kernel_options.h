// SPDX-License-Identifier: Apache-2.0
// The section [kernels].
#pragma once

#include <string>

#include "schema/options.h"

namespace recmill::train {

/// Every feature the default schedule, or the one that `recmill tune` chose for it.
enum class KernelMode { standard, tuned };

/// What to do in tuned mode without a record that is good for this run.
enum class OnMissingSchedule { error, standard };

struct KernelOptions {
  KernelMode mode = KernelMode::standard;
  std::string record;
  OnMissingSchedule on_missing_schedule = OnMissingSchedule::error;
};
template <typename Visitor>
void describe(Visitor& v, KernelOptions& o) {
  v("mode", o.mode, "schedules of embedding kernels: default, or tuned (as `recmill tune` chose)");
  v("record", o.record, "file of the tuning record; empty: tuned/NAME.json");
  v("on_missing_schedule", o.on_missing_schedule,
    "mode = \"tuned\" without a record that is good for this run: error, or default (and a "
    "warning)");
}

}  // namespace recmill::train

namespace recmill {
template <>
struct EnumNames<train::KernelMode> {
  static constexpr std::array names{
      std::pair{train::KernelMode::standard, std::string_view{"default"}},
      std::pair{train::KernelMode::tuned, std::string_view{"tuned"}}};
};
template <>
struct EnumNames<train::OnMissingSchedule> {
  static constexpr std::array names{
      std::pair{train::OnMissingSchedule::error, std::string_view{"error"}},
      std::pair{train::OnMissingSchedule::standard, std::string_view{"default"}}};
};
}  // namespace recmill
