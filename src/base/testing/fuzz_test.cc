// SPDX-License-Identifier: Apache-2.0
#include "base/testing/fuzz.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "base/testing/mutate.h"

namespace recmill {
namespace {

uint64_t round = 0;  // for the line of a failure, which aborts

void print_round(int) {
  char line[64];
  const int size = std::snprintf(line, sizeof line, "mutation of seed %lu\n", round);
  (void)!write(STDERR_FILENO, line, static_cast<size_t>(size));
}

TEST(Fuzz, seeds_and_their_mutations_are_taken_or_refused) {
  std::signal(SIGABRT, print_round);
  const auto seeds = fuzz::seeds();
  for (const std::string& seed : seeds) fuzz::feed(seed);
  fuzz::feed("");
  for (round = 0; round < 3000; ++round) {
    fuzz::feed(mutated(seeds[round % seeds.size()], round));
  }
  std::signal(SIGABRT, SIG_DFL);
}

}  // namespace
}  // namespace recmill
