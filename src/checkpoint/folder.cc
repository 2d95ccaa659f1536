// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/folder.h"

#include <algorithm>
#include <charconv>

#include "base/paths.h"

namespace recmill::checkpoint {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kLeftover = ".tmp";
constexpr std::string_view kBest = "best";  // a file: the name of a checkpoint, and a line's end

/// -1: not the name of a checkpoint.
int64_t step_of(const std::string& name) {
  int64_t step = -1;
  if (name.compare(0, kPrefix.size(), kPrefix) != 0) return -1;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  return step >= 0 && folder_name(step) == name ? step : -1;
}

bool is_leftover(const std::string& name) {
  if (!name.ends_with(kLeftover)) return false;
  const std::string stem = name.substr(0, name.size() - kLeftover.size());
  return stem == kBest || step_of(stem) >= 0;
}

std::string best_path(const std::string& folder) {
  return folder + "/" + std::string(kBest);
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

Result<std::optional<int64_t>> best_step(Files& files, const std::string& folder) {
  const std::string path = best_path(folder);
  if (!files.exists(path)) return std::optional<int64_t>();
  RECMILL_ASSIGN_OR_RETURN(const std::string text, read_text(files, path));
  const int64_t step = step_of(text.substr(0, text.find('\n')));
  if (step < 0) return Status::Failed(path + ": names no checkpoint");
  return std::optional(step);
}

Status mark_best(Files& files, const std::string& folder, int64_t step) {
  return write_atomically(files, best_path(folder), folder_name(step) + "\n");
}

Status unmark_best(Files& files, const std::string& folder) {
  if (!files.exists(best_path(folder))) return {};
  RECMILL_RETURN_IF_ERROR(files.remove(best_path(folder)));
  return files.sync_folder(folder);
}

Result<Chosen> open_wanted(Files& files, const std::string& folder, Which which) {
  if (which != Which::newest) {
    RECMILL_ASSIGN_OR_RETURN(const auto best, best_step(files, folder));
    if (best) {
      auto reader = Reader::open(files, folder + "/" + folder_name(*best));
      if (!reader.ok())
        return Status::BadRequest("the best checkpoint cannot be taken, the newest may be: " +
                                  reader.status().message());
      return Chosen{*std::move(reader), "best", {}};
    }
    if (which == Which::best)
      return Status::BadRequest(
          whole_path(folder) +
          ": no checkpoint is marked as the best; train.checkpoint.keep_best = true does, where "
          "an evaluation defines the metric");
  }
  RECMILL_ASSIGN_OR_RETURN(Newest newest, open_newest(files, folder));
  if (newest.reader == nullptr)
    return Status::BadRequest(whole_path(folder) + ": holds no whole checkpoint");
  return Chosen{std::move(newest.reader), "newest", std::move(newest.damaged)};
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
  RECMILL_ASSIGN_OR_RETURN(const auto best, best_step(files, folder));
  RECMILL_ASSIGN_OR_RETURN(auto steps, list_steps(files, folder));
  for (int64_t whole = 0; !steps.empty(); steps.pop_back()) {
    const std::string path = folder + "/" + folder_name(steps.back());
    const bool is_whole = whole < keep && Reader::open(files, path).ok();
    whole += is_whole ? 1 : 0;
    if (is_whole || whole == 0 || steps.back() == best) continue;
    // Under another name first: half of it must never pass for a checkpoint.
    const std::string leftover = path + std::string(kLeftover);
    RECMILL_RETURN_IF_ERROR(files.rename(path, leftover));
    RECMILL_RETURN_IF_ERROR(files.sync_folder(folder));
    RECMILL_RETURN_IF_ERROR(files.remove(leftover));
  }
  return files.sync_folder(folder);
}

}  // namespace recmill::checkpoint
