// SPDX-License-Identifier: Apache-2.0
#include "step/scorer.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "step/place_rows.h"

namespace recmill::train {
namespace {

constexpr int64_t kWholeVectors = 32;  // samples: whole vectors of whatever instruction set

}  // namespace

Result<float*> reserve_rows(Buffer& buffer, int64_t count) {
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  if (buffer.size() < bytes) {
    buffer = {};
    auto larger = Buffer::allocate(bytes);
    if (!larger.ok()) return larger.status().at("rows looked up by a batch");
    buffer = *std::move(larger);
  }
  return buffer.as<float>().data();
}

Scorer::Scorer(const ModelSpec& spec, const model::Model& model, store::EmbeddingStore& store,
               Communicator& communicator, ThreadPool& pool, int slices)
    : features_(spec),
      model_(model),
      store_(store),
      communicator_(communicator),
      pool_(pool),
      own_(slices_of_rank(communicator.rank(), communicator.ranks(), slices)),
      layout_(model.embedding_layout()),
      reduce_sums_(communicator, slices, pool) {}

Status Scorer::predict(const RankBatch& batch, ForwardState& state) {
  RECMILL_RETURN_IF_ERROR(bind(batch, /*training=*/false, state));
  const Stopwatch watch;
  const auto before = communicator_.traffic().received;
  RECMILL_RETURN_IF_ERROR(look_up(batch, state));
  state.received = static_cast<int64_t>(communicator_.traffic().received - before);
  state.lookup_seconds = watch.seconds();
  return run_layers(batch, state);
}

Status Scorer::bind(const RankBatch& batch, bool training, ForwardState& state) {
  const int64_t samples = batch.samples();
  RECMILL_ASSIGN_OR_RETURN(float* const pooled,
                           reserve_rows(state.pooled, samples * layout_.stride));
  state.training = training;
  state.logits.resize(samples);
  state.sequences.resize(features_.sequences().size());
  std::vector<float*> sequences;
  for (const FeatureLayout::Feature& feature : features_.sequences()) {
    std::vector<float>& rows = state.sequences[feature.sequence];
    rows.resize(feature.rows_out(batch.sparse) * feature.dim);
    sequences.push_back(rows.data());
  }
  state.outputs = place_rows<store::FeatureOutput>(features_, layout_, pooled, sequences);
  state.totals.resize(model_.phases());
  state.slices.resize(own_.size());
  for (size_t slice = 0; slice < state.slices.size(); ++slice) bind_slice(batch, slice, state);
  return {};
}

void Scorer::bind_slice(const RankBatch& batch, size_t index, ForwardState& state) const {
  const int slice = own_.begin + static_cast<int>(index);
  const int64_t begin = batch.begin_of(slice);
  const int64_t samples = batch.cut.end(slice) - batch.cut.begin(slice);
  const int64_t step = std::min(std::max<int64_t>(1, samples), model_.block_samples());
  auto& blocks = state.slices[index].blocks;
  blocks.resize((samples + step - 1) / step);
  for (size_t b = 0; b < blocks.size(); ++b) {
    const int64_t first = static_cast<int64_t>(b) * step;
    bind_block(batch, begin + first, std::min(step, samples - first), state, blocks[b]);
  }
}

// Samples [begin, begin + samples) of the rank's.
void Scorer::bind_block(const RankBatch& batch, int64_t begin, int64_t samples, ForwardState& state,
                        ForwardState::Block& block) const {
  block.begin = begin;
  block.input = {.first_sample = batch.dense.first + begin,
                 .iteration = batch.before.iteration,
                 .samples = samples,
                 .training = state.training,
                 .dense = batch.dense.values.data() + begin * batch.dense.columns,
                 .pooled = state.pooled.as<float>().data() + begin * layout_.stride,
                 .sequences = {},
                 .rows = {}};
  block.logits = std::span(state.logits).subspan(begin, samples);
  block.sequences.clear();
  for (const FeatureLayout::Feature& feature : features_.sequences()) {
    const int64_t* const all = batch.sparse.features[feature.index].offsets.data();
    const int64_t* const offsets = all + begin;
    const int64_t at = (offsets[0] - all[0]) * feature.dim;
    block.sequences.push_back({state.sequences[feature.sequence].data() + at, offsets});
  }
  block.input.sequences = block.sequences;
  if (!model_.reads_rows()) return;
  block.rows.clear();
  for (const SparseFeature& feature : batch.sparse.features)
    block.rows.push_back(feature.view(batch.samples()).slice(begin, begin + samples));
  block.input.rows = block.rows;
}

Status Scorer::look_up(const RankBatch& batch, ForwardState& state) {
  Stream stream(pool_);
  return store_.lookup(*batch.prepared, state.outputs, stream);
}

Status Scorer::run_layers(const RankBatch& batch, ForwardState& state, const AfterBlock& after) {
  if (!state.training && model_.scores_in_any_block()) return run_in_any_blocks(batch, state);
  const int phases = model_.phases();
  for (int phase = 0; phase < phases; ++phase) {
    const bool last = phase + 1 == phases;
    RECMILL_RETURN_IF_ERROR(over_slices(state, [&](size_t slice) -> Status {
      ForwardState::Slice& of = state.slices[slice];
      if (of.activations == nullptr) of.activations = take_activations();
      const Status outcome = run_slice(phase, slice, state, after);
      if (phases == 1 || (!state.training && last)) give_back(std::move(of.activations));
      return outcome;
    }));
    if (!last)
      RECMILL_RETURN_IF_ERROR(add_sums(state, model_.forward_sum_size(phase), state.totals[phase]));
  }
  return {};
}

Status Scorer::run_slice(int phase, size_t index, ForwardState& state,
                         const AfterBlock& after) const {
  ForwardState::Slice& slice = state.slices[index];
  const bool last = phase + 1 == model_.phases();
  const std::span<const float> total =
      phase == 0 ? std::span<const float>() : std::span<const float>(state.totals[phase - 1]);
  for (size_t b = 0; b < slice.blocks.size(); ++b) {
    ForwardState::Block& block = slice.blocks[b];
    slice.sum.assign(model_.forward_sum_size(phase), 0.0f);
    RECMILL_RETURN_IF_ERROR(
        model_.forward(phase, block.input, total, *slice.activations, slice.sum, block.logits));
    if (last && after) RECMILL_RETURN_IF_ERROR(after(index, b));
  }
  return {};
}

// The logits of the rank's samples, whatever slice they are of: in as few blocks as occupy all
// threads, as each of them reads all parameters.
Status Scorer::run_in_any_blocks(const RankBatch& batch, ForwardState& state) {
  const int64_t samples = batch.samples(), threads = pool_.threads();
  const auto ceiling = [](int64_t n, int64_t of) { return n > 0 ? (n - 1) / of + 1 : 1; };
  const int64_t rounds = ceiling(samples, threads * model_.block_samples());
  const int64_t vectors = ceiling(ceiling(samples, threads * rounds), kWholeVectors);
  const int64_t step = std::min(vectors * kWholeVectors, model_.block_samples());
  std::vector<ForwardState::Block> blocks((samples + step - 1) / step);
  std::vector<Status> outcomes(blocks.size());
  pool_.run(static_cast<int64_t>(blocks.size()), [&](int64_t b) {
    bind_block(batch, b * step, std::min(step, samples - b * step), state, blocks[b]);
    auto activations = take_activations();
    outcomes[b] = model_.forward(0, blocks[b].input, {}, *activations, {}, blocks[b].logits);
    give_back(std::move(activations));
  });
  for (Status& outcome : outcomes) RECMILL_RETURN_IF_ERROR(std::move(outcome));
  return {};
}

Status Scorer::over_slices(const ForwardState& state,
                           const std::function<Status(size_t slice)>& body) {
  std::vector<Status> outcomes(state.slices.size());
  pool_.run(static_cast<int64_t>(state.slices.size()), [&](int64_t slice) {
    if (!state.slices[slice].blocks.empty()) outcomes[slice] = body(static_cast<size_t>(slice));
  });
  for (Status& outcome : outcomes) RECMILL_RETURN_IF_ERROR(std::move(outcome));
  return {};
}

Status Scorer::add_sums(const ForwardState& state, int64_t size, std::vector<float>& total) {
  total.assign(size, 0.0f);
  if (size == 0) return {};
  return add_slices<float>(
      reduce_sums_, state, [&](size_t slice) { return state.slices[slice].sum.data(); }, total);
}

std::unique_ptr<model::SliceState> Scorer::take_activations() {
  const std::lock_guard lock(mutex_);
  if (free_activations_.empty()) return model_.make_state();
  auto activations = std::move(free_activations_.back());
  free_activations_.pop_back();
  return activations;
}

void Scorer::give_back(std::unique_ptr<model::SliceState> activations) {
  const std::lock_guard lock(mutex_);
  free_activations_.push_back(std::move(activations));
}

}  // namespace recmill::train
