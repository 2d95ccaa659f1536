// SPDX-License-Identifier: Apache-2.0
#include "kernels/schedule/task_map.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace recmill::kernels {
namespace {

struct Bags {
  std::vector<std::vector<int64_t>> offsets;
  std::vector<FeatureWork> work;

  void add(const std::vector<int64_t>& lengths, double per_lookup = 1.0, double per_sample = 1.0) {
    std::vector<int64_t> begins{7};  // views need not begin at 0
    for (int64_t length : lengths) begins.push_back(begins.back() + length);
    work.push_back({nullptr, static_cast<int64_t>(lengths.size()), begins.back() - begins.front(),
                    per_lookup, per_sample});
    offsets.push_back(std::move(begins));
    for (size_t f = 0; f < work.size(); ++f) work[f].offsets = offsets[f].data();
  }
  TaskMap map(const TaskMapOptions& options) const {
    TaskMap made;
    map_tasks(work, options, made);
    return made;
  }
};

/// The costs of the tasks; fails unless the pieces cover all samples once, in order.
std::vector<double> costs(const Bags& bags, const TaskMap& map, int64_t tile) {
  std::vector<Piece> left;
  size_t at = 0;
  for (size_t f = 0; f < bags.work.size(); ++f) {
    int64_t next = 0;
    while (next < bags.work[f].samples && at < map.pieces.size()) {
      const Piece& piece = map.pieces[at++];
      EXPECT_EQ(piece.feature, static_cast<int64_t>(f));
      EXPECT_EQ(piece.first, next);
      EXPECT_GT(piece.last, piece.first);
      EXPECT_LE(piece.last - piece.first, tile);
      next = piece.last;
    }
    EXPECT_EQ(next, bags.work[f].samples);
  }
  EXPECT_EQ(at, map.pieces.size());
  EXPECT_EQ(map.begins.front(), 0);
  EXPECT_EQ(map.begins.back(), static_cast<int64_t>(map.pieces.size()));
  std::vector<double> found;
  for (int64_t t = 0; t < map.tasks(); ++t) {
    EXPECT_LT(map.begins[t], map.begins[t + 1]);
    double cost = 0.0;
    for (int64_t p = map.begins[t]; p < map.begins[t + 1]; ++p) {
      const Piece& piece = map.pieces[p];
      const FeatureWork& work = bags.work[piece.feature];
      cost += work.per_lookup * double(work.offsets[piece.last] - work.offsets[piece.first]) +
              work.per_sample * double(piece.last - piece.first);
    }
    found.push_back(cost);
  }
  return found;
}

TEST(TaskMap, cuts_any_batch_into_tasks_that_get_smaller) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const Random random(seed, Purpose::test);
    Bags bags;
    double total = 0.0, dearest = 0.0;
    for (int f = 0; f < 300; ++f) {
      std::vector<int64_t> lengths;
      lengths.reserve(128);
      const auto longest = static_cast<int64_t>(random.below(60, f, 1));
      for (int i = 0; i < 128; ++i)
        lengths.push_back(static_cast<int64_t>(random.below(longest + 1, f * 128 + i, 2)));
      const double per_lookup = 1.0 + double(random.below(8, f, 3));
      dearest = std::max(dearest, per_lookup * double(longest) + 2.0);
      bags.add(lengths, per_lookup, 2.0);
      total += bags.work.back().cost();
    }
    for (int threads : {1, 2, 5}) {
      for (int64_t tile : {int64_t{1} << 62, int64_t{32}}) {
        const auto found = costs(bags, bags.map({threads, tile}), tile);
        double left = total;
        for (double cost : found) {
          const double target = std::max(left / (2.0 * threads), total / (64.0 * threads));
          EXPECT_LE(cost, 1.25 * target + dearest);
          left -= cost;
          if (left > 1e-9 * total) {
            EXPECT_GE(cost, 0.75 * target);
          }
        }
      }
    }
  }
}

TEST(TaskMap, gives_a_feature_that_is_most_of_the_work_most_of_the_tasks) {
  Bags bags;
  for (int f = 0; f < 10; ++f) bags.add(std::vector<int64_t>(64, 1));
  bags.add(std::vector<int64_t>(64, 1000));
  const TaskMap map = bags.map({.threads = 2});
  const auto of_it = std::count_if(map.pieces.begin(), map.pieces.end(),
                                   [](const Piece& piece) { return piece.feature == 10; });
  EXPECT_EQ(map.tasks(), 13);
  EXPECT_EQ(of_it, map.tasks());
  costs(bags, map, 1 << 30);
}

TEST(TaskMap, of_nothing_has_no_task_and_of_empty_bags_few) {
  Bags bags;
  EXPECT_EQ(bags.map({}).tasks(), 0);
  for (int f = 0; f < 1000; ++f) bags.add({});
  EXPECT_EQ(bags.map({}).tasks(), 0);
  for (int f = 0; f < 1000; ++f) bags.add(std::vector<int64_t>(8, 0));
  const TaskMap map = bags.map({.threads = 2});
  EXPECT_EQ(costs(bags, map, 1 << 30).size(), 16u);
}

TEST(TaskMap, makes_no_task_smaller_than_asked) {
  Bags bags;
  for (int f = 0; f < 100; ++f) bags.add(std::vector<int64_t>(10, 1));
  const auto found = costs(bags, bags.map({.threads = 2, .least_task = 700.0}), 1 << 30);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_GE(found[0], 700.0);
  EXPECT_GE(found[1], 700.0);
}

}  // namespace
}  // namespace recmill::kernels
