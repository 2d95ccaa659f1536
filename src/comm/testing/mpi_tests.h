// SPDX-License-Identifier: Apache-2.0
// GoogleTest in processes that an MPI launcher started, each of which runs every test.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>

#include "comm/mpi/mpi_world.h"

namespace recmill {

/// Of all processes but one, which prints everything.
class FailuresOnly final : public ::testing::EmptyTestEventListener {
 public:
  explicit FailuresOnly(int rank) : rank_(rank) {}
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank_, result.file_name(), result.line_number(),
                 result.message());
  }

 private:
  const int rank_;
};

/// Runs them, with `world` for their use, where there are `processes`. Returns the exit status.
inline int run_mpi_tests(int argc, char** argv, int processes, MpiWorld*& world) {
  ::testing::InitGoogleTest(&argc, argv);
  const auto started = MpiWorld::start(60.0);
  if (!started.ok()) {
    std::fprintf(stderr, "%s\n", started.status().message().c_str());
    return 1;
  }
  world = started->get();
  if (world->ranks() != processes) {
    std::fprintf(stderr, "needs %d processes, has %d\n", processes, world->ranks());
    return 1;
  }
  if (world->rank() != 0) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOnly(world->rank()));
  }
  return RUN_ALL_TESTS();
}

}  // namespace recmill
