// SPDX-License-Identifier: Apache-2.0
// The section [gpu].
#pragma once

#include "schema/options.h"

namespace recmill::train {

struct GpuRunOptions {
  bool synchronous = false;
  bool check_nan = false;
  double kernel_seconds = 60.0;
  bool preprocess = false;
  bool graphs = false;
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
  v("graphs", o.graphs,
    "layers on the GPU are launched as two graphs a batch, from the third batch of a size on: for "
    "small batches, whose kernels take longer to be launched than to run. Those of models that "
    "read "
    "histories or ids, or draw random numbers, are launched one by one; an error where layers are "
    "the CPU's (train.deterministic = true) and with gpu.synchronous");
}

}  // namespace recmill::train
