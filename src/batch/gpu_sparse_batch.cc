// SPDX-License-Identifier: Apache-2.0
#include "batch/gpu_sparse_batch.h"

#include <algorithm>
#include <cstring>

#include "device/gpu/staged_arrays.h"

namespace recmill {

Status GpuSparseBatch::made_by(GpuStream& stream) {
  if (!made_) {
    RECMILL_ASSIGN_OR_RETURN(made_, gpu_.open_event());
  }
  return made_->record(stream);
}

Status GpuSparseBatch::read_by(GpuStream& stream) {
  auto of = std::ranges::find(readers_, stream.handle(), &Reader::stream);
  if (of == readers_.end()) {
    of = readers_.insert(of, Reader{stream.handle(), {}});
    RECMILL_ASSIGN_OR_RETURN(of->last, gpu_.open_event());
  }
  return of->last.record(stream);
}

Status GpuSparseBatch::finish() {
  for (Reader& reader : readers_) RECMILL_RETURN_IF_ERROR(reader.last.synchronize());
  return {};
}

// Rows of all of them, then weights of all, so that each is aligned.
Status GpuSparseBatch::fetch(std::span<const size_t> which, SparseBatch& batch) {
  struct Part {
    const void* from;
    size_t bytes;
  };
  std::vector<Part> parts;
  const auto lookups = [&](size_t f) {
    return static_cast<size_t>(batch.features[f].offsets.back());
  };
  for (const size_t f : which) parts.push_back({features[f].rows, lookups(f) * sizeof(int64_t)});
  for (const size_t f : which)
    parts.push_back(
        {features[f].weights, features[f].weights == nullptr ? 0 : lookups(f) * sizeof(float)});
  size_t bytes = 0;
  for (const Part& part : parts) bytes += part.bytes;
  if (copies_.handle() == nullptr) {
    RECMILL_ASSIGN_OR_RETURN(copies_, gpu_.open_stream());
  }
  RECMILL_RETURN_IF_ERROR(reserve(copied_, bytes, gpu_, "rows of a batch for the host"));
  RECMILL_RETURN_IF_ERROR(wait(copies_));
  std::byte* at = copied_.as<std::byte>().data();
  for (const Part& part : parts) {
    if (part.bytes == 0) continue;
    RECMILL_RETURN_IF_ERROR(gpu_.driver().copy(at, part.from, part.bytes, copies_.handle()));
    at += part.bytes;
  }
  RECMILL_RETURN_IF_ERROR(copies_.synchronize());
  const std::byte* from = copied_.as<std::byte>().data();
  const auto take = [&](auto& values, size_t count) {
    values.resize(count);
    if (count > 0) std::memcpy(values.data(), from, count * sizeof values[0]);
    from += count * sizeof values[0];
  };
  for (const size_t f : which) take(batch.features[f].rows, lookups(f));
  for (const size_t f : which) {
    take(batch.features[f].weights, features[f].weights == nullptr ? 0 : lookups(f));
    batch.features[f].on_host = true;
  }
  return {};
}

Status bring_to_host(SparseBatch& batch) {
  std::vector<size_t> missing;
  for (size_t f = 0; f < batch.features.size(); ++f)
    if (!batch.features[f].on_host) missing.push_back(f);
  if (!missing.empty()) RECMILL_RETURN_IF_ERROR(batch.on_gpu->fetch(missing, batch));
  batch.on_gpu.reset();
  return {};
}

Result<std::vector<int64_t>> rows_of(const SparseBatch& batch, size_t feature) {
  const SparseFeature& of = batch.features[feature];
  if (of.on_host)
    return std::vector<int64_t>(of.rows.begin() + of.offsets.front(),
                                of.rows.begin() + of.offsets.back());
  SparseBatch copy;
  copy.features.resize(batch.features.size());
  copy.features[feature].offsets = of.offsets;
  RECMILL_RETURN_IF_ERROR(batch.on_gpu->fetch({&feature, 1}, copy));
  return std::move(copy.features[feature].rows);
}

}  // namespace recmill
