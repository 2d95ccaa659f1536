// SPDX-License-Identifier: Apache-2.0
#include "reader/writers/writer.h"

#include <algorithm>

#include "reader/file_ending.h"
#include "reader/writers/text_writer.h"
#include "schema/option_ranges.h"
#ifdef RECMILL_WITH_ARROW
#include "reader/columnar/columnar_writer.h"
#endif

namespace recmill::reader {
namespace {

std::string without_compression(const std::string& path) {
  for (const std::string_view suffix : {".gz", ".zst"}) {
    if (has_ending(path, suffix)) return path.substr(0, path.size() - suffix.size());
  }
  return path;
}

Result<std::unique_ptr<Writer>> open_columnar(const WriterOptions& options,
                                              [[maybe_unused]] bool parquet,
                                              const std::string& path,
                                              [[maybe_unused]] const DataSchema& schema,
                                              [[maybe_unused]] Files& files) {
  RECMILL_RETURN_IF_ERROR(check_ranges(options, "writer"));
  if (without_compression(path) != path) {
    return Status::BadRequest(path + ": parquet and arrow files compress inside; name it without " +
                              path.substr(path.rfind('.')));
  }
#ifdef RECMILL_WITH_ARROW
  return parquet ? open_parquet_writer(options, path, schema, files)
                 : open_arrow_writer(options, path, schema, files);
#else
  return Status::BadRequest(path + ": this program was built without Arrow (RECMILL_ARROW=OFF)");
#endif
}

}  // namespace

Result<std::unique_ptr<Writer>> open_writer(const WriterOptions& options, const std::string& path,
                                            const DataSchema& schema, Files& files) {
  const std::string name = without_compression(path);
  if (has_ending(name, ".tsv")) return open_criteo_writer(path, schema, files);
  if (has_ending(name, ".csv")) return open_csv_writer(path, schema, files);
  if (has_ending(name, ".parquet")) return open_columnar(options, true, path, schema, files);
  if (has_ending(name, ".arrow") || has_ending(name, ".feather")) {
    return open_columnar(options, false, path, schema, files);
  }
  return Status::BadRequest(path +
                            ": the name says no format; it may end in .tsv, .csv (each also "
                            ".gz or .zst), .parquet, .arrow or .feather");
}

std::vector<ColumnSpec> written_columns(const DataSchema& schema) {
  std::vector<ColumnSpec> columns;
  const auto add = [&](const std::string& name, ColumnRole role) -> ColumnSpec& {
    columns.emplace_back();
    columns.back().name = name;
    columns.back().role = role;
    columns.back().id_text = IdText::hex;
    return columns.back();
  };
  add("label", ColumnRole::label);
  if (schema.has_sample_weight) add("sample_weight", ColumnRole::sample_weight);
  if (schema.has_time) add("time", ColumnRole::time);
  if (schema.has_group) add("group", ColumnRole::group);
  for (const auto& name : schema.dense) add(name, ColumnRole::dense);
  for (const auto& name : schema.ids) {
    ColumnSpec& column = add(name, ColumnRole::id);
    if (std::ranges::count(schema.bags, name) > 0) column.list_separator = "|";
    if (std::ranges::count(schema.weighted, name) > 0) column.weight_separator = ":";
  }
  return columns;
}

}  // namespace recmill::reader
