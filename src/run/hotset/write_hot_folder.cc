// SPDX-License-Identifier: Apache-2.0
#include "run/hotset/write_hot_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/json/json.h"
#include "base/paths.h"
#include "hotset_plan/hot_set_file.h"
#include "preprocess/run/preprocessor.h"
#include "reader/writers/writer.h"
#include "run/hotset/count_hot_inputs.h"
#include "run/hotset/hot_folder.h"

namespace recmill::train {
namespace {

/// Writes one of the two files.
class InputWriter {
 public:
  InputWriter(std::unique_ptr<reader::Writer> writer) : writer_(std::move(writer)) {}

  /// The inputs of a batch whose flag is `value`.
  Status write(const ColumnBatch& columns, std::span<const uint8_t> flags, uint8_t value) {
    which_.clear();
    for (int64_t i = 0; i < columns.samples; ++i)
      if (flags[static_cast<size_t>(i)] == value) which_.push_back(i);
    if (which_.empty()) return {};
    clear_samples(batch_);
    append_samples(columns, which_, batch_);
    batch_.keys.numbers.clear();
    for (const int64_t sample : which_) batch_.keys.numbers.push_back(columns.first + sample);
    inputs_ += std::ssize(which_);
    return writer_->write(batch_);
  }
  Status close() { return writer_->close(); }
  int64_t inputs() const { return inputs_; }

 private:
  std::unique_ptr<reader::Writer> writer_;
  int64_t inputs_ = 0;
  std::vector<int64_t> which_;
  ColumnBatch batch_;
};

Result<InputWriter> open_input_writer(const std::string& path, const DataSchema& schema,
                                      Files& files) {
  reader::WriterOptions options;
  options.number_field = hot_files::kInputField;
  RECMILL_ASSIGN_OR_RETURN(auto writer, reader::open_writer(options, path, schema, files));
  return InputWriter(std::move(writer));
}

/// The dictionaries as after all inputs, one list behind the other.
Result<std::pair<std::string, Json>> dictionaries_of(const preprocess::Preprocessor& preprocessor) {
  std::string bytes;
  Json sizes = Json::array();
  const preprocess::DictionaryVersions versions = preprocessor.versions();
  for (size_t d = 0; d < versions.size(); ++d) {
    std::vector<uint64_t> ids(static_cast<size_t>(versions[d]));
    preprocessor.read_dictionary(static_cast<int>(d), 0, ids);
    bytes.append(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(uint64_t));
    sizes.push_back(ids.size());
  }
  return std::pair(std::move(bytes), std::move(sizes));
}

/// Of the table most of whose lookups are far.
std::string coldest_column(const ResolvedRun& run, const HotCensus& census) {
  const std::vector<int64_t>& far = census.counted.far_by_table();
  const auto table = std::ranges::max_element(far) - far.begin();
  const preprocess::FeatureGraph& graph = run.graph;
  for (size_t f = 0; f < graph.features.size(); ++f)
    if (run.spec.features[f].table == table) return graph.features[f].column;
  return run.spec.tables[static_cast<size_t>(table)].name;
}

class HotFolderWriter {
 public:
  HotFolderWriter(const ResolvedRun& run, std::string folder, Files& files)
      : run_(run), folder_(std::move(folder)), files_(files) {}

  Result<WrittenHotFolder> write(HotCensus& census, TrainingLookups& lookups, const Json& origin,
                                 ThreadPool& pool, Progress::Style style) {
    RECMILL_RETURN_IF_ERROR(files_.make_folder(folder_));
    RECMILL_RETURN_IF_ERROR(write_inputs(census, lookups, pool, style));
    if (written_.hot_inputs == 0)
      return Status::BadRequest(
          fmt::format("hotset.bytes: no input is hot: most far lookups are of column '{}'; "
                      "'recmill plan hotset "
                      "--explain' says what more bytes would make hot",
                      coldest_column(run_, census)));
    RECMILL_RETURN_IF_ERROR(write_hot_set(files_, name(hot_files::kSet), census.set));
    RECMILL_ASSIGN_OR_RETURN(const auto dictionaries, dictionaries_of(lookups.preprocessor()));
    RECMILL_RETURN_IF_ERROR(
        write_atomically(files_, name(hot_files::kDictionaries), dictionaries.first));
    Json manifest{{"version", 1},
                  {"origin", origin},
                  {"cutoff", census.set.cutoff},
                  {"inputs", census.set.inputs},
                  {"hot_inputs", written_.hot_inputs},
                  {"cold_inputs", written_.cold_inputs},
                  {"hot_rows", census.set.hot()}};
    manifest["dictionary_sizes"] = dictionaries.second;
    manifest["dictionaries_crc32c"] =
        fmt::format("{:08x}", crc32c(std::as_bytes(std::span(dictionaries.first))));
    for (const char* file :
         {hot_files::kCold, hot_files::kHot, hot_files::kSet, hot_files::kDictionaries}) {
      RECMILL_ASSIGN_OR_RETURN(const auto open, files_.open(name(file)));
      manifest["files"][file] = open->size();
    }
    RECMILL_RETURN_IF_ERROR(
        write_atomically(files_, name(hot_files::kManifest), manifest.dump(1) + "\n"));
    written_.hot_rows = census.set.hot();
    written_.cutoff = census.set.cutoff;
    return written_;
  }

