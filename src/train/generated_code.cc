// SPDX-License-Identifier: Apache-2.0
#include "train/generated_code.h"

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "device/processor.h"
#include "kernels/codegen/user_templates.h"
#include "kernels/tune/tuner.h"

namespace recmill::train {
namespace {

using kernels::codegen::Dispatch;
using kernels::codegen::LibraryCache;

/// What a compiler makes of "this machine": two processors of one name may differ in instructions.
std::string processor_identity(Files& files) {
  std::string identity = this_processor().name;
  const auto text = read_text(files, "/proc/cpuinfo");
  const size_t flags = text.ok() ? text->find("\nflags") : std::string::npos;
  if (flags != std::string::npos)
    identity += text->substr(flags + 1, text->find('\n', flags + 1) - flags - 1);
  return identity;
}

Result<LibraryCache> library_cache(const KernelOptions& options, Files& files) {
  const std::string& folder = options.cache.empty() ? options.users.cache : options.cache;
  const std::string& compiler =
      options.compiler.empty() ? options.users.compiler : options.compiler;
  if (folder.empty())
    return Status::BadRequest("kernels.cache: must name a folder; the environment has none");
  kernels::codegen::LibraryCacheOptions made;
  made.folder = folder;
  made.compiler.program = compiler;
  made.processor = processor_identity(files);
  return LibraryCache(std::move(made), files);
}

}  // namespace

Result<std::span<const kernels::PoolTemplate>> pool_templates_of(const KernelOptions& options,
                                                                 Files& files) {
  if (options.templates.empty()) return kernels::pool_templates();
  RECMILL_ASSIGN_OR_RETURN(LibraryCache cache, library_cache(options, files));
  return kernels::codegen::pool_templates_with(options.templates, cache, files);
}

Result<std::shared_ptr<const kernels::codegen::GeneratedPool>> generated_pool(
    const ResolvedRun& run, std::span<const kernels::codegen::GeneratedFeature> features,
    kernels::codegen::Dispatch dispatch, Files& files) {
  RECMILL_ASSIGN_OR_RETURN(LibraryCache cache, library_cache(run.options.kernels, files));
  const kernels::codegen::PoolSourceOptions options{.made_by = "Recmill for " + run.options.name,
                                                    .dispatch = dispatch,
                                                    .lanes = kernels::codegen::vector_lanes()};
  return kernels::codegen::GeneratedPool::make(features, options, cache);
}

Result<kernels::tune::CodeTimes> measure_code(const ResolvedRun& run,
                                              kernels::tune::PoolSubject& subject,
                                              const kernels::tune::Choice& choice, Pool& pool,
                                              Files& files) {
  constexpr int kRounds = 5;
  RECMILL_RETURN_IF_ERROR(subject.fuse(choice));
  std::vector<kernels::codegen::GeneratedFeature> features;
  for (size_t f = 0; f < subject.pooled().size(); ++f) {
    const auto& [rows, pooling, weighted] = subject.pooled()[f];
    features.push_back({rows, pooling, weighted, &subject.fused().kernels()[f]});
  }
  std::vector<std::shared_ptr<const kernels::PoolCode>> ways = {nullptr};
  for (const Dispatch dispatch : {Dispatch::branches, Dispatch::pointers}) {
    RECMILL_ASSIGN_OR_RETURN(auto code, generated_pool(run, features, dispatch, files));
    ways.push_back(std::move(code));
  }
  const SteadyClock clock;
  std::array<std::vector<double>, 3> nanoseconds;
  Status status;
  for (int round = 0; round < kRounds && status.ok(); ++round) {
    for (size_t w = 0; w < ways.size() && status.ok(); ++w) {
      subject.use(ways[w]);
      const auto seconds = kernels::tune::measure_fused(subject, choice, 1, clock, pool);
      status = seconds.status();
      if (seconds.ok()) nanoseconds[w].push_back(*seconds * 1e9);
    }
  }
  subject.use(nullptr);
  RECMILL_RETURN_IF_ERROR(status);
  for (auto& times : nanoseconds) std::sort(times.begin(), times.end());
  constexpr size_t kMiddle = kRounds / 2;
  return kernels::tune::CodeTimes{nanoseconds[0][kMiddle], nanoseconds[1][kMiddle],
                                  nanoseconds[2][kMiddle]};
}

}  // namespace recmill::train
