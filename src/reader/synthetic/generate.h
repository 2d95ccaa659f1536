// SPDX-License-Identifier: Apache-2.0
// What `recmill synth` does: a planted data set as files.
#pragma once

#include <string>

#include "device/thread_pool.h"
#include "reader/synthetic/planted_figures.h"
#include "reader/writers/convert.h"

namespace recmill::reader {

struct GenerateOptions {
  std::string folder = "data/synthetic";
  std::string extension = "tsv";
  int64_t train_files = 1;
  bool overwrite = false;
  WriterOptions writer;
  SyntheticOptions data;
};
template <typename Visitor>
void describe(Visitor& v, GenerateOptions& o) {
  v("folder", o.folder, "folder that the files are written to; made if it is not there");
  v("extension", o.extension,
    "format: tsv (Criteo's), csv, parquet or arrow; tsv and csv also with .gz or .zst");
  v("train_files", o.train_files, "files that the training rows are spread over", between(1, 1e6));
  v("overwrite", o.overwrite, "replaces a data set that is there");
  v("writer", o.writer, "how files are written");
  v("data", o.data, "what the data is like");
}

/// Writes train.EXT (or train-0.EXT, train-1.EXT, ...), eval.EXT and, last, planted.json: where
/// that is there, the data set is whole. Refuses to replace any of them, unless `overwrite`.
/// `progress` counts the rows of all files.
Result<PlantedFigures> generate(const GenerateOptions& options, ThreadPool& pool, Files& files,
                                const AucFunction& auc, const ConvertProgress& progress);

}  // namespace recmill::reader
