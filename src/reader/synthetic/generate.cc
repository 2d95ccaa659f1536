// SPDX-License-Identifier: Apache-2.0
#include "reader/synthetic/generate.h"

#include "base/json/json.h"
#include "base/made_folders.h"
#include "reader/synthetic/synthetic_reader.h"
#include "schema/option_ranges.h"

namespace recmill::reader {
namespace {

struct File {
  std::string path;
  int64_t begin, end;  // rows of the model
};

std::vector<File> files_of(const GenerateOptions& options) {
  std::vector<File> files;
  const int64_t rows = options.data.rows, parts = options.train_files;
  for (int64_t i = 0; i < parts; ++i) {
    const std::string name = parts == 1 ? "train" : "train-" + std::to_string(i);
    files.push_back({options.folder + "/" + name + "." + options.extension, i * rows / parts,
                     (i + 1) * rows / parts});
  }
  if (options.data.eval_rows > 0) {
    files.push_back(
        {options.folder + "/eval." + options.extension, rows, rows + options.data.eval_rows});
  }
  return files;
}

// Without `overwrite` nothing that is there may be replaced, whoever wrote it.
Status refuse_existing(const GenerateOptions& options, const std::string& planted, Files& files) {
  std::vector<std::string> paths{planted};
  for (const File& file : files_of(options)) paths.push_back(file.path);
  for (const std::string& path : paths) {
    if (options.overwrite || !files.exists(path)) continue;
    return Status::BadRequest(path + ": is there already; overwrite = true replaces it");
  }
  return {};
}

}  // namespace

Result<PlantedFigures> generate(const GenerateOptions& options, ThreadPool& pool, Files& files,
                                const AucFunction& auc, const ConvertProgress& progress) {
  RECMILL_RETURN_IF_ERROR(check_ranges(options));
  if (options.train_files > options.data.rows) {
    return Status::BadRequest("train_files: must be at most data.rows, is " +
                              std::to_string(options.train_files));
  }
  auto built = PlantedModel::build(options.data, "data");
  if (!built.ok()) return built.status();
  const auto model = std::make_shared<const PlantedModel>(*std::move(built));
  const std::string planted = options.folder + "/planted.json";
  RECMILL_RETURN_IF_ERROR(refuse_existing(options, planted, files));
  RECMILL_ASSIGN_OR_RETURN(const auto made, MadeFolders::make(files, options.folder));
  if (files.exists(planted)) RECMILL_RETURN_IF_ERROR(files.remove(planted));
  const int64_t total = options.data.rows + options.data.eval_rows;
  for (const File& file : files_of(options)) {
    SyntheticReader reader(model, file.begin, file.end, pool);
    const auto of_all = [&](int64_t rows, int64_t) {
      return !progress || progress(file.begin + rows, total);
    };
    auto written = convert(reader, options.writer, file.path, files, of_all);
    if (!written.ok()) return written.status();
  }
  const PlantedFigures figures = planted_figures(*model, auc);
  RECMILL_RETURN_IF_ERROR(write_atomically(files, planted, to_json(figures).dump(2) + "\n"));
  return figures;
}

}  // namespace recmill::reader
