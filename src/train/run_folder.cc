// SPDX-License-Identifier: Apache-2.0
#include "train/run_folder.h"

namespace recmill::train {

Result<RunFolder> RunFolder::create(Files& files, const std::string& path, ExistingRun existing,
                                    const std::string& config) {
  RunFolder folder(files, path);
  if (files.exists(path + "/config.toml")) {
    if (existing == ExistingRun::refuse) {
      return Status::BadRequest(path + ": this run exists: --resume goes on with it, --overwrite " +
                                "begins anew, --set name=NAME starts another");
    }
    if (existing == ExistingRun::overwrite) RECMILL_RETURN_IF_ERROR(files.remove(path));
  }
  RECMILL_RETURN_IF_ERROR(files.make_folder(folder.checkpoints()));
  RECMILL_RETURN_IF_ERROR(files.make_folder(folder.events()));
  RECMILL_RETURN_IF_ERROR(write_atomically(files, path + "/config.toml", config));
  return folder;
}

Status RunFolder::write_summary(const Json& summary) const {
  return write_atomically(*files_, path_ + "/summary.json", summary.dump(2) + "\n");
}

}  // namespace recmill::train
