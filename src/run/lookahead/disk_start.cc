// SPDX-License-Identifier: Apache-2.0
#include "run/lookahead/disk_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "comm/gather_values.h"
#include "disk/disk_home.h"
#include "disk/rocksdb/rocksdb_library.h"
#include "run/checkpoint/restore_checkpoint.h"
#include "run/checkpoint/saved_state.h"
#include "run/lookahead/row_commits.h"
#include "table/row_record.h"

namespace recmill::train {
namespace {

constexpr int64_t kKeyBytes = 12;  // of a row in the database

/// What rank 0 finds recorded on its disk, where no checkpoint is newer.
Result<std::optional<disk::DiskHome::Recorded>> find_on_disk(const ResolvedRun& run,
                                                             const disk::DiskHome& home) {
  RECMILL_ASSIGN_OR_RETURN(auto recorded, home.recorded());
  if (!recorded) return recorded;
  RECMILL_ASSIGN_OR_RETURN(const auto state,
                           PackedState::open(std::as_bytes(std::span(recorded->bytes)), kCommit));
  RECMILL_RETURN_IF_ERROR(check_origin(run, *state.reader, /*for_training=*/true));
  if (state.reader->step() < run.newest_checkpoint) recorded.reset();
  return recorded;
}

/// A line of what the rows of this rank may take.
std::string disk_line(const ResolvedRun& run, const std::string& path, int ranks) {
  double bytes = 0.0;
  for (const TableSpec& table : run.spec.tables)
    bytes += static_cast<double>(table.rows) *
             static_cast<double>(table::RowRecord(table).bytes() + kKeyBytes);
  return fmt::format(
      "rows on a disk: {:.0f} MiB{} in {} when all of them have been changed, and "
      "as much again for what changes between two commits",
      bytes / ranks / (1 << 20), ranks > 1 ? " at each rank" : "", path);
}

}  // namespace

Result<store::CacheHomeRows> start_on_disk(const ResolvedRun& run, Communicator& communicator,
                                           HomeStart& start) {
  const LookaheadOptions& of = run.options.lookahead;
  const int rank = communicator.rank(), ranks = communicator.ranks();
  RECMILL_ASSIGN_OR_RETURN(
      start.run,
      text_of_rank_0(run.home_run.empty() ? new_home_run(run) : run.home_run, communicator));
  // Rows that are not kept are apart from those of training.
  const std::string path =
      of.disk_path + "/" + (run.keeps_rows ? "" : start.run + "-") + "rank-" + std::to_string(rank);
  const auto open = [&]() -> Result<std::shared_ptr<disk::DiskHome>> {
    RECMILL_ASSIGN_OR_RETURN(disk::RowDatabases * databases, disk::rocksdb_databases());
    RECMILL_RETURN_IF_ERROR(
        posix_files().make_folder(of.disk_path));  // RocksDB knows no other disk
    RECMILL_ASSIGN_OR_RETURN(auto database, databases->open(path, of.disk_memory, run.keeps_rows));
    return disk::DiskHome::open(std::move(database), path,
                                {start.run, run.options.name, rank, ranks,
                                 static_cast<uint64_t>(run.options.train.seed), run.spec.tables});
  };
  const auto home = open();
  RECMILL_RETURN_IF_ERROR(all_well(home.status().at("lookahead.disk_path"), communicator));
  std::optional<disk::DiskHome::Recorded> recorded;
  Status found;
  if (rank == 0) {
    auto of_rank_0 = find_on_disk(run, **home);
    found = of_rank_0.status();
    if (of_rank_0.ok()) recorded = *std::move(of_rank_0);
    log_info(disk_line(run, of.disk_path, ranks));
  }
  RECMILL_RETURN_IF_ERROR(all_well(found, communicator));
  RECMILL_ASSIGN_OR_RETURN(
      const std::string step,
      text_of_rank_0(recorded ? std::to_string(recorded->step) : "", communicator));
  const int64_t wanted = step.empty() ? table::RowHome::kNoFence : std::stoll(step);
  const bool has_it = !step.empty() && std::ranges::count((*home)->steps(), wanted) > 0;
  RECMILL_ASSIGN_OR_RETURN(const auto have_it, gather_values(int64_t{has_it}, communicator));
  const bool goes_on = std::ranges::count(have_it, 0) == 0;
  auto image = (*home)->begin(goes_on ? std::optional(wanted) : std::nullopt);
  RECMILL_RETURN_IF_ERROR(all_well(image.status().at("lookahead.disk_path"), communicator));
  start.image = *std::move(image);
  start.is_apart = true;
  start.home = *home;
  store::CacheHomeRows rows(*home);
  if (goes_on) {
    RECMILL_ASSIGN_OR_RETURN(const std::string bytes,
                             text_of_rank_0(recorded ? recorded->bytes : "", communicator));
    const auto view = std::as_bytes(std::span(bytes));
    start.record.assign(view.begin(), view.end());
    rows.begin = wanted;
  }
  return rows;
}

}  // namespace recmill::train
