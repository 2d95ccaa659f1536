// SPDX-License-Identifier: Apache-2.0
#include "reader/guess_schema.h"

#include <filesystem>

#include "reader/file_ending.h"
#include "reader/guess_text.h"
#ifdef RECMILL_WITH_ARROW
#include "reader/guess_columnar.h"
#endif

namespace recmill::reader {
namespace {

Result<std::string> first_file(Files& files, const std::string& path) {
  if (!files.is_folder(path)) {
    if (files.exists(path)) return path;
    RECMILL_ASSIGN_OR_RETURN(const auto found, glob(path));
    return found[0];
  }
  RECMILL_ASSIGN_OR_RETURN(const auto names, files.list(path));
  for (const std::string& name : names) {
    const std::string file = (std::filesystem::path(path) / name).string();
    if (!files.is_folder(file) && !name.starts_with('.')) return file;
  }
  return Status::BadRequest(path + ": the folder has no files");
}

}  // namespace

Result<SchemaGuess> guess_schema(Files& files, const std::string& path) {
  RECMILL_ASSIGN_OR_RETURN(const std::string file, first_file(files, path));
#ifdef RECMILL_WITH_ARROW
  if (has_ending(file, ".parquet")) return guess_columnar(files, DataFormat::parquet, file);
  for (const char* suffix : {".arrow", ".ipc", ".feather"}) {
    if (has_ending(file, suffix)) return guess_columnar(files, DataFormat::arrow_ipc, file);
  }
#endif
  return guess_text(files, file);
}

}  // namespace recmill::reader
