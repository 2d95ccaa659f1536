// SPDX-License-Identifier: Apache-2.0
// Kernels for GPUs from a schedule to an answer: generated, compiled when the program runs, and
// launched.
#include "kernels/codegen/gpu/gpu_code.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "base/key_text.h"
#include "base/random.h"
#include "base/temporary_folder.h"
#include "kernels/codegen/gpu/compiled_gpu_pool.h"
#include "kernels/codegen/gpu/gpu_distinct_source.h"
#include "kernels/codegen/gpu/gpu_pool_source.h"
#include "kernels/codegen/testing/gpu_samples.h"
#include "kernels/codegen/testing/test_code.h"
#include "kernels/embedding_pool/embedding_pool.h"
#include "kernels/testing/random_bags.h"

namespace recmill::kernels::codegen {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRows = 61;
constexpr int64_t kBefore = 3;  // samples that are not looked up

class GpuCodeTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  ThreadPool pool_{2};
};

/// One feature on the host, and what the reference makes of it.
struct HostFeature {
  PoolFunction of;
  SparseFeature bags;
  std::vector<float> table, expected;

  HostFeature(const PoolFunction& function, int64_t samples, int64_t longest, uint64_t seed)
      : of(function),
        bags(random_bags({kBefore + samples, longest, kRows, function.weighted}, seed)),
        table(random_floats(kRows * function.dim, seed)) {
    const JaggedView view = this->view();
    expected.resize((of.pooling == Pooling::none ? view.lookups() : samples) * of.dim);
    embedding_pool_reference(
        {view, RowStorage::of(table.data(), kRows, of.dim), of.pooling, expected.data(), of.dim});
  }
  JaggedView view() const {
    const int64_t samples = std::ssize(bags.offsets) - 1;
    return bags.view(samples).slice(kBefore, samples);
  }
};

/// Runs the features' lookups twice, batches of different sizes in the same memory.
class GpuRun {
 public:
  explicit GpuRun(std::span<const PoolFunction> functions)
      : gpu_(recmill::testing::test_driver(), {}), stream_(*gpu_.open_stream()) {
    std::vector<GpuPoolRequest> features;
    for (const PoolFunction& function : functions) {
      tables_.push_back(upload(random_floats(kRows * function.dim, tables_.size() + 1)));
      features.push_back({function, tables_.back().address<u8>(), features.size()});
    }
    auto compiled = compile_gpu_pool(features, {.most_functions = 40}, /*exactly=*/false,
                                     &compile_for_tests, gpu_);
    RECMILL_CHECK(compiled.ok(), compiled.status().message());
    fused_ = *std::move(compiled);
  }

  size_t kernels() const { return fused_.codes.size(); }

  /// The first feature whose answer is not the reference's; empty: none. Feature f's bags have
  /// longest[f % ...] lookups at most (BagShape).
  std::string difference(std::span<const PoolFunction> functions, int64_t samples,
                         const std::vector<int64_t>& longest) {
    std::vector<HostFeature> host;
    std::vector<JaggedView> bags;
    std::vector<GpuBuffer> out;
    std::vector<gpu::PoolOutput> outputs;
    for (size_t f = 0; f < functions.size(); ++f)
      host.emplace_back(functions[f], samples, longest[f % longest.size()], f + 1);
    for (HostFeature& feature : host) {
      bags.push_back(feature.view());
      out.push_back(*gpu_.allocate(feature.expected.size() * sizeof(float), "output"));
      outputs.push_back({out.back().address<float>(), feature.of.dim});
    }
    RECMILL_CHECK(fused_.pool->stage(bags, pool_, batch_).ok());
    RECMILL_CHECK(fused_.pool->send(batch_, stream_).ok());
    const Status status = fused_.pool->run(batch_, outputs, stream_);
    if (!status.ok()) return status.message();
    for (size_t f = 0; f < host.size(); ++f) {
      auto found = *gpu_.allocate_pinned(out[f].size(), "found");
      RECMILL_CHECK(stream_.to_host(found, out[f], out[f].size()).ok());
      const Status done = stream_.synchronize();
      if (!done.ok()) return done.message();
      if (!same(host[f], found.as<float>())) return host[f].of.name();
    }
    return "";
  }

