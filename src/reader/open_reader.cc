// SPDX-License-Identifier: Apache-2.0
#include "reader/open_reader.h"

#include "reader/derived_columns.h"
#include "reader/synthetic/synthetic_reader.h"
#include "reader/text/behavior_log_reader.h"
#include "reader/text/text_reader.h"
#include "schema/option_ranges.h"
#ifdef RECMILL_WITH_ARROW
#include "reader/columnar/columnar_reader.h"
#endif

namespace recmill::reader {

namespace {

Result<std::unique_ptr<Reader>> open_files(const DataOptions& options, Subset subset, uint64_t seed,
                                           ThreadPool& pool, Files& files, ParserKind parser) {
  switch (options.format) {
    case DataFormat::criteo_tsv:
    case DataFormat::csv:
    case DataFormat::libsvm:
    case DataFormat::json_lines:
      return open_text_reader(options, subset, seed, pool, files, parser);
    case DataFormat::parquet:
    case DataFormat::arrow_ipc:
    case DataFormat::orc:
#ifdef RECMILL_WITH_ARROW
      return open_columnar_reader(options, subset, seed, pool, files);
#else
      return Status::BadRequest("data.format: this program was built without Arrow");
#endif
    case DataFormat::synthetic:
      return open_synthetic_reader(options, subset, pool);
    case DataFormat::behavior_log:
      return open_behavior_log(options, subset, seed, pool, files);
  }
  return Status::BadRequest("data.format: no reader is built for " +
                            std::string(name_of(options.format)));
}

}  // namespace

Result<std::unique_ptr<Reader>> open_reader(const DataOptions& options, Subset subset,
                                            uint64_t seed, ThreadPool& pool, Files& files,
                                            ParserKind parser) {
  RECMILL_RETURN_IF_ERROR(check_ranges(options, "data"));
  RECMILL_ASSIGN_OR_RETURN(const DataOptions of_files, without_derived_columns(options));
  RECMILL_ASSIGN_OR_RETURN(auto reader, open_files(of_files, subset, seed, pool, files, parser));
  return with_derived_columns(options, std::move(reader));
}

bool names_evaluation_rows(const DataOptions& options) {
  if (options.format == DataFormat::synthetic) return options.synthetic.eval_rows > 0;
  return !options.eval.empty() || options.split.by != SplitKind::file;
}

int64_t read_ahead_bytes(const DataOptions& options, int64_t columns) {
  if (options.format == DataFormat::synthetic) return 0;  // rows are made as they are read
  return (options.prefetch + 2) * options.shuffle.window * columns * 8;
}

}  // namespace recmill::reader
