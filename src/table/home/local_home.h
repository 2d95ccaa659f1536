// SPDX-License-Identifier: Apache-2.0
// Marks, fences and cuts of a home whose rows are within this process's reach.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "table/home/row_home.h"
#include "table/row_share.h"

namespace recmill::table {

/// Where a LocalHome has its rows. Calls come one at a time.
class HomeRows {
 public:
  virtual ~HomeRows() = default;

  /// Whether rows of a table are here and records have their size; an error names table and row.
  virtual Status check(int table, std::span<const int64_t> rows, size_t record_bytes) const = 0;
  virtual Status read(std::span<const FetchedRows> rows) = 0;
  /// As after `step`: images of earlier steps keep what they had. One of a later step or of the
  /// same one has the rows as they become.
  virtual Status replace(std::span<const PutRows> rows, int64_t step) = 0;
  /// Steps of images ascend, or stay the same.
  virtual Result<std::shared_ptr<RowSnapshot>> image(int64_t step) = 0;
};

/// Whether rows are in a table of that name and are stored at the share's rank.
Status check_rows(const std::string& table, const RowShare& share, std::span<const int64_t> rows);

/// Writers may be on different threads. A put is answered at once; a fetch by the put that brings
/// the last mark to its fence, or at once.
class LocalHome {
 public:
  /// `rows` outlive it. Marks begin at `mark`: the step before the first one.
  LocalHome(HomeRows& rows, int writers, int64_t mark = RowHome::kNoFence);
  ~LocalHome();

  RowHome& writer(int number);

 private:
  class Writer;
  /// A fetch whose fence is beyond some mark.
  struct Waiting {
    Writer* writer = nullptr;
    RowHome::Ticket ticket = 0;
    std::vector<FetchedRows> rows;
    int64_t fence = 0;
  };
  /// A cut that some writers have called.
  struct Cut {
    int64_t step = 0;
    std::shared_ptr<RowSnapshot> image;
    std::vector<std::pair<Writer*, RowHome::Ticket>> callers;
  };

  // All while mutex_ is held:
  template <class Rows>
  Status check(std::span<const Rows> rows) const;
  int64_t least_mark() const;
  void answer_fetches();
  Status join_cut(Writer& writer, RowHome::Ticket ticket, int64_t step,
                  std::span<const PutRows> changed);

  HomeRows& rows_;
  std::mutex mutex_;  // of all that follows, of rows_ and of what writers have
  std::vector<std::unique_ptr<Writer>> writers_;
  std::vector<Waiting> waiting_;
  std::deque<Cut> cuts_;    // that not all writers have called yet, oldest first
  int64_t whole_cuts_ = 0;  // that all have
};

}  // namespace recmill::table
