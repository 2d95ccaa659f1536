// SPDX-License-Identifier: Apache-2.0
// The section [hotset].
#pragma once

#include <cstdint>
#include <string>

#include "schema/options.h"

namespace recmill::train {

/// Which rows are hot where bytes say how many: all of a count or none, or one by one.
enum class HotPick { cutoff, top };

/// How batches are made of inputs: of any, or of hot or of cold ones alone.
enum class BatchOrder { mixed, hot_cold };

/// Which batches a schedule begins with.
enum class FirstKind { cold, hot };

}  // namespace recmill::train

namespace recmill {
template <>
struct EnumNames<train::HotPick> {
  static constexpr std::array names{std::pair{train::HotPick::cutoff, std::string_view{"cutoff"}},
                                    std::pair{train::HotPick::top, std::string_view{"top"}}};
};
template <>
struct EnumNames<train::BatchOrder> {
  static constexpr std::array names{
      std::pair{train::BatchOrder::mixed, std::string_view{"mixed"}},
      std::pair{train::BatchOrder::hot_cold, std::string_view{"hot_cold"}}};
};
template <>
struct EnumNames<train::FirstKind> {
  static constexpr std::array names{std::pair{train::FirstKind::cold, std::string_view{"cold"}},
                                    std::pair{train::FirstKind::hot, std::string_view{"hot"}}};
};
}  // namespace recmill

namespace recmill::train {

struct HotsetOptions {
  int64_t bytes = int64_t{256} << 20;
  double threshold = 0.0;
  HotPick pick = HotPick::cutoff;
  std::string plan;
  BatchOrder order = BatchOrder::mixed;
  // Of order = "hot_cold":
  std::string folder;
  FirstKind first = FirstKind::cold;
  double rate = 0.0;
  int64_t eval_rows = 65536;
  std::string replay;
  double sample = 1.0;
};
template <typename Visitor>
void describe(Visitor& v, HotsetOptions& o) {
  v("bytes", o.bytes,
    "bytes that hot rows with their state may take of each device, or of each rank; 0: what it has "
    "free",
    between(0, 0x1p56));
  v("threshold", o.threshold,
    "a row is hot that is looked up at least this often for each training input, whatever its "
    "table; 0: as many rows are as hotset.bytes allow",
    between(0, 1e9));
  v("pick", o.pick,
    "cutoff: rows that are looked up equally often are hot together or not; top: hotset.bytes are "
    "filled with the rows that are looked up most");
  v("plan", o.plan,
    "file of the hot set that 'recmill plan hotset --out' has written; empty: lookups of all "
    "training rows are counted");
  v("order", o.order,
    "batches of training: mixed (of any inputs), or hot_cold (each of hot inputs alone, all of "
    "whose lookups are of hot rows, or of the others alone, in schedules of a cold block and a hot "
    "one)");
  v("folder", o.folder,
    "order = \"hot_cold\": folder that 'recmill convert --hotcold' has written of this data");
  v("first", o.first, "order = \"hot_cold\": the block that a schedule begins with: cold, hot");
  v("rate", o.rate,
    "order = \"hot_cold\": percent of the cold and of the hot batches of an epoch that each "
    "schedule has, to six decimals; 0: 50 at first, half after an evaluation whose loss has risen, "
    "twice after four in a row whose loss has fallen",
    between(0, 100));
  v("eval_rows", o.eval_rows,
    "order = \"hot_cold\", rate = 0: evaluation rows whose loss is looked at after each schedule, "
    "the first ones",
    between(1, 0x1p40));
  v("replay", o.replay,
    "order = \"hot_cold\": file schedule.jsonl of a run whose rates are used again; empty: none");
  v("sample", o.sample,
    "share of the training rows that is looked at, in whole blocks of 1,000 rows, or of a row "
    "group at least, drawn by train.seed: a quarter of them judge what counting the others makes "
    "hot ('recmill stats --counts' counts all of them); 1: all rows are counted",
    above_up_to(0, 1));
}

}  // namespace recmill::train
