// SPDX-License-Identifier: Apache-2.0
// What a file of predictions says of each row besides its score (docs/formats/predictions.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "comm/communicator.h"
#include "reader/reader.h"
#include "reader/writers/column_file.h"
#include "step/rank_batch.h"

namespace recmill::train {

/// Of samples in global order: where they are from, and which have no label.
struct ScoredSources {
  RowKeys keys;
  std::vector<uint8_t> unlabelled;  // [samples]

  int64_t count_unlabelled() const;
};

/// Appends those of a global batch to `all` on rank 0. Collective. `has_keys`: its reader was asked
/// for keys.
Status gather_sources(Communicator& communicator, const RankBatch& batch, bool has_keys,
                      ScoredSources& all);

/// Makes labels of those without one NaN.
void forget_labels(const ScoredSources& sources, std::vector<float>& labels);

/// Writes the columns of docs/formats/predictions.md. `key`: the column whose cells tell rows
/// apart; empty: file and row do. `probability` and labels are of the samples of `sources`.
Status write_predictions(Files& files, const std::string& path, const std::string& key,
                         const reader::KeySource& of_keys, const ScoredSources& sources,
                         const reader::NamedColumn& probability, const std::vector<float>& labels);

}  // namespace recmill::train
