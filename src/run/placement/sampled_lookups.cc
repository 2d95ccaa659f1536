// SPDX-License-Identifier: Apache-2.0
#include "run/placement/sampled_lookups.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "hotset/block_sample.h"
#include "reader/row_blocks.h"

namespace recmill::train {
namespace {

constexpr int64_t kBlockRows = 1000;

}  // namespace

SampledLookups::SampledLookups(const ResolvedRun& run, ThreadPool& pool)
    : run_(run), pool_(pool), kept_(run) {}

Status SampledLookups::open(double share, const char* key, Files& files) {
  const auto seed = static_cast<uint64_t>(run_.options.train.seed);
  DataOptions data = run_.options.data;
  data.shuffle.kind = ShuffleKind::none;
  data.prefetch = 0;  // text that follows a block is not looked at
  RECMILL_ASSIGN_OR_RETURN(data_, open_training_ids(run_, data, seed, pool_, files));
  if (!data_.preprocessor->versions().empty())
    return Status::BadRequest(
        fmt::format("{}: {} of the data cannot tell what all of it makes of ids that are numbered "
                    "or counted as they come (a dictionary, min_count); 1 is all",
                    key, share));
  RECMILL_ASSIGN_OR_RETURN(const auto starts, data_.reader->starts());
  const auto bounds = reader::block_bounds(data_.rows, starts, kBlockRows);
  sample_.all_blocks = sample_.rest_blocks = std::ssize(bounds) - 1;
  sample_.all_rows = sample_.rest_rows = data_.rows;
  for (const hotset::SampledBlock& drawn : hotset::sample_blocks(sample_.all_blocks, share, seed)) {
    const int64_t first = bounds[static_cast<size_t>(drawn.block)];
    const int64_t rows = bounds[static_cast<size_t>(drawn.block) + 1] - first;
    sample_.blocks.push_back({{first, rows}, drawn.judges});
    sample_.drawn_rows += rows;
    if (drawn.judges) continue;
    --sample_.rest_blocks;
    sample_.rest_rows -= rows;
  }
  return {};
}

Status SampledLookups::visit(Part part, int64_t rank, int64_t ranks, Progress& progress,
                             const Visit& visit) {
  std::vector<LookupSample::Block> blocks = sample_.blocks;
  if (part == Part::counting)
    std::erase_if(blocks, [](const LookupSample::Block& block) { return block.judges; });
  const int64_t count = std::ssize(blocks);
  blocks.erase(blocks.begin() + (rank + 1) * count / ranks, blocks.end());
  blocks.erase(blocks.begin(), blocks.begin() + rank * count / ranks);
  std::vector<reader::RowRange> ranges;
  for (const LookupSample::Block& block : blocks) ranges.push_back(block.rows);
  RECMILL_ASSIGN_OR_RETURN(data_.reader,
                           reader::only_rows(std::move(data_.reader), std::move(ranges)));
  int64_t at = 0;  // of the rows that are read
  for (const LookupSample::Block& block : blocks) {
    int64_t next = kFirstBatchRows;
    for (int64_t row = 0; row < block.rows.count; progress.show(at, "")) {
      RECMILL_RETURN_IF_ERROR(
          data_.reader->read(0, at, std::min(next, block.rows.count - row), columns_));
      if (columns_.samples == 0)
        return Status::Failed("the data ended before its last row: it changed while it was read");
      next = rows_of_next_batch(columns_);
      const ColumnBatch& batch = kept_.of(columns_, block.rows.first + row);
      if (batch.samples > 0) {
        RECMILL_RETURN_IF_ERROR(data_.preprocessor->train(batch, dense_, sparse_));
        visit(block, sparse_);
      }
      row += columns_.samples;
      at += columns_.samples;
    }
  }
  return {};
}

}  // namespace recmill::train
