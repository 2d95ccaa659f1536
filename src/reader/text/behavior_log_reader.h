// SPDX-License-Identifier: Apache-2.0
// A log of user, item, category, behaviour, unix time (Taobao UserBehavior) as samples with a
// history each, as TBSM-like models take them.
#pragma once

#include <memory>

#include "base/files.h"
#include "device/thread_pool.h"
#include "reader/data_options.h"
#include "reader/reader.h"

namespace recmill::reader {

/// Columns `item` and `category` are the target, `item_history` and `category_history` the last
/// events of the same user before it, oldest first; label 1 for a real event, 0 for a random item
/// (uniform over the distinct items, never the real one, with its own category); group: the user;
/// time: that of the target. Lines are integers but for the behaviour, in any order, without a
/// header.
///
/// data.behavior_log.columns adds, in its order:
///   user                an id column: the user
///   seconds_since_last  dense: seconds between the target and the user's event before it; missing
///                       where there is none
///   history_length      dense: events of the user before the target, cut or not
///   item_seen           dense: events of item_history with the item of the target
///   category_seen       dense: the same of the category
/// A random item has the user, the times and the history of the real event that it is beside.
///
/// Order: by the time of the target, then by user; each real event is followed by its negatives.
/// Events of equal time keep the order of the log. With a row split by fraction, by hash (column
/// "user", "item" or "category") or by time, histories go on across the split.
///
/// A user's events may be anywhere in the log, so all of it is held in memory, some 64 bytes an
/// event: data.behavior_log.max_events is the limit, and more is an error. Random items are a
/// function of (seed, user, number of the event, number of the negative).
Result<std::unique_ptr<Reader>> open_behavior_log(const DataOptions& options, Subset subset,
                                                  uint64_t seed, ThreadPool& pool, Files& files);

}  // namespace recmill::reader
