// SPDX-License-Identifier: Apache-2.0
// A compiled operator as PyTorch loads and calls it, in the Python that it was compiled for; on a
// real GPU, where tests run on one, as well.
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "kernels/codegen/compiler.h"
#include "kernels/codegen/generated_pool.h"
#include "kernels/codegen/testing/test_code.h"
#include "pool_op/testing/op_samples.h"
#include "pool_op/torch_package.h"

namespace recmill::kernels::codegen {
namespace {

class TorchOpTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  template <class T>
  void write(const std::string& name, std::span<const T> values) const {
    const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    RECMILL_CHECK(write_atomically(posix_files(), path(name), bytes).ok());
  }
  /// A call that call_op.py makes again.
  void write_call(const PoolOp& op, const OpBatch& batch) const {
    for (size_t t = 0; t < op.tables.size(); ++t) {
      const int64_t bytes = rows_of(op.tables[t]).stride * batch.rows[t].count;
      write("table" + std::to_string(t),
            std::span(static_cast<const char*>(batch.rows[t].data), bytes));
    }
    for (size_t f = 0; f < op.features.size(); ++f) {
      const JaggedView& bags = batch.bags[f];
      const std::string number = std::to_string(f);
      write("offsets" + number, std::span(bags.offsets, bags.samples + 1));
      write("rows" + number, std::span(bags.rows, bags.lookups()));
      if (bags.weights != nullptr)
        write("weights" + number, std::span(bags.weights, bags.lookups()));
      write("expected" + number, std::span<const float>(batch.expected[f]));
    }
  }
  /// Gives it kernels for the GPU of the tests, where that is a real one.
  static void add_gpu_kernels(PoolOp& op) {
    if (!recmill::testing::on_cuda()) return;
    const int compute = recmill::testing::test_driver()->properties().compute;
    auto sources = *gpu_pool_sources(gpu_functions(op), {.made_by = op.made_by});
    const auto codes = compile_for_tests(std::vector<GpuSource>(sources.begin(), sources.end()));
    RECMILL_CHECK(codes.ok(), codes.status().message());
    for (size_t k = 0; k < sources.size(); ++k) {
      const auto cubin = (*codes)[k].code.cubin;
      op.gpu_kernels.push_back({std::move(sources[k]),
                                {{"sm_" + std::to_string(compute), {cubin.begin(), cubin.end()}}}});
    }
  }
  Outcome run(const std::vector<std::string>& arguments) const {
    const Command command{arguments};
    const auto outcomes = run_commands({&command, 1}, 1, 300.0);
    RECMILL_CHECK(outcomes.ok(), outcomes.status().message());
    return (*outcomes)[0];
  }

  TemporaryFolder folder_;
};

TEST_F(TorchOpTest, is_loaded_and_called_by_python) {
  PoolOp op = mixed_op();
  for (PoolOpTable& table : op.tables) table.name = "t" + std::to_string(table.dim);
  op.description = R"({"tables": [{"name": "t16", "dim": 16, "dtype": "float32"},
      {"name": "t100", "dim": 100, "dtype": "bfloat16"}, {"name": "t5", "dim": 5, "dtype": "float16"}],
    "features": [{"name": "by default", "table": "t16", "pooling": "sum", "weighted": false},
      {"name": "one each", "table": "t16", "pooling": "sum", "weighted": false},
      {"name": "staged", "table": "t100", "pooling": "mean", "weighted": true},
      {"name": "interleaved", "table": "t5", "pooling": "mean", "weighted": false},
      {"name": "weighted", "table": "t5", "pooling": "sum", "weighted": true},
      {"name": "rows", "table": "t100", "pooling": "none", "weighted": true}]})";
  const auto torch = find_torch(RECMILL_PYTHON, posix_files());
  ASSERT_TRUE(torch.ok()) << torch.status().message();
  add_gpu_kernels(op);
  const auto source = pool_op_source(op, {.made_by = op.made_by, .lanes = vector_lanes()}, &*torch);
  ASSERT_TRUE(source.ok()) << source.status().message();
  LibraryCacheOptions options;
  options.folder = path("cache");
  options.compiler.program = RECMILL_COMPILER;
  LibraryCache cache(std::move(options), posix_files());
  const auto libraries = cache.load({&*source, 1});
  ASSERT_TRUE(libraries.ok()) << libraries.status().message();
  write_call(op, OpBatch(op, 70, 90));
  std::vector<std::string> call = {
      RECMILL_PYTHON, "-W",          "ignore", RECMILL_CALL_OP, libraries->front()->path(),
      op.name,        folder_.path()};
  if (recmill::testing::on_cuda()) call.emplace_back("cuda");
  const Outcome called = run(call);
  EXPECT_EQ(called.status, 0) << called.said;
  EXPECT_EQ(called.said, recmill::testing::on_cuda() ? "6 CPU CUDA Meta\n" : "6 CPU Meta\n");
}

TEST_F(TorchOpTest, needs_a_pytorch_that_has_the_interface) {
  const auto problem = [](const std::string& python) {
    return find_torch(python, posix_files()).status().message();
  };
  EXPECT_EQ(problem(path("nowhere")), "python '" + path("nowhere") + "': cannot be started");
  const auto script = [&](const std::string& name, const std::string& line) {
    RECMILL_CHECK(write_atomically(posix_files(), path(name), "#!/bin/sh\n" + line + "\n").ok());
    run({"chmod", "+x", path(name)});
    return path(name);
  };
  const std::string without = script("without", "echo");
  EXPECT_EQ(problem(without),
            "python '" + without + "': has no PyTorch (no module 'torch'); --python names another");
  const std::string broken = script("broken", "echo no such option; exit 2");
  EXPECT_EQ(problem(broken), "python '" + broken + "': finds no PyTorch, it says: no such option");
  const std::string version = path("torch/include/torch/headeronly/version.h");
  RECMILL_CHECK(posix_files().make_folder(path("torch/include/torch/headeronly")).ok());
  const auto version_of = [&](const std::string& minor) {
    RECMILL_CHECK(write_atomically(
                      posix_files(), version,
                      "#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR " + minor + "\n")
                      .ok());
    return find_torch(script("old", "echo " + path("torch")), posix_files());
  };
  EXPECT_EQ(version_of("9").status().message(),
            path("torch") +
                ": a PyTorch before 2.10, the first with the interface that compiled "
                "operators need");
  EXPECT_EQ(version_of("10")->version, "2.10");
}

}  // namespace
}  // namespace recmill::kernels::codegen