 private:
  std::string name(const char* file) const { return folder_ + "/" + file; }

  Status write_inputs(HotCensus& census, TrainingLookups& lookups, ThreadPool& pool,
                      Progress::Style style) {
    RECMILL_ASSIGN_OR_RETURN(InputWriter cold,
                             open_input_writer(name(hot_files::kCold), lookups.schema(), files_));
    RECMILL_ASSIGN_OR_RETURN(InputWriter hot,
                             open_input_writer(name(hot_files::kHot), lookups.schema(), files_));
    Progress progress(style, "putting hot and cold inputs apart", "rows", lookups.rows());
    RECMILL_RETURN_IF_ERROR(lookups.visit_columns(
        0, lookups.rows(), progress,
        [&](const ColumnBatch& columns, const SparseBatch& sparse) -> Status {
          census.counted.add(sparse, pool);
          RECMILL_RETURN_IF_ERROR(cold.write(columns, census.counted.is_hot(), 0));
          return hot.write(columns, census.counted.is_hot(), 1);
        }));
    RECMILL_RETURN_IF_ERROR(cold.close());
    RECMILL_RETURN_IF_ERROR(hot.close());
    written_.cold_inputs = cold.inputs();
    written_.hot_inputs = hot.inputs();
    return {};
  }

  const ResolvedRun& run_;
  const std::string folder_;
  Files& files_;
  WrittenHotFolder written_;
};

/// What is in the way of a folder, and whether it may be kept.
Result<WrittenHotFolder> reused_folder(const std::string& path, const Json& origin, Files& files) {
  RECMILL_ASSIGN_OR_RETURN(const Json manifest, read_hot_manifest(path, files));
  RECMILL_RETURN_IF_ERROR(
      check_hot_folder_origin(path, manifest.value("origin", Json::object()), origin));
  RECMILL_RETURN_IF_ERROR(check_hot_files(path, manifest, files));
  WrittenHotFolder written;
  written.reused = true;
  written.cold_inputs = manifest.value("cold_inputs", int64_t{0});
  written.hot_inputs = manifest.value("hot_inputs", int64_t{0});
  written.hot_rows = manifest.value("hot_rows", int64_t{0});
  written.cutoff = manifest.value("cutoff", int64_t{0});
  return written;
}

}  // namespace

Result<WrittenHotFolder> write_hot_folder(const ResolvedRun& run, const std::string& path,
                                          bool overwrite, int64_t free, Files& files,
                                          Progress::Style style) {
  if (run.options.train.negative_keep < 1.0)
    return Status::BadRequest(
        fmt::format("train.negative_keep: is {}, and --hotcold puts every input apart",
                    run.options.train.negative_keep));
  RECMILL_ASSIGN_OR_RETURN(const Json origin, hot_folder_origin(run, files));
  if (files.exists(path)) {
    if (!files.exists(path + "/" + hot_files::kManifest))
      return Status::BadRequest(fmt::format(
          "--hotcold {}: is there, and is no folder that --hotcold has written", whole_path(path)));
    auto kept = reused_folder(path, origin, files);
    if (kept.ok() || !overwrite) return kept;
  }
  const ResolvedRun ordered = in_order_of_data(run);
  const auto pool = make_pool(run.threads);
  TrainingLookups lookups(ordered, *pool);
  RECMILL_RETURN_IF_ERROR(lookups.open(files));
  RECMILL_ASSIGN_OR_RETURN(const auto census,
                           decide_in_order_of_data(ordered, free, lookups, *pool, files, style));
  const std::string beside = path + ".tmp";
  if (files.exists(beside)) RECMILL_RETURN_IF_ERROR(files.remove(beside));
  HotFolderWriter writer(run, beside, files);
  auto written = writer.write(*census, lookups, origin, *pool, style);
  if (!written.ok()) {
    (void)files.remove(beside).ok();
    return written;
  }
  if (files.exists(path)) RECMILL_RETURN_IF_ERROR(files.remove(path));
  RECMILL_RETURN_IF_ERROR(files.rename(beside, path));
  return written;
}

}  // namespace recmill::train
