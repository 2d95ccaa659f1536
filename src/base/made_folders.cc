// SPDX-License-Identifier: Apache-2.0
#include "base/made_folders.h"

#include <filesystem>
#include <ranges>

namespace recmill {

Result<MadeFolders> MadeFolders::make(Files& files, const std::string& folder) {
  MadeFolders folders(files);
  RECMILL_RETURN_IF_ERROR(folders.make(folder));
  return folders;
}

Result<MadeFolders> MadeFolders::make_for(Files& files, const std::string& path) {
  return make(files, std::filesystem::path(path).parent_path().string());
}

Status MadeFolders::make(const std::string& folder) {
  if (folder.empty()) return {};
  const std::string above = std::filesystem::path(folder).parent_path().string();
  if (files_.exists(folder)) return files_.make_folder(folder);  // an error where it is a file
  RECMILL_RETURN_IF_ERROR(make(above));
  RECMILL_RETURN_IF_ERROR(files_.make_folder(folder));
  made_.push_back(folder);
  return files_.sync_folder(above);
}

MadeFolders::~MadeFolders() {
  for (const std::string& folder : made_ | std::views::reverse) files_.remove_if_empty(folder);
}

}  // namespace recmill
