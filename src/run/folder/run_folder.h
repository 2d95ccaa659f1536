// SPDX-License-Identifier: Apache-2.0
// What a run leaves behind: runs/NAME/ with
//   config.toml      the configuration as resolved, with the folder that its paths are relative to;
//                    `recmill train` takes it as it is
//   metrics.jsonl    one JSON object a line, as training went
//   events/          the same for TensorBoard
//   schedule.jsonl   a line for each schedule of hot and cold batches
//   home.json        as which run servers know its rows, where these are at servers
//   checkpoints/     step-N/, the newest ones (docs/formats/checkpoint.md)
//   summary.json     final metrics, samples a second, commit
//   lock             while a job writes to it
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/files.h"
#include "base/json/json_fwd.h"
#include "base/made_folders.h"
#include "base/status.h"
#include "run/options/run_options.h"

namespace recmill::train {

enum class ExistingRun { refuse, resume, overwrite };

/// The options that the text of a config.toml at `path` says.
using ReadOptions =
    std::function<Result<RunOptions>(const std::string& text, const std::string& path)>;

/// Held by the one job that writes a run's folder; gone with the job, however it ends.
class RunLock {
 public:
  /// Makes the folder where there is none. A bad request while another job holds it, where the disk
  /// knows locks (Files::create_unless_open).
  static Result<std::unique_ptr<RunLock>> take(Files& files, const std::string& folder);
  /// Leaves no empty folder.
  ~RunLock();

 private:
  RunLock(Files& files, MadeFolders made, std::string folder)
      : files_(files), made_(std::move(made)), folder_(std::move(folder)) {}

  Files& files_;
  const MadeFolders made_;
  const std::string folder_;
  std::unique_ptr<WritableFile> file_;
};

class RunFolder {
 public:
  RunFolder(Files& files, std::string path) : files_(&files), path_(std::move(path)) {}

  /// A bad request when a run of this folder exists that is neither resumed nor overwritten.
  Status check(ExistingRun existing) const;

  /// Makes the folder and writes the configuration, after check(). Of what is there nothing but the
  /// files and folders above is ever deleted.
  Status create(ExistingRun existing, const std::string& config) const;

  const std::string& path() const { return path_; }
  std::string checkpoints() const { return path_ + "/checkpoints"; }
  std::string events() const { return path_ + "/events"; }
  std::string metrics() const { return path_ + "/metrics.jsonl"; }
  std::string schedule() const { return path_ + "/schedule.jsonl"; }

  /// As which run servers know the rows of this one; empty: as none.
  Result<std::string> home_run() const;
  Status keep_home_run(const std::string& run) const;

  Status write_summary(const Json& figures) const;

  /// Deletes the run, if it failed before it left a line of metrics or a checkpoint, so that the
  /// next attempt finds nothing in its way.
  Status remove_if_nothing_was_done() const;

 private:
  std::string config() const { return path_ + "/config.toml"; }
  std::string home() const { return path_ + "/home.json"; }
  std::string summary() const { return path_ + "/summary.json"; }
  Status remove() const;
  Files* files_;
  std::string path_;
};

}  // namespace recmill::train
