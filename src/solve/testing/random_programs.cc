// SPDX-License-Identifier: Apache-2.0
#include "solve/testing/random_programs.h"

#include <cmath>
#include <utility>

namespace recmill::solve {
namespace {

MixedIntegerProgram knapsacks(const Random& random) {
  MixedIntegerProgram program;
  const uint64_t items = 6 + random.below(8, 0), sacks = 1 + random.below(3, 1);
  for (uint64_t i = 0; i < items; ++i) program.add_binary(-0.125 * (1 + random.below(200, 10 + i)));
  for (uint64_t s = 0; s < sacks; ++s) {
    std::vector<Entry> entries;
    double sum = 0.0;
    for (uint64_t i = 0; i < items; ++i) {
      entries.push_back({static_cast<int64_t>(i), 1.0 + random.below(30, 100 + i, s)});
      sum += entries.back().value;
    }
    program.add_row(-kInfinity, std::floor(sum / 2), std::move(entries));
  }
  return program;
}

/// Sums that must be met exactly, some of which cannot be.
MixedIntegerProgram equalities(const Random& random) {
  MixedIntegerProgram program;
  const uint64_t columns = 4 + random.below(6, 0), rows = 1 + random.below(3, 1);
  for (uint64_t c = 0; c < columns; ++c) {
    const double lower = -static_cast<double>(random.below(3, 10 + c));
    program.add_column(0.25 * random.below(40, 30 + c) - 4.0, lower, lower + 3.0, true);
  }
  for (uint64_t r = 0; r < rows; ++r) {
    std::vector<Entry> entries;
    for (uint64_t c = 0; c < columns; ++c)
      entries.push_back({static_cast<int64_t>(c), random.below(7, 100 + c, r) - 3.0});
    const double sum = random.below(9, 200, r) - 4.0;
    program.add_row(sum, sum, std::move(entries));
  }
  return program;
}

}  // namespace

MixedIntegerProgram assignment(std::span<const double> loads, int64_t devices, bool whole) {
  MixedIntegerProgram program;
  double sum = 0.0;
  std::vector<Row> of_device(devices);
  for (const double load : loads) {
    std::vector<Entry> one;
    for (int64_t device = 0; device < devices; ++device) {
      one.push_back({program.add_binary(0.0), 1.0});
      of_device[device].entries.push_back({one.back().column, load});
    }
    program.add_row(1.0, 1.0, std::move(one));
    sum += load;
  }
  const int64_t largest = program.add_column(1.0, 0.0, sum, whole);
  for (Row& row : of_device) {
    row.entries.push_back({largest, -1.0});
    program.add_row(-kInfinity, 0.0, std::move(row.entries));
  }
  return program;
}

std::vector<double> random_loads(const Random& random, uint64_t items, uint64_t largest) {
  std::vector<double> loads(items);
  for (uint64_t i = 0; i < items; ++i) loads[i] = 1.0 + random.below(largest, i);
  return loads;
}

MixedIntegerProgram random_program(uint64_t number) {
  const Random random(5, Purpose::test, number);
  if (number % 3 == 0) return knapsacks(random);
  if (number % 3 == 1) return equalities(random);
  const auto loads = random_loads(random, 3 + random.below(4, 1000), 20);
  return assignment(loads, 2 + random.below(2, 1001), true);
}

}  // namespace recmill::solve
