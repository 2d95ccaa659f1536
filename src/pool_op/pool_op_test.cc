// SPDX-License-Identifier: Apache-2.0
// Compiled operators below PyTorch: what recmill_pool_op() answers, on the CPU and, over a stand-in
// of CUDA's driver, by emulated kernels.
#include "pool_op/pool_op.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/temporary_folder.h"
#include "device/gpu/testing/fake_cuda.h"
#include "kernels/codegen/generated_pool.h"
#include "kernels/codegen/gpu/gpu_code.h"
#include "pool_op/check_pool_op.h"
#include "pool_op/testing/op_samples.h"

namespace recmill::kernels::codegen {
namespace {

using recmill::testing::FakeCuda;
using recmill::testing::FakeImage;
using ::testing::HasSubstr;

/// A feature alone.
PoolOp small_op() {
  PoolOp op;
  op.name = "small";
  op.made_by = "a test";
  op.tables = {{"t", 4, RowPrecision::float32}};
  op.features = {{"f",
                  0,
                  Pooling::sum,
                  false,
                  {},
                  default_gpu_pool_schedule(Pooling::sum, rows_of(op.tables[0]))}};
  return op;
}

/// Memory of a GPU that the CPU plays.
class HostMemory final : public pool_op::CallMemory {
 public:
  Staged stage(int64_t bytes) override {
    host_.assign(bytes, std::byte{});
    device_.assign(bytes, std::byte{0xff});
    return {host_.data(), device_.data()};
  }
  void send() override { device_ = host_; }
  std::byte* scratch(int64_t bytes) override { return take(bytes, 0xff); }
  std::byte* zeros(int64_t bytes) override { return take(bytes, 0); }

 private:
  std::byte* take(int64_t bytes, int value) {
    return kept_.emplace_back(bytes, static_cast<std::byte>(value)).data();
  }
  std::vector<std::byte> host_, device_;
  std::vector<std::vector<std::byte>> kept_;
};

/// What tests share, since a library takes seconds: the cache, and the operator of everything with
/// kernels for GPUs whose binaries are emulated kernels of this process.
class Shared {
 public:
  static Shared& instance() {
    static Shared shared;
    return shared;
  }

  LibraryCache cache() const {
    LibraryCacheOptions options;
    options.folder = folder_.path();
    options.compiler.program = RECMILL_COMPILER;
    return LibraryCache(std::move(options), posix_files());
  }
  const PoolOp& mixed() const { return mixed_; }

 private:
  Shared() : mixed_(mixed_op()) {
    void* const fake = dlopen(RECMILL_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);  // stays
    RECMILL_CHECK(fake != nullptr, dlerror());
    *static_cast<FakeCuda*>(dlsym(fake, "fake_cuda")) = {.run = &emulation::run_kernel};
    LibraryCache libraries = cache();
    auto sources =
        *gpu_pool_sources(gpu_functions(mixed_), {.made_by = "a test", .most_functions = 3});
    const auto codes =
        emulated_code(std::vector<GpuSource>(sources.begin(), sources.end()), libraries);
    RECMILL_CHECK(codes.ok(), codes.status().message());
    for (size_t k = 0; k < sources.size(); ++k) {
      const FakeImage image{.kernel = (*codes)[k].code.emulated};
      const auto bytes = std::as_bytes(std::span(&image, 1));
      mixed_.gpu_kernels.push_back(
          {std::move(sources[k]), {{"sm_90", {bytes.begin(), bytes.end()}}}});
      owners_.push_back((*codes)[k].owner);
    }
    mixed_.gpu_driver = RECMILL_FAKE_CUDA;
  }

  TemporaryFolder folder_;
  PoolOp mixed_;
  std::vector<std::shared_ptr<const void>> owners_;
};

class PoolOpTest : public ::testing::Test {
 protected:
  const PoolOp& mixed_ = Shared::instance().mixed();

  const pool_op::Entries& load(const PoolOp& op, int64_t* compilations = nullptr) {
    LibraryCache cache = Shared::instance().cache();
    const auto source = pool_op_source(op, {.made_by = op.made_by, .lanes = vector_lanes()},
                                       /*torch=*/nullptr);
    RECMILL_CHECK(source.ok(), source.status().message());
    const auto loaded = cache.load({&*source, 1});
    RECMILL_CHECK(loaded.ok(), loaded.status().message());
    library_ = loaded->front();
    if (compilations != nullptr) *compilations = cache.compilations();
    const auto entries =
        reinterpret_cast<const pool_op::Entries* (*)()>(library_->symbol("recmill_pool_op"));
    RECMILL_CHECK(entries != nullptr);
    return *entries();
  }

