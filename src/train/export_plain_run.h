// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/files.h"
#include "base/status.h"
#include "run/resolved_run.h"

namespace recmill::train {

/// Writes into `folder` (layout: bench/rivals/pytorch_dlrm.py) what a plain PyTorch model needs to
/// repeat the run: initial parameters and rows, every training batch in order with its learning
/// rates, and the batches of the evaluation that ends training. Trains nothing. `folder` is there
/// when it is whole, in place of an earlier export and of nothing else. A run that the plain script
/// cannot repeat is a bad_request that names the key.
Status export_plain_run(const ResolvedRun& run, Files& files, const std::string& folder);

}  // namespace recmill::train
