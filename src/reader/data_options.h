// SPDX-License-Identifier: Apache-2.0
// Section [data] of a configuration: which rows are read, in what form, and in which order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reader/synthetic/synthetic_options.h"
#include "schema/column_spec.h"
#include "schema/options.h"

namespace recmill {

enum class DataFormat {
  criteo_tsv,
  csv,
  libsvm,
  json_lines,
  behavior_log,
  parquet,
  arrow_ipc,
  orc,
  synthetic
};
template <>
struct EnumNames<DataFormat> {
  static constexpr std::array names{
      std::pair{DataFormat::criteo_tsv, std::string_view{"criteo_tsv"}},
      std::pair{DataFormat::csv, std::string_view{"csv"}},
      std::pair{DataFormat::libsvm, std::string_view{"libsvm"}},
      std::pair{DataFormat::json_lines, std::string_view{"json_lines"}},
      std::pair{DataFormat::behavior_log, std::string_view{"behavior_log"}},
      std::pair{DataFormat::parquet, std::string_view{"parquet"}},
      std::pair{DataFormat::arrow_ipc, std::string_view{"arrow_ipc"}},
      std::pair{DataFormat::orc, std::string_view{"orc"}},
      std::pair{DataFormat::synthetic, std::string_view{"synthetic"}}};
};

enum class OnBadRow { fail, skip };
template <>
struct EnumNames<OnBadRow> {
  static constexpr std::array names{std::pair{OnBadRow::fail, std::string_view{"fail"}},
                                    std::pair{OnBadRow::skip, std::string_view{"skip"}}};
};

enum class ShuffleKind { none, window };
template <>
struct EnumNames<ShuffleKind> {
  static constexpr std::array names{std::pair{ShuffleKind::none, std::string_view{"none"}},
                                    std::pair{ShuffleKind::window, std::string_view{"window"}}};
};

enum class SplitKind { file, fraction, hash, time };
template <>
struct EnumNames<SplitKind> {
  static constexpr std::array names{std::pair{SplitKind::file, std::string_view{"file"}},
                                    std::pair{SplitKind::fraction, std::string_view{"fraction"}},
                                    std::pair{SplitKind::hash, std::string_view{"hash"}},
                                    std::pair{SplitKind::time, std::string_view{"time"}}};
};

/// Which rows of a data set a reader hands out.
enum class Subset { train, eval, all };
template <>
struct EnumNames<Subset> {
  static constexpr std::array names{std::pair{Subset::train, std::string_view{"train"}},
                                    std::pair{Subset::eval, std::string_view{"eval"}},
                                    std::pair{Subset::all, std::string_view{"all"}}};
};

/// The order of training rows; evaluation is always in the order of the data. Windows of `window`
/// rows are permuted, and the rows within each (Parquet: within and among row groups).
struct ShuffleOptions {
  ShuffleKind kind = ShuffleKind::none;
  int64_t window = 65536;
  bool operator==(const ShuffleOptions&) const = default;
};
template <typename Visitor>
void describe(Visitor& v, ShuffleOptions& o) {
  v("kind", o.kind, "none (the order of the data, as time demands) or window");
  v("window", o.window, "rows of a window; its text is held in memory", between(1, 1 << 24));
}

/// How rows are told apart into training and evaluation. `file`: the lists data.train and
/// data.eval. The others split the rows of data.train; which side a row is on is a function of that
/// row (its content, or its file's name and its number there), of `seed` and of nothing else.
struct SplitOptions {
  SplitKind by = SplitKind::file;
  double eval_fraction = 0.1;
  std::string column;    // hash: a column's name; empty: the whole row
  int64_t boundary = 0;  // time: first time of evaluation; 0: the last eval_fraction of the rows
  int64_t seed = 0;
  bool operator==(const SplitOptions&) const = default;
};
template <typename Visitor>
void describe(Visitor& v, SplitOptions& o) {
  v("by", o.by, "file (train and eval lists), fraction (of rows), hash (of a column) or time");
  v("eval_fraction", o.eval_fraction, "share of the rows, of hashes or of the last times",
    between(0, 1));
  v("column", o.column, "hash: the column whose equal cells stay together; empty: the whole row");
  v("boundary", o.boundary, "time: rows from this time on evaluate; 0: by eval_fraction",
    any_number());
  v("seed", o.seed, "another seed is another split");
}

/// Criteo's layout: a label, `dense` integers, `ids` hexadecimal ids.
struct CriteoOptions {
  int64_t dense = 13;
  int64_t ids = 26;
  bool operator==(const CriteoOptions&) const = default;
};
template <typename Visitor>
void describe(Visitor& v, CriteoOptions& o) {
  v("dense", o.dense, "columns of integers, named I1, I2, ...", between(0, 10000));
  v("ids", o.ids, "columns of hexadecimal ids, named C1, C2, ...", between(0, 10000));
}

/// Rows `label index:value ...`: the bag "features" of indexes, with values as weights. With
/// `fields`, those of libffm, `label field:index:value ...`: a bag for each, "field0" and so on.
struct LibsvmOptions {
  int64_t fields = 0;
  bool operator==(const LibsvmOptions&) const = default;
};
template <typename Visitor>
void describe(Visitor& v, LibsvmOptions& o) {
  v("fields", o.fields, "libffm: number of fields, whose bags are field0, field1, ...; 0: libsvm",
    between(0, 10000));
}

/// Which labels are 1, and all others 0. Without a rule labels are numbers from 0 to 1 already.
struct LabelOptions {
  std::vector<std::string> positive;
  std::optional<double> threshold;
  bool operator==(const LabelOptions&) const = default;
};
template <typename Visitor>
void describe(Visitor& v, LabelOptions& o) {
  v("positive", o.positive,
    "labels that are 1, the others being 0: numbers by value, words by their bytes; empty: labels "
    "are numbers from 0 to 1");
  v("threshold", o.threshold, "labels from this number on are 1, the others 0", any_number());
}

/// Sequences from a log of user, item, category, behaviour, unix time (Taobao UserBehavior). Each
/// event after the first `minimum_history` of a user's is a positive sample; beside it are
/// `negatives` seeded random items.
struct BehaviorLogOptions {
  std::vector<std::string> behaviors;  // kept ones ("pv", "buy"); empty: all
  std::vector<std::string> columns;    // beside target and histories, in this order
  int64_t sequence_length = 20;        // events before the target, at most
  int64_t minimum_history = 1;         // events that a user must have had before a target
  int64_t negatives = 1;               // for each positive
  int64_t first_time = 0;              // events outside [first_time, last_time] are passed over
  int64_t last_time = 0;               // 0: no limit
  int64_t max_events = 200'000'000;    // held in memory, some 64 bytes each
  bool operator==(const BehaviorLogOptions&) const = default;
};
template <typename Visitor>
void describe(Visitor& v, BehaviorLogOptions& o) {
  v("behaviors", o.behaviors, "behaviours that are read, as pv or buy; empty: all");
  v("columns", o.columns,
    "columns beside the target and its histories: user (ids); seconds_since_last, history_length, "
    "item_seen, category_seen (dense)");
  v("sequence_length", o.sequence_length, "events of the history, at most", between(1, 1e6));
  v("minimum_history", o.minimum_history, "events that a user must have had before a target");
  v("negatives", o.negatives, "random items for each real next one, with their true category",
    between(0, 1e6));
  v("first_time", o.first_time, "events before this time are passed over and counted",
    any_number());
  v("last_time", o.last_time, "events after this time are passed over and counted; 0: none",
    any_number());
  v("max_events", o.max_events, "events held in memory, some 64 bytes each; more is an error",
    between(1, 0x1p40));
}

/// What a reader is asked for besides by who scores rows. No key of a configuration.
struct ScoredRows {
  bool labels = true;    // each row must have a label; else it may lack one, which is then NaN
  bool numbers = false;  // ColumnBatch::keys says where each row is from ...
  std::string key;       // ... and what it has in the column of this name; empty: none
};

struct DataOptions {
  DataFormat format = DataFormat::criteo_tsv;
  std::string path;                // folder that train and eval are relative to
  std::vector<std::string> train;  // paths or patterns
  std::vector<std::string> eval;
  int64_t rows = 0;  // 0: all
  OnBadRow on_bad_row = OnBadRow::fail;
  int64_t bad_row_limit = 1000;
  int64_t prefetch = 2;
  std::string cache = ".cache/recmill";
  std::string delimiter = ",";
  std::string quote = "\"";
  bool header = true;
  std::vector<ColumnSpec> columns;
  LabelOptions label;
  ShuffleOptions shuffle;
  SplitOptions split;
  CriteoOptions criteo;
  LibsvmOptions libsvm;
  BehaviorLogOptions behavior_log;
  reader::SyntheticOptions synthetic;
  // Of no key:
  std::string base;  // folder that `path` is relative to; empty: the current folder
  ScoredRows scored;
};
template <typename Visitor>
void describe(Visitor& v, DataOptions& o) {
  v("format", o.format,
    "criteo_tsv, csv, libsvm, json_lines, behavior_log, parquet, arrow_ipc, orc or synthetic");
  v("path", o.path, "folder that train and eval are relative to");
  v("train", o.train, "files or patterns of the training rows, in this order");
  v("eval", o.eval, "files or patterns of the evaluation rows");
  v("rows", o.rows, "reads the first rows only; 0: all");
  v("on_bad_row", o.on_bad_row, "fail, or skip (and count)");
  v("bad_row_limit", o.bad_row_limit, "skip: more bad rows than this in a file fail");
  v("prefetch", o.prefetch, "windows of rows that are read ahead", between(0, 4096));
  v("cache", o.cache, "folder of row indexes; empty: none are kept");
  v("delimiter", o.delimiter, "csv: what separates cells, one character or several");
  v("quote", o.quote, "csv: the character around cells (RFC 4180); empty: no quotes");
  v("header", o.header, "csv: the first line of each file names the columns");
  v("columns", o.columns, "csv without a header: all, in order; else by name, which may be a.b");
  v("label", o.label, "which labels are 1");
  v("shuffle", o.shuffle, "order of the training rows");
  v("split", o.split, "how rows are told apart into training and evaluation");
  v("criteo", o.criteo, "criteo_tsv: numbers of columns");
  v("libsvm", o.libsvm, "libsvm: rows of libsvm, libfm and libffm files");
  v("behavior_log", o.behavior_log, "behavior_log: how sequences are made");
  v("synthetic", o.synthetic, "synthetic: rows made as they are read; their order is their own");
}

}  // namespace recmill
