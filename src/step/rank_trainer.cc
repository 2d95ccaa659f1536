// SPDX-License-Identifier: Apache-2.0
#include "step/rank_trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <utility>

#include "step/loss.h"
#include "step/non_finite.h"

namespace recmill::train {
namespace {

constexpr int64_t kWholeVectors = 32;  // samples: whole vectors of whatever instruction set
constexpr int64_t kPiece = 2048;       // parameters; their gradient stays in the first-level cache

/// Room for at least `count` floats; what it held is lost where it grows.
Result<float*> reserve(Buffer& buffer, int64_t count) {
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  if (buffer.size() < bytes) {
    buffer = {};
    auto larger = Buffer::allocate(bytes);
    if (!larger.ok()) return larger.status().at("rows looked up by a batch");
    buffer = *std::move(larger);
  }
  return buffer.as<float>().data();
}

}  // namespace

// What the model takes at once: a slice, or a block of it.
struct RankTrainer::Block {
  model::SliceInput input;
  std::vector<model::SliceInput::Sequence> sequences;
  std::vector<float*> sequence_gradients;
  std::vector<JaggedView> rows;
  std::span<float> logits, logit_gradient;
  std::span<const float> labels, weights;
  model::SliceGradient gradient;
};

struct RankTrainer::Slice {
  int index = 0;                             // of the global batch
  std::unique_ptr<model::SliceState> state;  // held from the first forward to the last backward
  std::vector<Block> blocks;                 // none: no samples
  std::vector<float> sum;                    // what the slice adds at the end of a phase
  float* parameter_gradient = nullptr;
  double loss = 0.0;
};

RankTrainer::RankTrainer(const ModelSpec& spec, model::Model& model, store::EmbeddingStore& store,
                         DenseOptimizer& dense_optimizer, Communicator& communicator,
                         ThreadPool& pool, int slices, Buffer parameters,
                         std::unique_ptr<GradientReduction> beside)
    : spec_(spec),
      model_(model),
      store_(store),
      dense_optimizer_(dense_optimizer),
      communicator_(communicator),
      pool_(pool),
      stream_(pool),
      stages_(communicator),
      slices_(slices),
      layout_(model.embedding_layout()),
      parameters_(std::move(parameters)),
      slice_gradients_(slices_of_rank(communicator.rank(), communicator.ranks(), slices),
                       model.parameter_count()),
      reduce_gradient_(communicator, slices, pool),
      reduce_phase_(communicator, slices, pool),
      reduce_loss_(communicator, slices, pool),
      beside_(std::move(beside)) {
  const SliceRange own = slices_of_rank(communicator.rank(), communicator.ranks(), slices);
  for (int slice = own.begin; slice < own.end; ++slice) {
    slice_.push_back(std::make_unique<Slice>());
    slice_.back()->index = slice;
  }
  for (size_t f = 0; f < spec.features.size(); ++f) {
    if (spec.features[f].pooling == Pooling::none) {
      sequences_.emplace_back();
      sequence_gradients_.emplace_back();
    }
  }
  forward_totals_.resize(model.phases());
  backward_totals_.resize(model.phases());
}

RankTrainer::~RankTrainer() = default;

Status RankTrainer::load_parameters() {
  return model_.load(parameters(), pool_);
}

// Sizes the buffers for the batch and points the store and the slices at them.
Status RankTrainer::bind(const RankBatch& batch, bool training) {
  const int64_t samples = batch.samples();
  RECMILL_ASSIGN_OR_RETURN(float* const pooled, reserve(pooled_, samples * layout_.stride));
  logits_.resize(samples);
  float* pooled_gradient = nullptr;
  if (training) {
    RECMILL_ASSIGN_OR_RETURN(pooled_gradient, reserve(pooled_gradient_, samples * layout_.stride));
    logit_gradient_.resize(samples);
  }
  outputs_.clear();
  gradients_.clear();
  size_t sequence = 0;
  for (size_t f = 0; f < spec_.features.size(); ++f) {
    if (spec_.features[f].pooling != Pooling::none) {
      outputs_.push_back({pooled + layout_.offset[f], layout_.stride});
      gradients_.push_back(
          {training ? pooled_gradient + layout_.offset[f] : nullptr, layout_.stride});
      continue;
    }
    const int64_t dim = spec_.dim_of(f);
    const int64_t lookups = batch.sparse.features[f].view(samples).lookups();
    sequences_[sequence].resize(lookups * dim);
    if (training) sequence_gradients_[sequence].resize(lookups * dim);
    outputs_.push_back({sequences_[sequence].data(), dim});
    gradients_.push_back({sequence_gradients_[sequence].data(), dim});
    ++sequence;
  }
  for (size_t slice = 0; slice < slice_.size(); ++slice) bind_slice(batch, slice, training);
  return {};
}

void RankTrainer::bind_slice(const RankBatch& batch, size_t index, bool training) {
  Slice& slice = *slice_[index];
  const int64_t begin = batch.begin_of(slice.index);
  const int64_t samples = batch.cut.end(slice.index) - batch.cut.begin(slice.index);
  const int64_t step = std::min(std::max<int64_t>(1, samples), model_.block_samples());
  slice.blocks.resize((samples + step - 1) / step);
  for (size_t b = 0; b < slice.blocks.size(); ++b) {
    const int64_t first = static_cast<int64_t>(b) * step;
    bind_block(batch, begin + first, std::min(step, samples - first), training, slice.blocks[b]);
    slice.blocks[b].gradient.accumulate = b > 0;
  }
}

// Samples [begin, begin + samples) of the rank's.
void RankTrainer::bind_block(const RankBatch& batch, int64_t begin, int64_t samples, bool training,
                             Block& block) {
  const auto part = [&](auto& whole) { return std::span(whole).subspan(begin, samples); };
  block.input = {.first_sample = batch.dense.first + begin,
                 .iteration = batch.before.iteration,
                 .samples = samples,
                 .training = training,
                 .dense = batch.dense.values.data() + begin * batch.dense.columns,
                 .pooled = pooled_.as<float>().data() + begin * layout_.stride,
                 .sequences = {},
                 .rows = {}};
  block.gradient = {
      .pooled = training ? pooled_gradient_.as<float>().data() + begin * layout_.stride : nullptr,
      .sequences = {},
      .parameters = nullptr};
  block.logits = part(logits_);
  block.logit_gradient = training ? part(logit_gradient_) : std::span<float>();
  block.labels = part(batch.dense.labels);
  block.weights = batch.dense.sample_weights.empty() ? std::span<const float>()
                                                     : part(batch.dense.sample_weights);
  block.sequences.clear();
  block.sequence_gradients.clear();
  for (size_t f = 0; f < spec_.features.size(); ++f) {
    if (spec_.features[f].pooling != Pooling::none) continue;
    const size_t sequence = block.sequences.size();
    const int64_t* offsets = batch.sparse.features[f].offsets.data() + begin;
    const int64_t at = (offsets[0] - batch.sparse.features[f].offsets[0]) * spec_.dim_of(f);
    block.sequences.push_back({sequences_[sequence].data() + at, offsets});
    if (training) block.sequence_gradients.push_back(sequence_gradients_[sequence].data() + at);
  }
  block.input.sequences = block.sequences;
  if (model_.reads_rows()) {
    block.rows.clear();
    for (const SparseFeature& feature : batch.sparse.features) {
      block.rows.push_back(feature.view(batch.samples()).slice(begin, begin + samples));
    }
    block.input.rows = block.rows;
  }
  block.gradient.sequences = block.sequence_gradients;
}

Status RankTrainer::run_slices(const std::function<Status(Slice&)>& body) {
  std::vector<Status> outcomes(slice_.size());
  pool_.run(static_cast<int64_t>(slice_.size()), [&](int64_t slice) {
    if (!slice_[slice]->blocks.empty()) outcomes[slice] = body(*slice_[slice]);
  });
  for (Status& outcome : outcomes) RECMILL_RETURN_IF_ERROR(std::move(outcome));
  return {};
}

template <typename T>
Status RankTrainer::reduce_slices(OrderedReduce<T>& reduce,
                                  const std::function<const T*(size_t slice)>& part_of,
                                  std::span<T> total) {
  std::vector<SlicePart<T>> parts;
  for (size_t slice = 0; slice < slice_.size(); ++slice) {
    if (slice_[slice]->blocks.empty()) continue;
    const int global = slice_[slice]->index;
    parts.push_back({{global, global + 1}, part_of(slice)});
  }
  return reduce(parts, total);
}

Status RankTrainer::reduce_phase(int64_t size, std::vector<float>& total) {
  total.assign(size, 0.0f);
  if (size == 0) return {};
  return reduce_slices<float>(
      reduce_phase_, [&](size_t slice) { return slice_[slice]->sum.data(); }, total);
}

std::unique_ptr<model::SliceState> RankTrainer::take_state() {
  std::lock_guard lock(state_mutex_);
  if (free_states_.empty()) free_states_.push_back(model_.make_state());
  auto state = std::move(free_states_.back());
  free_states_.pop_back();
  return state;
}

void RankTrainer::give_state_back(std::unique_ptr<model::SliceState> state) {
  std::lock_guard lock(state_mutex_);
  free_states_.push_back(std::move(state));
}

Status RankTrainer::forward_phase(int phase, Slice& slice, Block& block) {
  const std::span<const float> total =
      phase == 0 ? std::span<const float>() : std::span<const float>(forward_totals_[phase - 1]);
  slice.sum.assign(model_.forward_sum_size(phase), 0.0f);
  RECMILL_RETURN_IF_ERROR(
      model_.forward(phase, block.input, total, *slice.state, slice.sum, block.logits));
  if (phase + 1 == model_.phases()) add_loss(slice, block);
  return {};
}

void RankTrainer::add_loss(Slice& slice, Block& block) const {
  slice.loss = add_log_loss(slice.loss, block.logits, block.labels, block.weights, global_samples_,
                            block.logit_gradient);
}

Status RankTrainer::backward_phase(int phase, Slice& slice, Block& block) {
  const bool first = phase + 1 == model_.phases();
  const std::span<const float> total =
      first ? std::span<const float>() : std::span<const float>(backward_totals_[phase + 1]);
  slice.sum.assign(model_.backward_sum_size(phase), 0.0f);
  if (!slice.parameter_gradient) {
    RECMILL_ASSIGN_OR_RETURN(slice.parameter_gradient, slice_gradients_.take());
  }
  block.gradient.parameters = slice.parameter_gradient;
  return model_.backward(phase, block.input, total, block.logit_gradient, *slice.state, slice.sum,
                         block.gradient);
}

// After a slice's last pass, of a failed slice too: reset() takes its gradient back.
void RankTrainer::finish(Slice& slice) {
  if (slice.parameter_gradient) {
    slice_gradients_.put(slice.index, std::exchange(slice.parameter_gradient, nullptr));
  }
  give_state_back(std::move(slice.state));
}

// Without a synchronisation a block's backward follows its forward, while its activations are warm.
Status RankTrainer::run_blocks(Slice& slice) {
  for (Block& block : slice.blocks) {
    RECMILL_RETURN_IF_ERROR(forward_phase(0, slice, block));
    if (block.input.training) RECMILL_RETURN_IF_ERROR(backward_phase(0, slice, block));
  }
  return {};
}

// The logits of the rank's samples, whatever slice they are of: in as few blocks as occupy all
// threads, as each of them reads all parameters.
Status RankTrainer::score_in_blocks(const RankBatch& batch) {
  const int64_t samples = batch.samples(), threads = pool_.threads();
  const auto ceiling = [](int64_t n, int64_t of) { return n > 0 ? (n - 1) / of + 1 : 1; };
  const int64_t rounds = ceiling(samples, threads * model_.block_samples());
  const int64_t vectors = ceiling(ceiling(samples, threads * rounds), kWholeVectors);
  const int64_t step = std::min(vectors * kWholeVectors, model_.block_samples());
  std::vector<Block> blocks((samples + step - 1) / step);
  std::vector<Status> outcomes(blocks.size());
  pool_.run(static_cast<int64_t>(blocks.size()), [&](int64_t b) {
    bind_block(batch, b * step, std::min(step, samples - b * step), /*training=*/false, blocks[b]);
    auto state = take_state();
    outcomes[b] = model_.forward(0, blocks[b].input, {}, *state, {}, blocks[b].logits);
    give_state_back(std::move(state));
  });
  for (Status& outcome : outcomes) RECMILL_RETURN_IF_ERROR(std::move(outcome));
  return run_slices([&](Slice& slice) -> Status {
    for (Block& block : slice.blocks) add_loss(slice, block);
    return {};
  });
}

Status RankTrainer::forward(const RankBatch& batch, bool training) {
  RECMILL_RETURN_IF_ERROR(bind(batch, training));
  if (training) slice_gradients_.reset();
  global_samples_ = batch.cut.samples;
  for (auto& slice : slice_) {
    slice->loss = 0.0;
    slice->parameter_gradient = nullptr;  // after a failure reset() has taken it back
  }
  stages_.enter(Stage::lookup);
  RECMILL_RETURN_IF_ERROR(store_.lookup(*batch.prepared, outputs_, stream_));
  stages_.enter(Stage::dense_layers);
  if (!training && model_.scores_in_any_block()) return score_in_blocks(batch);
  const int phases = model_.phases();
  for (int phase = 0; phase < phases; ++phase) {
    RECMILL_RETURN_IF_ERROR(run_slices([&](Slice& slice) -> Status {
      if (slice.state == nullptr) slice.state = take_state();
      const Status outcome =
          phases == 1 ? run_blocks(slice) : forward_phase(phase, slice, slice.blocks.front());
      if (phases == 1 || (!training && phase + 1 == phases)) finish(slice);
      return outcome;
    }));
    if (phase + 1 < phases) {
      RECMILL_RETURN_IF_ERROR(reduce_phase(model_.forward_sum_size(phase), forward_totals_[phase]));
    }
  }
  return {};
}

Status RankTrainer::backward_phases() {
  for (int phase = model_.phases() - 1; phase >= 0; --phase) {
    RECMILL_RETURN_IF_ERROR(run_slices([&](Slice& slice) {
      const Status outcome = backward_phase(phase, slice, slice.blocks.front());
      if (phase == 0) finish(slice);
      return outcome;
    }));
    if (phase > 0) {
      RECMILL_RETURN_IF_ERROR(
          reduce_phase(model_.backward_sum_size(phase), backward_totals_[phase]));
    }
  }
  return {};
}

Result<StepResult> RankTrainer::result(const RankBatch& batch) {
  StepResult result;
  RECMILL_RETURN_IF_ERROR(reduce_slices<double>(
      reduce_loss_, [&](size_t slice) { return &slice_[slice]->loss; },
      std::span<double>(&result.loss, 1)));
  result.samples = batch.cut.samples;
  result.logits = logits_;
  if (std::isfinite(result.loss)) return result;
  const Status cause =
      name_non_finite({spec_, batch, outputs_, model_.parameters(), parameters(), logits_});
  return cause.ok() ? Status::Failed("the loss is not finite; the cause is on another rank")
                    : cause;
}

bool RankTrainer::needs_whole_gradient() const {
  return communicator_.ranks() > 1 || dense_optimizer_.clips();
}

Status RankTrainer::sum_gradients() {
  if (!needs_whole_gradient()) return {};
  stages_.enter(Stage::dense_gradients);
  gradient_.resize(model_.parameter_count());
  return reduce_gradient_(slice_gradients_.parts(), gradient_);
}

// Where nobody needs the whole gradient, a piece of it is added over slices, applied and packed
// while a cache holds it.
Status RankTrainer::update_parameters(const store::Step& step) {
  const auto parts = slice_gradients_.parts();
  const bool whole = needs_whole_gradient();
  stages_.enter(Stage::dense_update);
  dense_optimizer_.begin(step.iteration, step.learning_rate_scale, gradient_, pool_);
  return model_.load(parameters(), pool_, [&](int64_t begin, int64_t end) {
    std::array<float, kPiece> sum;
    for (int64_t at = begin; at < end; at += kPiece) {
      const int64_t count = std::min(kPiece, end - at);
      const auto piece =
          whole ? std::span(gradient_).subspan(at, count) : std::span(sum).first(count);
      if (!whole) tree_sum<float>({0, slices_}, parts, piece, at);
      dense_optimizer_.apply(at, piece, parameters());
    }
  });
}

Status RankTrainer::update_rows(const RankBatch& batch, const store::Step& step) {
  stages_.enter(Stage::row_update);
  const store::Update update{batch.prepared.get(), gradients_};
  return store_.update(std::span(&update, 1), step, stream_);
}

Status RankTrainer::update(const RankBatch& batch, const store::Step& step) {
  if (beside_ == nullptr) {
    RECMILL_RETURN_IF_ERROR(sum_gradients());
    RECMILL_RETURN_IF_ERROR(update_parameters(step));
    return update_rows(batch, step);
  }
  gradient_.resize(model_.parameter_count());
  beside_->begin(slice_gradients_.parts(), gradient_);
  const Status rows = update_rows(batch, step);
  if (!rows.ok()) communicator_.abort(rows);  // or finish() would wait for ranks that wait for us
  stages_.enter(Stage::dense_gradients);
  const auto reduced = beside_->finish();
  RECMILL_RETURN_IF_ERROR(rows);
  RECMILL_RETURN_IF_ERROR(reduced.status());
  stages_.add(reduced->traffic, reduced->seconds);
  return update_parameters(step);
}

Result<StepResult> RankTrainer::train(const RankBatch& batch, const store::Step& step) {
  RECMILL_RETURN_IF_ERROR(forward(batch, /*training=*/true));
  RECMILL_ASSIGN_OR_RETURN(StepResult outcome, result(batch));
  if (model_.phases() > 1) RECMILL_RETURN_IF_ERROR(backward_phases());
  model_.finish_iteration(forward_totals_, batch.cut.samples, parameters());
  RECMILL_RETURN_IF_ERROR(update(batch, step));
  return outcome;
}

Result<std::span<const float>> RankTrainer::predict(const RankBatch& batch) {
  RECMILL_RETURN_IF_ERROR(forward(batch, /*training=*/false));
  return std::span<const float>(logits_);
}

Result<StepResult> RankTrainer::score(const RankBatch& batch) {
  RECMILL_RETURN_IF_ERROR(predict(batch).status());
  return result(batch);
}

}  // namespace recmill::train
