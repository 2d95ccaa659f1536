// SPDX-License-Identifier: Apache-2.0
// The folder of a data set's hot and cold inputs: hot.parquet, cold.parquet, the hot set, full
// dictionaries, and a manifest of what it was made from. docs/formats/hotset.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json/json_fwd.h"
#include "base/status.h"
#include "device/thread_pool.h"
#include "hotset_plan/hot_set.h"
#include "preprocess/run/preprocessor.h"
#include "reader/data_options.h"
#include "reader/text/text_parser.h"
#include "run/resolved_run.h"
#include "step/data/hot_cold_rows.h"
#include "step/data/hot_cold_source.h"

namespace recmill::train {

struct HotFolder {
  std::string path;
  HotSet set;
  int64_t cold_inputs = 0, hot_inputs = 0;
  /// Of preprocess::dictionary_lists(): as after all training inputs in the data's order.
  std::vector<std::vector<uint64_t>> dictionaries;
  HotColdRules rules;
};

/// What a checkpoint says of the order that it was trained in: the hot set, and which kind is
/// first.
Json order_of(const ResolvedRun& run);

/// The names of its files.
namespace hot_files {
inline constexpr const char* kManifest = "hotset.json";
inline constexpr const char* kSet = "hot_set.json";
inline constexpr const char* kDictionaries = "dictionaries.ids";
inline constexpr const char* kCold = "cold.parquet";
inline constexpr const char* kHot = "hot.parquet";
/// In both: each input's number in the training subset, from 0.
inline constexpr const char* kInputField = "recmill.input";
}  // namespace hot_files

/// The run as its inputs are counted and put apart: in the data's own order.
ResolvedRun in_order_of_data(ResolvedRun run);

/// What a folder is made from, by what is said of it: "data", with a line for each file; "model";
/// and what decides the hot set.
Result<Json> hot_folder_origin(const ResolvedRun& run, Files& files);
/// Refuses a folder whose manifest says another origin, naming what differs.
Status check_hot_folder_origin(const std::string& path, const Json& then, const Json& now);

/// Reads the folder's manifest; a bad request where there is none.
Result<Json> read_hot_manifest(const std::string& path, Files& files);
/// Whether all files that the manifest names are there, of their sizes.
Status check_hot_files(const std::string& path, const Json& manifest, Files& files);

/// Opens hotset.folder of a run with order = "hot_cold", and sets run.hot_folder; else does
/// nothing. One of other data, tables, mapping or cutoff, or cut short, is refused.
Status open_hot_folder(ResolvedRun& run, Files& files);

/// Its inputs, shuffled as data.shuffle says.
Result<std::unique_ptr<HotColdRows>> open_hot_cold_rows(const ResolvedRun& run, ThreadPool& pool,
                                                        Files& files, bool with_numbers = false);

/// Makes the preprocessor's dictionaries full.
Status fill_dictionaries(const HotFolder& folder, preprocess::Preprocessor& preprocessor);

}  // namespace recmill::train
