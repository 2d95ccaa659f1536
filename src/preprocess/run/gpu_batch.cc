// SPDX-License-Identifier: Apache-2.0
#include "preprocess/run/gpu_batch.h"

#include <algorithm>
#include <cstring>

namespace recmill::preprocess {
namespace {

/// A chain's rows are below this, where they are not kNoRow.
u64 rows_made(const CompiledChain& chain) {
  const auto last = chain.ops.empty() ? std::nullopt : chain.ops.back()->on_gpu();
  if (!last) return kNoRow;
  switch (last->kind) {
    case GpuOpKind::direct:
      return last->direct.rows;
    case GpuOpKind::modulo:
      return last->modulo.rows;
    case GpuOpKind::sigrid_hash:
      return last->sigrid_hash.rows;
    case GpuOpKind::bucketize:
      return static_cast<u64>(last->bucketize.count) + 1;
    default:
      return kNoRow;
  }
}

/// So much of an array is copied by one task.
constexpr size_t kCopyBytes = size_t{1} << 20;

/// Null: it is empty, so nobody reads or writes it.
template <class T>
T* device(const StagedArrays& arrays, const StagedArray<T>& array) {
  return array.count == 0 ? nullptr : arrays.device(array);
}

}  // namespace

GpuBatch::GpuBatch(PreprocessCall& call, const ChainSubset& subset,
                   std::span<const GpuChain> chains, GpuBatchMemory& memory, MadeBags& bags,
                   bool to_host)
    : call_(call),
      subset_(subset),
      chains_(chains),
      memory_(memory),
      bags_(bags),
      to_host_(to_host) {
  for (StagedArrays* const arrays :
       {&memory_.inputs, &memory_.results, &bags_.offsets, &bags_.rows})
    arrays->clear();
  const int64_t samples = call_.batch.samples;
  if (subset_.dense) {
    for (const CompiledChain& chain : call_.graph.dense)
      dense_inputs_.push_back(add_dense_column(chain.chain.column_index));
    dense_ = memory_.results.add<float>(samples * call_.dense.columns);
    flattened_ = memory_.results.add<FlattenedCounts>(std::ssize(call_.flattened));
  }
  for (const int feature : subset_.features) features_.push_back(add_feature(feature));
  counts_ = memory_.results.add<IdCounts>(std::ssize(features_));
  const int64_t parts = (samples + kGpuTileSamples - 1) / kGpuTileSamples;
  sent_chains_ = memory_.inputs.add<GpuChain>(std::ssize(chains_));
  tiles_ = memory_.inputs.add<ChainTile>(std::ssize(chains_) * parts);
}

template <class T>
StagedArray<T> GpuBatch::add_input(std::span<const T> from, StagedArrays& to) {
  const auto array = to.add<T>(std::ssize(from));
  inputs_.push_back({from.data(), {array.at, static_cast<int64_t>(from.size_bytes())}, &to});
  return array;
}

StagedArray<float> GpuBatch::add_dense_column(int column) {
  const auto [at, is_new] = dense_columns_.try_emplace(column);
  if (is_new)
    at->second = add_input(std::span<const float>(call_.batch.dense[column]), memory_.inputs);
  return at->second;
}

GpuBatch::IdArrays GpuBatch::add_id_column(int column) {
  const auto [at, is_new] = id_columns_.try_emplace(column);
  if (!is_new) return at->second;
  const IdColumn& raw = call_.batch.ids[column];
  const std::span<const int64_t> offsets(raw.offsets);
  const auto first = static_cast<size_t>(offsets.front());
  const size_t count = static_cast<size_t>(offsets.back()) - first;
  StagedArrays& inputs = memory_.inputs;
  at->second = {add_input(offsets, inputs),
                add_input(std::span<const u64>(raw.ids).subspan(first, count), inputs),
                {}};
  if (!raw.weights.empty())
    at->second.weights =
        add_input(std::span<const float>(raw.weights).subspan(first, count), inputs);
  return at->second;
}

GpuBatch::FeatureArrays GpuBatch::add_feature(int feature) {
  const Chain& chain = call_.graph.features[feature].chain;
  const SparseFeature& out = call_.output(feature);
  const int64_t lookups = out.offsets[call_.batch.samples];
  FeatureArrays arrays;
  if (chain.source == Source::dense) {
    arrays.values = add_dense_column(chain.column_index);
  } else {
    arrays.in = add_id_column(chain.column_index);
    if (call_.plain_column[feature] == 0)
      arrays.offsets = add_input(std::span<const i64>(out.offsets), bags_.offsets);
    arrays.weights = bags_.rows.add<float>(chain.weighted ? lookups : 0);
  }
  arrays.rows = bags_.rows.add<u64>(lookups);
  return arrays;
}

Status GpuBatch::send(Gpu& gpu, ThreadPool& pool, GpuStream& stream) {
  StagedArrays& inputs = memory_.inputs;
  RECMILL_RETURN_IF_ERROR(inputs.allocate(gpu, "columns of a batch"));
  const std::string what = "preprocessed columns of a batch";
  RECMILL_RETURN_IF_ERROR(memory_.results.allocate(gpu, what));
  RECMILL_RETURN_IF_ERROR(bags_.offsets.allocate(gpu, what));
  RECMILL_RETURN_IF_ERROR(to_host_ ? bags_.rows.allocate(gpu, what)
                                   : bags_.rows.allocate_on_gpu(gpu, what));
  std::vector<Copy> copies;
  for (const Input& input : inputs_)
    copies.push_back(
        {input.from, input.of->host(input.to).data(), input.of->host(input.to).size()});
  copy(copies, pool);
  std::ranges::copy(located_chains(), inputs.host(sent_chains_).begin());
  const auto tiles = inputs.host(tiles_);
  const int64_t parts = tiles_.count / std::max<int64_t>(1, std::ssize(chains_));
  for (int64_t t = 0; t < tiles_.count; ++t)
    tiles[t] = {static_cast<i32>(t / parts), static_cast<i32>(t % parts)};
  std::ranges::fill(memory_.results.host(counts_), IdCounts());
  RECMILL_RETURN_IF_ERROR(memory_.results.send(counts_, stream));
  if (flattened_.count > 0) {
    std::ranges::fill(memory_.results.host(flattened_), FlattenedCounts{call_.batch.samples, 0, 0});
    RECMILL_RETURN_IF_ERROR(memory_.results.send(flattened_, stream));
  }
  RECMILL_RETURN_IF_ERROR(bags_.offsets.send(stream));
  return inputs.send(stream);
}

std::vector<GpuChain> GpuBatch::located_chains() const {
  const StagedArrays &inputs = memory_.inputs, &results = memory_.results;
  std::vector<GpuChain> chains(chains_.begin(), chains_.end());
  for (size_t c = 0; c < dense_inputs_.size(); ++c) {
    chains[c].values = device(inputs, dense_inputs_[c]);
    chains[c].dense = device(results, dense_) + c;
    chains[c].dense_stride = call_.dense.columns;
    chains[c].flattened = flattened_.count == 0
                              ? nullptr
                              : results.device(flattened_) + call_.graph.dense_ops_before[c];
  }
  for (size_t f = 0; f < features_.size(); ++f) {
    const FeatureArrays& arrays = features_[f];
    GpuChain& chain = chains[dense_inputs_.size() + f];
    chain.values = device(inputs, arrays.values);
    chain.in_offsets = device(inputs, arrays.in.offsets);
    chain.ids = device(inputs, arrays.in.ids);
    chain.in_weights = device(inputs, arrays.in.weights);
    chain.offsets = device(bags_.offsets, arrays.offsets);
    chain.rows = device(bags_.rows, arrays.rows);
    chain.weights = device(bags_.rows, arrays.weights);
    chain.counts = results.device(counts_) + f;
  }
  return chains;
}

ChainArguments GpuBatch::arguments() const {
  return {memory_.inputs.device(sent_chains_), memory_.inputs.device(tiles_), call_.batch.samples};
}

Status GpuBatch::fetch(GpuStream& stream) {
  if (to_host_) RECMILL_RETURN_IF_ERROR(bags_.rows.fetch(stream));
  return memory_.results.fetch(stream);
}

Status GpuBatch::take(ThreadPool& pool) {
  const StagedArrays& results = memory_.results;
  std::vector<Copy> copies;
  const auto add = [&](const StagedArrays& arrays, const auto& from, auto& to) {
    if (from.count == 0) return;
    const auto staged = std::as_bytes(arrays.host(from));
    copies.push_back({staged.data(), to.data(), staged.size()});
  };
  add(results, dense_, call_.dense.values);
  for (int64_t op = 0; op < flattened_.count; ++op)
    call_.flattened[op].add(results.host(flattened_)[op]);
  for (size_t f = 0; f < features_.size(); ++f) {
    SparseFeature& out = call_.output(subset_.features[f]);
    if (to_host_) {
      add(bags_.rows, features_[f].rows, out.rows);
      add(bags_.rows, features_[f].weights, out.weights);
    }
    call_.counts[subset_.features[f]].ids.add(results.host(counts_)[f]);
  }
  copy(copies, pool);
  place_bags();
  const auto of_host = unfinished();
  if (!to_host_ && !of_host.empty()) RECMILL_RETURN_IF_ERROR(bags_.fetch(of_host, call_.sparse));
  for (const size_t output : of_host) bags_.features[output].are_there = false;
  return {};
}

bool host_finishes(const CompiledGraph& graph, int feature) {
  const CompiledChain& chain = graph.features[feature];
  return chain.chain.normalized || rows_made(chain) > static_cast<u64>(graph.rows[feature]);
}

void GpuBatch::place_bags() {
  bags_.features.assign(call_.sparse.features.size(), {});
  for (size_t f = 0; f < features_.size(); ++f) {
    const FeatureArrays& arrays = features_[f];
    bags_.features[call_.graph.output_of_feature[subset_.features[f]]] = {
        true, device(bags_.offsets, arrays.offsets),
        reinterpret_cast<const int64_t*>(device(bags_.rows, arrays.rows)),
        device(bags_.rows, arrays.weights)};
  }
}

// Outputs of which the host leaves lookups out, names the first that has no row, or divides
// weights.
std::vector<size_t> GpuBatch::unfinished() const {
  std::vector<size_t> outputs;
  const auto counts = memory_.results.host(counts_);
  for (size_t f = 0; f < features_.size(); ++f) {
    const int feature = subset_.features[f];
    if (counts[f].dropped + counts[f].refused > 0 || host_finishes(call_.graph, feature))
      outputs.push_back(static_cast<size_t>(call_.graph.output_of_feature[feature]));
  }
  return outputs;
}

void GpuBatch::copy(std::span<const Copy> copies, ThreadPool& pool) {
  std::vector<Copy> pieces;
  for (const auto& [from, to, bytes] : copies)
    for (size_t at = 0; at < bytes; at += kCopyBytes)
      pieces.push_back({static_cast<const std::byte*>(from) + at, static_cast<std::byte*>(to) + at,
                        std::min(kCopyBytes, bytes - at)});
  pool.run(std::ssize(pieces), [&](int64_t piece) {
    std::memcpy(pieces[piece].to, pieces[piece].from, pieces[piece].bytes);
  });
}

}  // namespace recmill::preprocess
