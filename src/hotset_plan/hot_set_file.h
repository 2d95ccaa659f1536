// SPDX-License-Identifier: Apache-2.0
// A hot set on disk: JSON, and the hot rows in a file beside it. docs/formats/hotset_plan.md.
#pragma once

#include <string>

#include "base/files.h"
#include "hotset_plan/hot_set.h"

namespace recmill {

/// What a set's files hold.
struct HotSetFiles {
  std::string text;
  std::string rows;  // beside it; empty: no row is listed
};
HotSetFiles encode_hot_set(const HotSet& set);
/// Fails as read_hot_set() of `path`.
Result<HotSet> decode_hot_set(const HotSetFiles& files, const std::string& path);

/// Writes `path` and, where rows are listed, `path`.rows before it. The same set, the same bytes.
Status write_hot_set(Files& files, const std::string& path, const HotSet& set);

/// Fails, naming the file, on a damaged one. Whether it fits a model says check_hot_set().
Result<HotSet> read_hot_set(Files& files, const std::string& path);

}  // namespace recmill
