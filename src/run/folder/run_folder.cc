// SPDX-License-Identifier: Apache-2.0
#include "run/folder/run_folder.h"

#include "base/json/json.h"

namespace recmill::train {

Result<std::unique_ptr<RunLock>> RunLock::take(Files& files, const std::string& folder) {
  RECMILL_ASSIGN_OR_RETURN(auto made, MadeFolders::make(files, folder));
  std::unique_ptr<RunLock> lock(new RunLock(files, std::move(made), folder));
  RECMILL_ASSIGN_OR_RETURN(lock->file_, files.create_unless_open(folder + "/lock"));
  if (lock->file_ == nullptr)
    return Status::BadRequest(folder +
                              ": another job is at this run; --set name=NAME starts another");
  return lock;
}

// Removed while it is open: closed, it may be another's.
RunLock::~RunLock() {
  if (file_ == nullptr) return;
  (void)files_.remove(folder_ + "/lock").ok();
  files_.remove_if_empty(folder_);
}

Status RunFolder::check(ExistingRun existing) const {
  if (existing != ExistingRun::refuse || !files_->exists(config())) return {};
  return Status::BadRequest(path_ + ": this run exists: --resume goes on with it, --overwrite " +
                            "begins anew, --set name=NAME starts another");
}

Status RunFolder::create(ExistingRun existing, const std::string& text) const {
  RECMILL_RETURN_IF_ERROR(check(existing));
  if (existing == ExistingRun::overwrite) RECMILL_RETURN_IF_ERROR(remove());
  RECMILL_RETURN_IF_ERROR(files_->make_folder(checkpoints()));
  RECMILL_RETURN_IF_ERROR(files_->make_folder(events()));
  return write_atomically(*files_, config(), text);
}

// The name of the run may be that of a folder with other things in it.
Status RunFolder::remove() const {
  if (!files_->exists(config())) return {};  // no run
  for (const std::string& path :
       {summary(), metrics(), schedule(), events(), checkpoints(), home(), config()}) {
    if (files_->exists(path)) RECMILL_RETURN_IF_ERROR(files_->remove(path));
  }
  RECMILL_ASSIGN_OR_RETURN(const auto left, files_->list(path_));
  return left.empty() ? files_->remove(path_) : Status();
}

Status RunFolder::remove_if_nothing_was_done() const {
  if (files_->exists(metrics())) {
    RECMILL_ASSIGN_OR_RETURN(const auto file, files_->open(metrics()));
    if (file->size() > 0) return {};
  }
  RECMILL_ASSIGN_OR_RETURN(const auto saved, files_->list(checkpoints()));
  return saved.empty() ? remove() : Status();
}

Result<std::string> RunFolder::home_run() const {
  if (!files_->exists(home())) return std::string();
  RECMILL_ASSIGN_OR_RETURN(const std::string text, read_text(*files_, home()));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("run") || !json["run"].is_string())
    return Status::Failed(
        home() + ": says no run; delete it, and training goes on from the newest checkpoint");
  return json["run"].get<std::string>();
}

Status RunFolder::keep_home_run(const std::string& run) const {
  return write_atomically(*files_, home(), Json{{"run", run}}.dump() + "\n");
}

Status RunFolder::write_summary(const Json& figures) const {
  return write_atomically(*files_, summary(), figures.dump(2) + "\n");
}

}  // namespace recmill::train
