// SPDX-License-Identifier: Apache-2.0
#include "train/run_folder.h"

namespace recmill::train {

Status RunFolder::check(Files& files, const std::string& path, ExistingRun existing) {
  if (existing != ExistingRun::refuse || !files.exists(path + "/config.toml")) return {};
  return Status::BadRequest(path + ": this run exists: --resume goes on with it, --overwrite " +
                            "begins anew, --set name=NAME starts another");
}

Result<RunFolder> RunFolder::create(Files& files, const std::string& path, ExistingRun existing,
                                    const std::string& config) {
  RECMILL_RETURN_IF_ERROR(check(files, path, existing));
  RunFolder folder(files, path);
  if (existing == ExistingRun::overwrite) RECMILL_RETURN_IF_ERROR(folder.remove());
  RECMILL_RETURN_IF_ERROR(files.make_folder(folder.checkpoints()));
  RECMILL_RETURN_IF_ERROR(files.make_folder(folder.events()));
  RECMILL_RETURN_IF_ERROR(write_atomically(files, folder.config(), config));
  return folder;
}

// The name of the run may be that of a folder with other things in it.
Status RunFolder::remove() const {
  if (!files_->exists(config())) return {};  // no run
  for (const std::string& path : {summary(), metrics(), events(), checkpoints(), config()}) {
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

Status RunFolder::write_summary(const Json& figures) const {
  return write_atomically(*files_, summary(), figures.dump(2) + "\n");
}

}  // namespace recmill::train
