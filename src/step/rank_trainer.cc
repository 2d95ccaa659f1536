// SPDX-License-Identifier: Apache-2.0
#include "step/rank_trainer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "base/saturating.h"
#include "model/make_model.h"
#include "step/loss.h"
#include "step/non_finite.h"
#include "step/place_rows.h"

namespace recmill::train {
namespace {

constexpr int64_t kPiece = 2048;  // parameters; their gradient stays in the first-level cache

}  // namespace

// What training adds to a block of the forward pass.
struct RankTrainer::BlockGradient {
  model::SliceGradient gradient;
  std::vector<float*> sequences;
  std::span<float> by_logits;
};

struct RankTrainer::Slice {
  std::vector<BlockGradient> blocks;
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
      first_slice_(slices_of_rank(communicator.rank(), communicator.ranks(), slices).begin),
      layout_(model.embedding_layout()),
      scorer_(spec, model, store, communicator, pool, slices),
      parameters_(std::move(parameters)),
      slice_gradients_(slices_of_rank(communicator.rank(), communicator.ranks(), slices),
                       model.parameter_count()),
      reduce_gradient_(communicator, slices, pool),
      reduce_loss_(communicator, slices, pool),
      beside_(std::move(beside)),
      backward_totals_(model.phases()) {}

RankTrainer::~RankTrainer() = default;

void RankTrainer::need(const model::ModelOptions& options, const model::Model& model,
                       const TrainerLoad& load, MemoryLedger& ledger) {
  const auto add = [&](const char* what, int64_t bytes, bool certain) {
    ledger.items.push_back({what, load.rank, bytes, certain});
  };
  const int own_slices = slices_of_rank(load.rank, load.ranks, load.slices).size();
  const int64_t vector = SubtreeSums::vector_bytes(model.parameter_count());
  const bool synchronises = model.phases() > 1;
  if (load.trained > 0) {
    // Each slice in hand has a vector and leaves at most a finished subtree of each size before it.
    const int64_t sums =
        synchronises ? own_slices
                     : std::min<int64_t>(own_slices,
                                         load.threads * (1 + std::bit_width(unsigned(own_slices))));
    add("dense parameters, gradient and optimizer state",
        saturating_product({vector, 2 + load.states}), true);
    add("dense gradients by slice", saturating_product({vector, sums}), true);
  } else {
    add("dense parameters", vector, true);
  }
  const bool own = !model::needs_torch(options.kind);
  if (!own || options.precision != model::LayerPrecision::float32)
    add("dense parameters as kernels read them", model.parameter_count() * 2 * 4, false);
  // No more than there are rows to score, which is not known yet.
  const int64_t most = std::max(load.trained, load.scored);
  const int64_t stride = model.embedding_layout().stride;
  if (load.trained > 0)
    add("looked-up rows and their gradient", 2 * load.trained / load.ranks * (stride * 4), true);
  add("looked-up rows of scored batches", (most - load.trained) / load.ranks * (stride * 4), false);
  int64_t samples = most / load.slices + 1;
  if (model.scores_in_any_block())
    samples = std::max(samples, load.scored / load.ranks / load.threads + 1);
  samples = std::min(samples, model.block_samples());
  // Values and again their gradients; LibTorch keeps the results of each operation.
  add("activations",
      saturating_product({synchronises ? own_slices : std::min(own_slices, load.threads), samples,
                          4, own ? 2 : 4, model::layer_numbers(options, stride + load.inputs)}),
      false);
}

Status RankTrainer::load_parameters() {
  return model_.load(parameters(), pool_);
}

// Of the batch that is bound: sizes the gradients' memory, and points the store and the slices to
// it.
Status RankTrainer::bind_gradients(int64_t samples) {
  RECMILL_ASSIGN_OR_RETURN(float* const pooled,
                           reserve_rows(pooled_gradient_, samples * layout_.stride));
  logit_gradient_.resize(samples);
  sequence_gradients_.resize(state_.sequences.size());
  std::vector<float*> sequences;
  for (size_t s = 0; s < sequence_gradients_.size(); ++s) {
    sequence_gradients_[s].resize(state_.sequences[s].size());
    sequences.push_back(sequence_gradients_[s].data());
  }
  gradients_ = place_rows<store::FeatureGradient>(scorer_.features(), layout_, pooled, sequences);
  for (size_t s = 0; s < slice_.size(); ++s) {
    const auto& blocks = state_.slices[s].blocks;
    slice_[s].blocks.resize(blocks.size());
    for (size_t b = 0; b < blocks.size(); ++b) {
      bind_gradient(blocks[b], slice_[s].blocks[b]);
      slice_[s].blocks[b].gradient.accumulate = b > 0;
    }
  }
  return {};
}

void RankTrainer::bind_gradient(const ForwardState::Block& block, BlockGradient& gradient) {
  gradient.by_logits = std::span(logit_gradient_).subspan(block.begin, block.input.samples);
  gradient.sequences.clear();
  for (size_t s = 0; s < block.sequences.size(); ++s) {
    const int64_t at = block.sequences[s].rows - state_.sequences[s].data();
    gradient.sequences.push_back(sequence_gradients_[s].data() + at);
  }
  gradient.gradient = {.pooled = pooled_gradient_.as<float>().data() + block.begin * layout_.stride,
                       .sequences = gradient.sequences,
                       .parameters = nullptr};
}

Status RankTrainer::forward(const RankBatch& batch, bool training,
                            const Scorer::AfterBlock& after) {
  RECMILL_RETURN_IF_ERROR(scorer_.bind(batch, training, state_));
  slice_.resize(state_.slices.size());
  if (training) {
    RECMILL_RETURN_IF_ERROR(bind_gradients(batch.samples()));
    slice_gradients_.reset();
  }
  for (Slice& slice : slice_) {
    slice.loss = 0.0;
    slice.parameter_gradient = nullptr;  // after a failure reset() has taken it back
  }
  stages_.enter(Stage::lookup);
  RECMILL_RETURN_IF_ERROR(scorer_.look_up(batch, state_));
  stages_.enter(Stage::dense_layers);
  return scorer_.run_layers(batch, state_, after);
}

void RankTrainer::add_loss(const RankBatch& batch, size_t slice, const ForwardState::Block& block,
                           std::span<float> logit_gradient) {
  const auto part = [&](const std::vector<float>& whole) {
    return whole.empty() ? std::span<const float>()
                         : std::span(whole).subspan(block.begin, block.input.samples);
  };
  slice_[slice].loss =
      add_log_loss(slice_[slice].loss, block.logits, part(batch.dense.labels),
                   part(batch.dense.sample_weights), batch.cut.samples, logit_gradient);
}

// Without a synchronisation a block's backward follows its forward, while its activations are warm.
Status RankTrainer::forward_and_backward(const RankBatch& batch) {
  return forward(batch, /*training=*/true, [&](size_t s, size_t b) -> Status {
    const auto& blocks = state_.slices[s].blocks;
    add_loss(batch, s, blocks[b], slice_[s].blocks[b].by_logits);
    if (model_.phases() > 1) return {};
    RECMILL_RETURN_IF_ERROR(backward_phase(0, s, b));
    if (b + 1 == blocks.size()) finish(s);
    return {};
  });
}

Status RankTrainer::backward_phase(int phase, size_t slice, size_t block) {
  const bool first = phase + 1 == model_.phases();
  const std::span<const float> total =
      first ? std::span<const float>() : std::span<const float>(backward_totals_[phase + 1]);
  ForwardState::Slice& of = state_.slices[slice];
  of.sum.assign(model_.backward_sum_size(phase), 0.0f);
  float*& parameter_gradient = slice_[slice].parameter_gradient;
  if (parameter_gradient == nullptr) {
    RECMILL_ASSIGN_OR_RETURN(parameter_gradient, slice_gradients_.take());
  }
  BlockGradient& gradient = slice_[slice].blocks[block];
  gradient.gradient.parameters = parameter_gradient;
  return model_.backward(phase, of.blocks[block].input, total, gradient.by_logits, *of.activations,
                         of.sum, gradient.gradient);
}

Status RankTrainer::backward_phases() {
  for (int phase = model_.phases() - 1; phase >= 0; --phase) {
    RECMILL_RETURN_IF_ERROR(scorer_.over_slices(state_, [&](size_t slice) -> Status {
      RECMILL_RETURN_IF_ERROR(backward_phase(phase, slice, 0));
      if (phase > 0) return {};
      finish(slice);
      scorer_.give_back(std::move(state_.slices[slice].activations));
      return {};
    }));
    if (phase > 0) {
      RECMILL_RETURN_IF_ERROR(
          scorer_.add_sums(state_, model_.backward_sum_size(phase), backward_totals_[phase]));
    }
  }
  return {};
}

// After a slice's last pass. reset() takes the gradient of a failed one back.
void RankTrainer::finish(size_t slice) {
  slice_gradients_.put(first_slice_ + static_cast<int>(slice),
                       std::exchange(slice_[slice].parameter_gradient, nullptr));
}

Result<StepResult> RankTrainer::result(const RankBatch& batch) {
  StepResult result;
  RECMILL_RETURN_IF_ERROR(scorer_.add_slices<double>(
      reduce_loss_, state_, [&](size_t slice) { return &slice_[slice].loss; },
      std::span<double>(&result.loss, 1)));
  result.samples = batch.cut.samples;
  result.logits = state_.logits;
  if (std::isfinite(result.loss)) return result;
  const Status cause = name_non_finite(
      {spec_, batch, state_.outputs, model_.parameters(), parameters(), state_.logits});
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
  stages_.clock().add(reduced->traffic, reduced->seconds);
  return update_parameters(step);
}

Result<StepResult> RankTrainer::train(const RankBatch& batch, const store::Step& step) {
  RECMILL_RETURN_IF_ERROR(forward_and_backward(batch));
  RECMILL_ASSIGN_OR_RETURN(StepResult outcome, result(batch));
  if (model_.phases() > 1) RECMILL_RETURN_IF_ERROR(backward_phases());
  model_.finish_iteration(state_.totals, batch.cut.samples, parameters());
  RECMILL_RETURN_IF_ERROR(update(batch, step));
  return outcome;
}

Result<StepResult> RankTrainer::score(const RankBatch& batch) {
  RECMILL_RETURN_IF_ERROR(forward(batch, /*training=*/false));
  RECMILL_RETURN_IF_ERROR(scorer_.over_slices(state_, [&](size_t slice) -> Status {
    for (const ForwardState::Block& block : state_.slices[slice].blocks)
      add_loss(batch, slice, block, {});
    return {};
  }));
  return result(batch);
}

}  // namespace recmill::train
