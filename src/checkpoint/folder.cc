// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/folder.h"

#include <algorithm>
#include <charconv>

namespace recmill::checkpoint {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kLeftover = ".tmp";

/// -1: not the name of a checkpoint.
int64_t step_of(const std::string& name) {
  int64_t step = -1;
  if (name.compare(0, kPrefix.size(), kPrefix) != 0) return -1;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  return step >= 0 && folder_name(step) == name ? step : -1;
}

bool is_leftover(const std::string& name) {
  if (name.size() <= kLeftover.size()) return false;
  const size_t stem = name.size() - kLeftover.size();
  return name.compare(stem, kLeftover.size(), kLeftover) == 0 && step_of(name.substr(0, stem)) >= 0;
}

}  // namespace

Result<std::vector<int64_t>> list_steps(Files& files, const std::string& folder) {
  std::vector<int64_t> steps;
  if (!files.exists(folder)) return steps;
  RECMILL_ASSIGN_OR_RETURN(const auto names, files.list(folder));
  for (const auto& name : names) {
    if (step_of(name) >= 0) steps.push_back(step_of(name));
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

Result<Newest> open_newest(Files& files, const std::string& folder) {
  RECMILL_ASSIGN_OR_RETURN(auto steps, list_steps(files, folder));
  Newest newest;
  for (; !steps.empty(); steps.pop_back()) {
    auto reader = Reader::open(files, folder + "/" + folder_name(steps.back()));
    if (reader.ok()) {
      newest.reader = *std::move(reader);
      break;
    }
    newest.damaged.push_back(reader.status().message());
  }
  return newest;
}

Status remove_leftovers(Files& files, const std::string& folder) {
  RECMILL_ASSIGN_OR_RETURN(const auto names, files.list(folder));
  for (const auto& name : names) {
    if (is_leftover(name)) RECMILL_RETURN_IF_ERROR(files.remove(folder + "/" + name));
  }
  return {};
}

Status keep_last(Files& files, const std::string& folder, int64_t keep) {
  RECMILL_CHECK(keep >= 1, std::to_string(keep));
  RECMILL_RETURN_IF_ERROR(remove_leftovers(files, folder));
  RECMILL_ASSIGN_OR_RETURN(auto steps, list_steps(files, folder));
  for (int64_t whole = 0; !steps.empty(); steps.pop_back()) {
    const std::string path = folder + "/" + folder_name(steps.back());
    const bool is_whole = whole < keep && Reader::open(files, path).ok();
    whole += is_whole ? 1 : 0;
    if (is_whole || whole == 0) continue;
    // Under another name first: half of it must never pass for a checkpoint.
    const std::string leftover = path + std::string(kLeftover);
    RECMILL_RETURN_IF_ERROR(files.rename(path, leftover));
    RECMILL_RETURN_IF_ERROR(files.sync_folder(folder));
    RECMILL_RETURN_IF_ERROR(files.remove(leftover));
  }
  return files.sync_folder(folder);
}

}  // namespace recmill::checkpoint