 private:
  GpuBuffer upload(const std::vector<float>& values) {
    auto staged = *gpu_.allocate_pinned(values.size() * sizeof(float), "table");
    auto table = *gpu_.allocate(staged.size(), "table");
    std::ranges::copy(values, staged.as<float>().begin());
    RECMILL_CHECK(stream_.to_device(table, staged, staged.size()).ok());
    RECMILL_CHECK(stream_.synchronize().ok());
    return table;
  }
  static bool same(const HostFeature& host, std::span<const float> found) {
    if (find_gpu_pool_kernel(host.of.schedule)->of->order == Order::contract)
      return std::memcmp(found.data(), host.expected.data(), found.size_bytes()) == 0;
    for (size_t i = 0; i < found.size(); ++i)
      if (!(std::abs(found[i] - host.expected[i]) < 1e-4f)) return false;
    return true;
  }

  ThreadPool pool_{3};
  Gpu gpu_;
  GpuStream stream_;
  std::vector<GpuBuffer> tables_;
  CompiledGpuPool fused_;
  GpuBags batch_;
};

/// So many of a shape's candidates, drawn by seed.
std::vector<PoolFunction> some_candidates(const FeatureShape& shape, int64_t count, uint64_t seed) {
  std::vector<PoolFunction> functions;
  const auto candidates = gpu_pool_candidates(shape, /*deterministic=*/seed % 2 == 0);
  const Random random(seed, Purpose::test);
  for (int64_t i = 0; i < count; ++i) {
    PoolFunction function{candidates[random.below(candidates.size(), i)], shape.dim, shape.dim * 4};
    function.pooling = shape.pooling;
    function.weighted = shape.weighted;
    functions.push_back(function);
  }
  return functions;
}

TEST_F(GpuCodeTest, CandidatesOfManyShapesGiveTheReferencesAnswer) {
  std::vector<PoolFunction> functions;
  uint64_t seed = 0;
  for (const int64_t dim : {1, 3, 4, 8, 17, 32, 100, 128}) {
    for (const Pooling pooling : {Pooling::sum, Pooling::mean, Pooling::none}) {
      FeatureShape shape;
      shape.rows = kRows;
      shape.dim = dim;
      shape.pooling = pooling;
      shape.weighted = seed % 3 == 0;
      shape.bags = {10, 5, 0.1, dim > 8 ? 40 : 5000};
      const auto some = some_candidates(shape, 4, ++seed);
      functions.insert(functions.end(), some.begin(), some.end());
    }
  }
  GpuRun run(functions);
  EXPECT_GT(run.kernels(), 1u);
  EXPECT_EQ(run.difference(functions, 50, {30}), "");
  EXPECT_EQ(run.difference(functions, 3, {300}), "");
  EXPECT_EQ(run.difference(functions, 90, {3}), "");
}

// Which several threads copy, each a stretch of one feature's; offsets of bags of exactly one
// lookup are sent once for all of them.
TEST_F(GpuCodeTest, BagsOfManyLookupsGiveTheReferencesAnswer) {
  std::vector<PoolFunction> functions;
  for (size_t f = 0; f < 6; ++f) {
    PoolFunction& of = functions.emplace_back();
    of.dim = 2;
    of.row_bytes = 8;
    of.pooling = f < 4 ? Pooling::sum : f < 5 ? Pooling::mean : Pooling::none;
    of.weighted = f % 2 == 1;
    of.schedule = default_gpu_pool_schedule(of.pooling, RowStorage::of(nullptr, 1, of.dim));
  }
  functions[2].schedule = *parse_schedule("one_each unroll=1");
  GpuRun run(functions);
  const std::vector<int64_t> longest{-1, 4, -1, -1, 3, -1};
  EXPECT_EQ(run.difference(functions, 20000, longest), "");
  EXPECT_EQ(run.difference(functions, 9, {2000, 20000, -1, 0, -1}), "");
  EXPECT_EQ(run.difference(functions, 8191, longest), "");  // as many offsets as a stretch has
}

