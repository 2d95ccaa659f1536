// SPDX-License-Identifier: Apache-2.0
#include "run/generated_code.h"

#include <algorithm>

#include "base/clock.h"
#include "device/processor.h"
#include "kernels/codegen/user_templates.h"
#include "kernels/tune/race.h"
#include "kernels/tune/tuner.h"

namespace recmill::train {
namespace {

using kernels::codegen::Dispatch;
using kernels::codegen::LibraryCache;

/// The race of prebuilt and generated code: so many rounds, or as many as there are in that time.
constexpr int64_t kRounds = 15;
constexpr double kSeconds = 5.0;

/// What a compiler makes of "this machine": two processors of one name may differ in instructions.
std::string processor_identity(Files& files) {
  std::string identity = this_processor().name;
  const auto text = read_text(files, "/proc/cpuinfo");
  const size_t flags = text.ok() ? text->find("\nflags") : std::string::npos;
  if (flags != std::string::npos)
    identity += text->substr(flags + 1, text->find('\n', flags + 1) - flags - 1);
  return identity;
}

}  // namespace

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
  const kernels::codegen::PoolSourceOptions options{
      .made_by = "Recmill", .dispatch = dispatch, .lanes = kernels::codegen::vector_lanes()};
  return kernels::codegen::GeneratedPool::make(features, options, cache);
}

Result<kernels::tune::CodeTimes> measure_code(const ResolvedRun& run,
                                              kernels::tune::PoolSubject& subject,
                                              const kernels::tune::Choice& choice, int64_t until_ns,
                                              ThreadPool& pool, Files& files,
                                              const std::atomic<bool>& stop) {
  RECMILL_RETURN_IF_ERROR(subject.fuse(choice).status());
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
  std::vector<kernels::tune::Entrant> entrants;
  entrants.reserve(ways.size());
  for (const auto& way : ways) {
    entrants.emplace_back([&] {
      subject.use(way);
      return kernels::tune::measure_fused(subject, choice, 1, clock, pool);
    });
  }
  const int64_t until = std::min(until_ns, clock.now_ns() + static_cast<int64_t>(kSeconds * 1e9));
  const auto seconds =
      kernels::tune::race(entrants, {.rounds = kRounds, .until_ns = until}, clock, stop);
  subject.use(nullptr);
  RECMILL_RETURN_IF_ERROR(seconds.status());
  return kernels::tune::CodeTimes{(*seconds)[0] * 1e9, (*seconds)[1] * 1e9, (*seconds)[2] * 1e9};
}

}  // namespace recmill::train
