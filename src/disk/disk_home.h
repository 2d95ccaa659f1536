// SPDX-License-Identifier: Apache-2.0
// A home of rows in a database on this machine's disk, for tables larger than memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "disk/disk_rows.h"
#include "table/home/local_home.h"
#include "table/home/recorded_home.h"
#include "table/home/threaded_home.h"

namespace recmill::disk {

/// Whose rows are in a database.
struct DiskOwner {
  std::string run;   // as its folder knows it
  std::string name;  // of the run
  int rank = 0, ranks = 1;
  uint64_t seed = 1;
  std::vector<TableSpec> tables;
};

/// One writer's: a rank's. Calls are carried out by a thread, one after another.
class DiskHome final : public table::RecordedHome {
 public:
  /// `path` is for messages. A bad request where the database is another program's, or of a run of
  /// another name.
  static Result<std::shared_ptr<DiskHome>> open(std::unique_ptr<RowDatabase> database,
                                                const std::string& path, const DiskOwner& owner);

  // Before begin():
  /// The steps that begin() can go back to: none where the rows are of another run, or of other
  /// tables or ranks.
  const std::vector<int64_t>& steps() const { return steps_; }
  /// What was recorded, with its step; of rank 0.
  struct Recorded {
    int64_t step = 0;
    std::string bytes;
  };
  Result<std::optional<Recorded>> recorded() const;
  /// All rows are as after a step, with an image of them; or begin anew, and there is none. Once,
  /// before any call of the home.
  Result<std::shared_ptr<table::RowSnapshot>> begin(std::optional<int64_t> step);

  Ticket fetch(std::span<const table::FetchedRows> rows, int64_t fence) override {
    return threaded_->fetch(rows, fence);
  }
  Ticket put(std::span<const table::PutRows> rows, int64_t step) override {
    return threaded_->put(rows, step);
  }
  Ticket cut(int64_t step, std::span<const table::PutRows> changed) override {
    return threaded_->cut(step, changed);
  }
  void poll(std::vector<Answer>& answers) override { threaded_->poll(answers); }
  void set_wake(std::function<void()> wake) override { threaded_->set_wake(std::move(wake)); }

  ~DiskHome() override { rows_->end_releases(); }
  void keep(std::shared_ptr<table::RowSnapshot> image) override { kept_ = std::move(image); }
  /// All that was put before is on the disk then, also when the machine loses power.
  Status record(int64_t step, std::span<const std::byte> bytes) override;

 private:
  DiskHome(std::shared_ptr<DiskRows> rows, DiskOwner owner)
      : rows_(std::move(rows)), owner_(std::move(owner)) {}

  const std::shared_ptr<DiskRows> rows_;
  const DiskOwner owner_;
  std::vector<int64_t> steps_;
  std::shared_ptr<table::RowSnapshot> kept_;
  std::unique_ptr<table::LocalHome> local_;
  std::unique_ptr<table::ThreadedHome> threaded_;  // last
};

}  // namespace recmill::disk