TEST_F(GpuCodeTest, BinariesAreCompiledOnceAndChecked) {
  std::vector<GpuSource> sources;
  for (const GpuSample& sample : gpu_samples()) sources.push_back(source_of(sample));
  for (int round = 0; round < 2; ++round) {
    auto cache = CubinCache::open(folder_.path(), posix_files());
    ASSERT_TRUE(cache.ok()) << cache.status().message();
    const auto codes = cache->load(sources, "sm_90", pool_);
    ASSERT_TRUE(codes.ok()) << codes.status().message();
    EXPECT_EQ(cache->compilations(), round == 0 ? std::ssize(sources) : 0);
    for (size_t s = 0; s < sources.size(); ++s) {
      EXPECT_EQ((*codes)[s].resources.name, sources[s].entry);
      EXPECT_GT((*codes)[s].resources.registers, 16);
      const bool calls = gpu_samples()[s].options.dispatch == Dispatch::pointers;
      EXPECT_EQ((*codes)[s].spilled > 0, calls) << sources[s].entry;
    }
  }
  // Each byte of a binary counts.
  std::string path;
  const auto names = *posix_files().list(folder_.path());
  for (const std::string& name : names)
    if (name.ends_with(".cubin")) path = folder_.path() + "/" + name;
  std::string text = *read_text(posix_files(), path);
  text[text.size() / 2] ^= 1;
  ASSERT_TRUE(write_atomically(posix_files(), path, text).ok());
  auto cache = *CubinCache::open(folder_.path(), posix_files());
  EXPECT_EQ(cache.load(sources, "sm_90", pool_).status().message(),
            path + ": damaged, its checksum does not hold; remove it");
}

TEST_F(GpuCodeTest, BinariesAreNamedByAllThatMakesThemOthers) {
  const std::vector<GpuSource> sources{source_of(gpu_samples()[0])};
  auto cache = *CubinCache::open(folder_.path(), posix_files());
  ASSERT_TRUE(cache.load(sources, "sm_90", pool_).ok());
  const auto nvrtc = *Nvrtc::load();
  const auto key = KeyText().add(sources[0].text).add("sm_90").add(nvrtc->identity());
  const std::string name = fmt::format("{:016x}", hash_bytes(key.text()));
  EXPECT_EQ(*posix_files().list(folder_.path()),
            (std::vector<std::string>{name + ".cu", name + ".cubin"}));
}

TEST_F(GpuCodeTest, KernelsOfOneTextAreCompiledTogetherAndSpillNothing) {
  for (const RowKeys keys : {RowKeys::narrow, RowKeys::wide}) {
    for (const char* architecture : {"sm_80", "sm_90"}) {
      auto cache = *CubinCache::open(folder_.path(), posix_files());
      const auto sources = gpu_distinct_sources(keys, "the tests");
      const auto codes = cache.load(sources, architecture, pool_);
      ASSERT_TRUE(codes.ok()) << codes.status().message();
      EXPECT_EQ(cache.compilations(), 1);
      ASSERT_EQ(codes->size(), kDistinctSteps.size());
      for (size_t step = 0; step < codes->size(); ++step) {
        EXPECT_EQ((*codes)[step].resources.name, sources[step].entry);
        EXPECT_LE((*codes)[step].resources.registers, 64);  // four blocks of an SM
        EXPECT_EQ((*codes)[step].resources.stack, 0);
        EXPECT_EQ((*codes)[step].spilled, 0);
      }
    }
  }
}

TEST_F(GpuCodeTest, SaysHowMuchIsSpilled) {
  // Launch bounds that leave 32 registers a thread to rows that need more.
  PoolFunction function{*parse_schedule("threads_per_sample lanes=4 at_once=8 threads=32"), 128,
                        512};
  const std::vector<GpuSource> wide{gpu_pool_sources({&function, 1}, {.blocks = 8})->front()};
  auto cache = *CubinCache::open(folder_.path(), posix_files());
  const auto codes = *cache.load(wide, "sm_90", pool_);
  EXPECT_LE(codes[0].resources.registers, 32);
  EXPECT_GT(codes[0].spilled, 0);
}

TEST_F(GpuCodeTest, NamesTheFileThatDoesNotCompile) {
  auto cache = *CubinCache::open(folder_.path(), posix_files());
  const std::vector<GpuSource> wrong{{"this is no kernel;\n", "wrong"}};
  const std::string said = cache.load(wrong, "sm_90", pool_).status().message();
  EXPECT_THAT(said, ::testing::StartsWith(folder_.path() + "/"));
  EXPECT_THAT(said, HasSubstr(".cu(1): error"));
}

}  // namespace
}  // namespace recmill::kernels::codegen
