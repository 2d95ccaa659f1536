// SPDX-License-Identifier: Apache-2.0
// The test of all ServedRows: random work, each state of which is compared with a plain one.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "schema/table_spec.h"
#include "table/home/served_rows.h"

namespace recmill::table::served_rows_contract {

constexpr int64_t kRows = 12;

/// The table that is served: a record is 4 bytes.
inline TableSpec table() {
  TableSpec spec;
  spec.name = "t";
  spec.rows = kRows;
  spec.dim = 1;
  spec.optimizer.kind = OptimizerKind::sgd;
  return spec;
}

/// Every value that a row has had, by the step that it is of. Images are looked up in that.
class Plain {
 public:
  void set(int64_t row, int64_t step, int value) { values_[row][step] = value; }
  int at(int64_t row, int64_t step) const {  // 0: an initial row
    const auto of = values_.find(row);
    if (of == values_.end()) return 0;
    const auto later = of->second.upper_bound(step);
    return later == of->second.begin() ? 0 : std::prev(later)->second;
  }
  void forget_after(int64_t step) {
    for (auto& [row, values] : values_) values.erase(values.upper_bound(step), values.end());
  }

 private:
  std::map<int64_t, std::map<int64_t, int>> values_;
};

/// Puts by several ranks, of which some are behind others, images and rows that come for them late.
class Work {
 public:
  Work(ServedRows& rows, uint64_t seed) : served_(rows), random_(seed) {}

  void run() {
    for (int i = 0; i < 300 && !::testing::Test::HasFatalFailure(); ++i) {
      switch (below(7)) {
        case 0:
          cut();
          break;
        case 1:
          change();
          break;
        case 2:
          if (!images_.empty() && below(2) == 0) drop();
          break;
        case 3:
          if (!images_.empty() && below(8) == 0) go_back();
          break;
        default:
          put();
      }
      compare();
    }
  }

 private:
  static constexpr int64_t kNever = 1 << 20;
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  std::span<const PutRows> rows_of(int64_t row, int value) {
    row_ = row;
    bytes_.fill(static_cast<std::byte>(value));
    rows_ = {0, {&row_, 1}, bytes_};
    return {&rows_, 1};
  }
  // A row's steps ascend; rows are beside each other at any.
  void put() {
    const int64_t row = below(kRows);
    int64_t& last = last_[row];
    last = std::max(last, least_) + 1 + below(3);
    step_ = std::max(step_, last);
    const int value = 1 + static_cast<int>(below(255));
    ASSERT_TRUE(served_.put(rows_of(row, value), last).ok());
    plain_.set(row, last, value);
  }
  void cut() {
    // Behind all puts that there were; those of rows that lag may still be of steps before.
    images_.insert(++step_);
    ASSERT_TRUE(served_.cut(step_).ok());
  }
  // A row of an image that its holder has changed since its last put, which was before the image.
  void change() {
    if (images_.empty()) return;
    const auto image = std::next(images_.begin(), below(std::ssize(images_)));
    const int64_t row = below(kRows);
    const auto done = changed_.find({*image, row});
    if (done != changed_.end() || put_between(row, *image)) return;
    changed_.insert({*image, row});
    const int value = 1 + static_cast<int>(below(255));
    ASSERT_TRUE(served_.change(*image, rows_of(row, value)).ok());
    plain_.set(row, *image, value);
    last_[row] = std::max(last_[row], *image);
  }
  // Whoever changes a row for an image does so for those before first.
  bool put_between(int64_t row, int64_t image) const {
    for (const auto& [other, of] : changed_)
      if (of == row && other > image) return true;
    return false;
  }
  void drop() {
    const auto image = std::next(images_.begin(), below(std::ssize(images_)));
    ASSERT_TRUE(served_.drop(*image).ok());
    images_.erase(image);
  }
  void go_back() {
    const int64_t image = *std::next(images_.begin(), below(std::ssize(images_)));
    ASSERT_TRUE(served_.go_back(image).ok());
    plain_.forget_after(image);
    images_ = {image};
    changed_.clear();
    for (auto& [row, last] : last_) last = std::min(last, image);
    least_ = image;
    step_ = image;
  }
  void compare() {
    std::vector<int64_t> all(kRows);
    std::iota(all.begin(), all.end(), 0);
    std::vector<std::byte> records(kRows * 4);
    std::vector<bool> touched;
    ASSERT_TRUE(served_.read({0, all, records}, touched).ok());
    int64_t rows = 0;
    for (int64_t row = 0; row < kRows; ++row) {
      ASSERT_EQ(touched[row] ? static_cast<int>(records[4 * row]) : 0, plain_.at(row, kNever))
          << "row " << row;
      rows += touched[row] ? 1 : 0;
    }
    ASSERT_EQ(served_.sizes().touched_rows, rows);
    for (const int64_t image : images_) compare_image(image);
  }
  void compare_image(int64_t image) {
    std::map<int64_t, int> found, expected;
    for (int64_t first = 0; first >= 0;) {
      const auto some = served_.read_image(image, 0, first, /*bytes=*/8);
      ASSERT_TRUE(some.ok()) << some.status().message();
      ASSERT_EQ(some->records.size(), some->rows.size() * 4);
      for (size_t i = 0; i < some->rows.size(); ++i)
        ASSERT_TRUE(found.emplace(some->rows[i], static_cast<int>(some->records[4 * i])).second);
      ASSERT_TRUE(some->next < 0 || some->next > first);
      first = some->next;
    }
    for (int64_t row = 0; row < kRows; ++row)
      if (plain_.at(row, image) != 0) expected[row] = plain_.at(row, image);
    ASSERT_EQ(found, expected) << "as after " << image;
  }

  ServedRows& served_;
  std::mt19937_64 random_;
  Plain plain_;
  int64_t row_ = 0;
  PutRows rows_;
  std::array<std::byte, 4> bytes_{};
  std::map<int64_t, int64_t> last_;  // step of the last put, by row
  std::set<int64_t> images_;
  std::set<std::pair<int64_t, int64_t>> changed_;  // image, row
  int64_t least_ = -1, step_ = -1;
};

/// `make` gives rows of table(), none of which was put.
inline void run(const std::function<std::unique_ptr<ServedRows>()>& make, uint64_t seeds) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const auto rows = make();
    Work(*rows, seed).run();
    ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "seed " << seed;
  }
}

}  // namespace recmill::table::served_rows_contract
