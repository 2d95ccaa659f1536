// SPDX-License-Identifier: Apache-2.0
#include "remote/row_versions.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace recmill::remote {
namespace {

constexpr int64_t kRows = 12;

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
  explicit Work(uint64_t seed) : random_(seed) {}

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

  TableRows rows_of(int64_t row, int value) {
    bytes_.fill(static_cast<std::byte>(value));
    return {0, {row}, bytes_};
  }
  // A row's steps ascend; rows are beside each other at any.
  void put() {
    const int64_t row = below(kRows);
    int64_t& last = last_[row];
    last = std::max(last, least_) + 1 + below(3);
    step_ = std::max(step_, last);
    const int value = 1 + static_cast<int>(below(255));
    versions_.put(rows_of(row, value), last);
    plain_.set(row, last, value);
  }
  void cut() {
    // Behind all puts that there were; those of rows that lag may still be of steps before.
    images_.insert(++step_);
    versions_.cut(step_);
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
    versions_.change(*image, rows_of(row, value));
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
    versions_.drop(*image);
    images_.erase(image);
  }
  void go_back() {
    const int64_t image = *std::next(images_.begin(), below(std::ssize(images_)));
    versions_.go_back(image);
    plain_.forget_after(image);
    images_ = {image};
    changed_.clear();
    for (auto& [row, last] : last_) last = std::min(last, image);
    least_ = image;
    step_ = image;
  }
  void compare() {
    for (int64_t row = 0; row < kRows; ++row) {
      ASSERT_EQ(value_of(versions_.find(0, row)), plain_.at(row, kNever)) << "row " << row;
      for (const int64_t image : images_)
        ASSERT_EQ(value_of(versions_.find_at(image, 0, row)), plain_.at(row, image))
            << "row " << row << " as after " << image;
    }
    for (const int64_t image : images_) {
      std::vector<int64_t> touched;
      for (int64_t row = 0; row < kRows; ++row)
        if (plain_.at(row, image) != 0) touched.push_back(row);
      ASSERT_EQ(versions_.touched_at(image, 0), touched);
    }
  }
  static int value_of(const std::byte* record) {
    return record == nullptr ? 0 : static_cast<int>(record[0]);
  }

  std::mt19937_64 random_;
  RowVersions versions_{{{"t", kRows, 4}}};
  Plain plain_;
  std::array<std::byte, 4> bytes_{};
  std::map<int64_t, int64_t> last_;  // step of the last put, by row
  std::set<int64_t> images_;
  std::set<std::pair<int64_t, int64_t>> changed_;  // image, row
  int64_t least_ = -1, step_ = -1;
};

TEST(RowVersions, show_rows_as_after_every_image_under_random_work) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Work(seed).run();
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
  }
}

TEST(RowVersions, keep_a_row_once_for_all_images_that_see_the_same) {
  RowVersions versions({{"t", 100'000, 1000}});
  std::vector<std::byte> record(1000);
  const auto put = [&](int64_t row, int64_t step) { versions.put({0, {row}, record}, step); };
  for (int64_t row = 0; row < 2000; ++row) put(row, 0);
  versions.cut(0);
  versions.cut(1);
  const int64_t before = versions.image_bytes();
  for (int64_t row = 0; row < 2000; ++row) put(row, 2);
  for (int64_t row = 0; row < 2000; ++row) put(row, 3);
  EXPECT_NEAR(static_cast<double>(versions.image_bytes() - before), 2000 * 1000, 200'000);
}

}  // namespace
}  // namespace recmill::remote
