// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/status.h"
#include "model/model.h"
#include "model/model_options.h"

namespace recmill::model {

/// The model of `options` over `spec`, which is the result of with_model_tables(). `seed` is the
/// run's; dropout draws from it. Errors are those of check_options(), and a kind that this build
/// lacks (all but dlrm need LibTorch).
Result<std::unique_ptr<Model>> make_model(const ModelOptions& options, const ModelSpec& spec,
                                          uint64_t seed);

/// Tells Torch to stay on the calling thread; every thread that runs a model calls it first
/// (ThreadPool::set_thread_start). Without LibTorch it does nothing.
void use_one_torch_thread();

}  // namespace recmill::model
