// SPDX-License-Identifier: Apache-2.0
// The section [gpu].
#pragma once

#include "schema/options.h"

namespace recmill::train {

/// What brings rows from one rank's GPU to another's.
enum class GpuExchangeKind { automatic, host, windows };

struct GpuRunOptions {
  bool synchronous = false;
  bool check_nan = false;
  double kernel_seconds = 60.0;
  bool preprocess = false;
  GpuExchangeKind exchange = GpuExchangeKind::automatic;
};
template <typename Visitor>
void describe(Visitor& v, GpuRunOptions& o) {
  v("synchronous", o.synchronous,
    "each kernel ends before the next is launched, so that an error names the one that failed; "
    "slow");
  v("check_nan", o.check_nan,
    "looked-up rows are read back after each launch: a NaN ends the run and names the kernel, the "
    "feature and the row; slow");
  v("kernel_seconds", o.kernel_seconds,
    "time that a stream's work may take before the run ends with an error that names its last "
    "kernel");
  v("preprocess", o.preprocess,
    "preprocessing runs on the GPU, all but dictionaries; with device = \"cpu\" an error");
  v("exchange", o.exchange,
    "what brings rows from one rank's GPU to another's: auto (NCCL where train.transport is nccl, "
    "else as host), host (through the hosts' memory), windows (straight into memory that the "
    "processes of one host open of each other; several ranks may have the same GPU)");
}

}  // namespace recmill::train

namespace recmill {
template <>
struct EnumNames<train::GpuExchangeKind> {
  static constexpr std::array names{
      std::pair{train::GpuExchangeKind::automatic, std::string_view{"auto"}},
      std::pair{train::GpuExchangeKind::host, std::string_view{"host"}},
      std::pair{train::GpuExchangeKind::windows, std::string_view{"windows"}}};
};
}  // namespace recmill