  std::shared_ptr<const Library> library_;
};

void on_threads(int64_t count, void (*work)(void*, int64_t), void* of) {
  ThreadPool(static_cast<int>(count)).run(count, [&](int64_t i) { work(of, i); });
}

TEST_F(PoolOpTest, pools_on_the_cpu_bitwise_as_the_reference) {
  const auto& entries = load(mixed_);
  const Status checked = check_pool_op(mixed_, *library_);
  EXPECT_TRUE(checked.ok()) << checked.message();
  EXPECT_EQ(std::string(entries.model->tables[1].name), mixed_.tables[1].name);
  for (const int64_t longest : {-1, 3, 300}) {
    for (const int threads : {1, 3}) {
      OpBatch batch(mixed_, 70, longest);
      EXPECT_EQ(entries.on_cpu(batch.inputs(), threads, on_threads), "");
      EXPECT_EQ(difference(mixed_, batch), "") << "longest " << longest << ", threads " << threads;
    }
  }
  OpBatch none(mixed_, 0, 3);
  EXPECT_EQ(entries.on_cpu(none.inputs(), 2, on_threads), "");
}

TEST_F(PoolOpTest, pools_on_a_gpu_bitwise_as_the_reference) {
  ASSERT_GT(mixed_.gpu_kernels.size(), 1u);
  const auto& entries = load(mixed_);
  for (const int64_t longest : {-1, 3, 700}) {
    OpBatch batch(mixed_, 33, longest);
    HostMemory memory;
    EXPECT_EQ(entries.on_gpu(batch.inputs(), memory, 0, nullptr), "");
    EXPECT_EQ(difference(mixed_, batch), "") << "longest " << longest;
  }
  OpBatch none(mixed_, 0, 3);
  HostMemory memory;
  EXPECT_EQ(entries.on_gpu(none.inputs(), memory, 0, nullptr), "");
}

TEST_F(PoolOpTest, reads_no_row_that_is_not_there) {
  const auto& entries = load(mixed_);
  for (const int64_t row : {OpBatch::kRows, int64_t{-1}}) {
    OpBatch batch(mixed_, 9, 5);
    JaggedView& bags = batch.bags[4];
    std::vector<int64_t> rows(bags.rows, bags.rows + bags.lookups());
    rows[7] = row;
    bags.rows = rows.data();
    EXPECT_EQ(entries.on_cpu(batch.inputs(), 2, on_threads),
              "feature 'weighted': lookup 7 names row " + std::to_string(row) +
                  ", but table 'odd' has 61");
  }
  const auto problem = [&](const std::vector<int64_t>& offsets, int64_t lookups) {
    return entries.offsets(
        4, {offsets.data(), nullptr, nullptr, static_cast<int64_t>(offsets.size()) - 1}, lookups);
  };
  EXPECT_EQ(problem({0, 3, 4}, 4), "");
  for (const std::vector<int64_t>& wrong : {std::vector<int64_t>{0, 3, 2, 4}, {1, 2, 4}, {0, 3, 5}})
    EXPECT_EQ(
        problem(wrong, 4),
        "feature 'weighted': offsets must ascend from 0 to the number of rows that are looked "
        "up, 4");
}

TEST_F(PoolOpTest, is_compiled_once) {
  int64_t first = 0, second = 0;
  load(mixed_, &first);
  load(mixed_, &second);
  EXPECT_LE(first, 1);
  EXPECT_EQ(second, 0);
}

TEST_F(PoolOpTest, says_what_a_gpu_lacks) {
  const auto problem = [&](PoolOp op, const std::string& driver) {
    auto sources = *gpu_pool_sources(gpu_functions(op), {.made_by = "a test"});
    const std::string entry = sources[0].entry;
    const std::vector<std::byte> other(16);
    op.gpu_kernels.push_back({std::move(sources[0]), {{"sm_80", other}, {"sm_90", other}}});
    op.gpu_driver = driver;
    OpBatch batch(op, 3, 3);
    HostMemory memory;
    return std::pair(load(op).on_gpu(batch.inputs(), memory, 0, nullptr), entry);
  };
  const auto [foreign, entry] = problem(small_op(), RECMILL_FAKE_CUDA);
  EXPECT_EQ(foreign, "kernel " + entry + " was compiled for sm_80, sm_90, which GPU 0 is not");
  EXPECT_THAT(problem(small_op(), "libnowhere.so").first,
              HasSubstr("no driver of GPUs: libnowhere.so"));
  PoolOp bare = small_op();
  bare.gpu_kernels.push_back({});
  EXPECT_THAT(pool_op_source(bare, {}, nullptr).status().message(),
              HasSubstr("no kernel for GPUs has '"));
}

}  // namespace
}  // namespace recmill::kernels::codegen
