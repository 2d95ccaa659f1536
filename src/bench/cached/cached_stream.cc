// SPDX-License-Identifier: Apache-2.0
#include "bench/cached/cached_stream.h"

#include "bench/looked_up_rows.h"
#include "bench/placed/small_shape.h"

namespace recmill::bench {

CachedStream CachedStream::make(const FrozenShape& shape, double zipf, int64_t count,
                                int64_t samples, int rank, int ranks, ThreadPool& pool) {
  CachedStream stream;
  stream.model = small_model(shape);
  stream.rank = rank;
  stream.ranks = ranks;
  while (stream.slices < ranks) stream.slices *= 2;
  const ShapeDraw draw(shape, zipf, kTimedSeed);
  stream.batches.resize(static_cast<size_t>(count));
  for (int64_t b = 0; b < count; ++b)
    draw.draw((b * ranks + rank) * samples, samples, stream.batches[b], pool);
  return stream;
}

Result<bool> CachedStreamSource::next(train::RankBatch& batch) {
  if (next_ == std::ssize(stream_.batches)) return false;
  const store::Batch part = part_of_batch(stream_.batches[next_], stream_.rank, stream_.ranks,
                                          stream_.slices, next_, store::Purpose::train);
  batch.purpose = part.purpose;
  batch.before.iteration = next_;
  batch.cut = part.cut;
  batch.first_slice = part.first_slice;
  batch.end_slice = part.end_slice;
  batch.sparse = stream_.batches[next_++];
  return true;
}

}  // namespace recmill::bench
