// SPDX-License-Identifier: Apache-2.0
#include "kernels/codegen/testing/gpu_samples.h"

#include "kernels/row_storage.h"

namespace recmill::kernels::codegen {
namespace {

PoolFunction function(const std::string& schedule, int64_t dim,
                      RowPrecision precision = RowPrecision::float32,
                      Pooling pooling = Pooling::sum, bool weighted = false) {
  PoolFunction made{*parse_schedule(schedule), dim};
  made.precision = precision;
  made.pooling = pooling;
  made.weighted = weighted;
  made.row_bytes = dim * bytes_of(precision) + 16;  // a row and the state of its optimizer
  return made;
}

constexpr auto kHalf = RowPrecision::float16, kBrain = RowPrecision::bfloat16,
               kSingle = RowPrecision::float32;

std::vector<GpuSample> make_samples() {
  std::vector<GpuSample> samples;
  samples.push_back({"one_each",
                     {function("one_each unroll=1", 16), function("one_each unroll=5", 5),
                      function("one_each unroll=4", 64, kHalf, Pooling::mean, true)},
                     {},
                     -1});
  samples.push_back(
      {"rows_copied",
       {function("rows_copied lanes=4 at_once=4 threads=8", 16, kSingle, Pooling::none),
        function("rows_copied lanes=1 at_once=2 threads=4", 7, kBrain, Pooling::none, true)},
       {}});
  samples.push_back(
      {"threads_per_sample",
       {function("threads_per_sample lanes=1 at_once=1 threads=4", 3),
        function("threads_per_sample lanes=4 at_once=8 threads=16", 128),
        function("threads_per_sample lanes=2 at_once=4 threads=32", 100, kHalf, Pooling::mean),
        function("threads_per_sample lanes=4 at_once=2 threads=128", 1024, kBrain, Pooling::sum,
                 true)},
       {.blocks = 4},
       150});
  samples.push_back(
      {"samples_per_block",
       {function("samples_per_block lanes=1 at_once=2 threads=4 samples=64", 5),
        function("samples_per_block lanes=4 at_once=4 threads=4 samples=8", 16, kSingle,
                 Pooling::mean, true),
        function("samples_per_block lanes=2 at_once=1 threads=16 samples=4", 64, kBrain)},
       {},
       300});
  samples.push_back({"split_samples_per_block",
                     {function("split_samples_per_block lanes=1 at_once=2 threads=4 samples=8", 5),
                      function("split_samples_per_block lanes=4 at_once=4 threads=4 samples=16", 32,
                               kHalf, Pooling::mean, true)},
                     {},
                     100});
  samples.push_back({"reduce_by_key",
                     {function("reduce_by_key items=1 columns=1", 4),
                      function("reduce_by_key items=4 columns=4", 8, kHalf, Pooling::mean),
                      function("reduce_by_key items=8 columns=3", 9, kBrain, Pooling::sum, true)},
                     {},
                     20});
  samples.push_back({"blocks_per_sample",
                     {function("blocks_per_sample lanes=1 at_once=4 threads=8", 6),
                      function("blocks_per_sample lanes=4 at_once=2 threads=32", 128, kBrain,
                               Pooling::mean, true)},
                     {},
                     5000});
  GpuSample pointers = samples[3];
  pointers.name = "pointers";
  pointers.options.dispatch = Dispatch::pointers;
  samples.push_back(std::move(pointers));
  GpuSample listed = samples[5];  // which reads shared memory last, and one that writes it first
  listed.name = "listed";
  listed.functions[2] = samples[4].functions[1];
  listed.options.listed = true;
  samples.push_back(std::move(listed));
  GpuSample timed = samples[2];
  timed.name = "timed";
  timed.options.timed = true;
  samples.push_back(std::move(timed));
  GpuSample two_memories{
      "two_memories",
      {function("threads_per_sample lanes=4 at_once=4 threads=4", 16),
       function("rows_copied lanes=1 at_once=2 threads=4", 7, kBrain, Pooling::none, true),
       function("threads_per_sample lanes=1 at_once=2 threads=8", 9, kHalf, Pooling::mean)},
      {},
      70};
  for (PoolFunction& of : two_memories.functions) of.two_memories = true;
  two_memories.functions.push_back(function("threads_per_sample lanes=1 at_once=1 threads=4", 3));
  samples.push_back(std::move(two_memories));
  for (GpuSample& sample : samples) sample.options.made_by = "the tests";
  return samples;
}

}  // namespace

const std::vector<GpuSample>& gpu_samples() {
  static const std::vector<GpuSample> samples = make_samples();
  return samples;
}

GpuPoolSource source_of(const GpuSample& sample) {
  auto sources = gpu_pool_sources(sample.functions, sample.options);
  RECMILL_CHECK(sources.ok(), sources.status().message());
  RECMILL_CHECK(sources->size() == 1);
  return std::move(sources->front());
}

}  // namespace recmill::kernels::codegen
