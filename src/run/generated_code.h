// SPDX-License-Identifier: Apache-2.0
// What a run compiles: its fused kernels' generated code, and templates of the user's own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "base/files.h"
#include "base/status.h"
#include "kernels/codegen/generated_pool.h"
#include "kernels/tune/pool_subject.h"
#include "kernels/tune/record.h"
#include "run/resolved_run.h"

namespace recmill::train {

/// The run's compiled code: [kernels] cache and compiler. Fails where no folder is named.
Result<kernels::codegen::LibraryCache> library_cache(const KernelOptions& options, Files& files);

/// Recmill's pooling templates and those of [kernels] templates.
Result<std::span<const kernels::PoolTemplate>> pool_templates_of(const KernelOptions& options,
                                                                 Files& files);

/// Generates, compiles and loads code for the features, as [kernels] says.
Result<std::shared_ptr<const kernels::codegen::GeneratedPool>> generated_pool(
    const ResolvedRun& run, std::span<const kernels::codegen::GeneratedFeature> features,
    kernels::codegen::Dispatch dispatch, Files& files);

/// A batch with the chosen schedules by the templates' bodies and by generated code of both
/// dispatches, fused, in alternation. Compilation apart it ends by the clock at `until_ns`, with
/// three rounds at least; with an error where `stop` is set.
Result<kernels::tune::CodeTimes> measure_code(const ResolvedRun& run,
                                              kernels::tune::PoolSubject& subject,
                                              const kernels::tune::Choice& choice, int64_t until_ns,
                                              ThreadPool& pool, Files& files,
                                              const std::atomic<bool>& stop);

}  // namespace recmill::train
