// SPDX-License-Identifier: Apache-2.0
#include "step/gpu/gpu_trainer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/saturating.h"
#include "comm/gather_values.h"
#include "comm/subtree_sums.h"
#include "device/gpu/staged_arrays.h"
#include "step/non_finite.h"
#include "step/place_rows.h"

namespace recmill::train {
namespace {

constexpr const char* kRows = "rows looked up by a batch";
constexpr const char* kValues = "values of a batch";

size_t bytes_of(int64_t floats) {
  return static_cast<size_t>(floats) * sizeof(float);
}

bool has_statistics(const model::Model& model) {
  return !std::ranges::all_of(model.parameters(), &model::ParameterSpec::trained);
}

/// Where a batch's results are behind each other, in bytes.
struct Results {
  size_t totals = 0, logits = 0, end = 0;  // the loss's sums at 0

  Results(int64_t samples, int64_t totals_size)
      : totals(static_cast<size_t>(GpuStepKernels::loss_blocks(samples)) * sizeof(double)),
        logits(totals + bytes_of(totals_size)),
        end(logits + bytes_of(samples)) {}
};

/// Where its inputs are, in floats: dense values at 0.
struct InputPlaces {
  int64_t labels = 0, weights = 0, end = 0;

  explicit InputPlaces(const DenseBatch& batch)
      : labels(std::ssize(batch.values)),
        weights(labels + std::ssize(batch.labels)),
        end(weights + std::ssize(batch.sample_weights)) {}
};

/// Bytes of a batch's pooled rows, and of its sequences.
int64_t reserved_for_rows(const ModelSpec& spec, const store::GpuBatches::Size& batch) {
  constexpr int64_t kAlignFloats = 4;  // model::GpuLayers::layout()
  int64_t stride = 0, sequences = 0;
  const FeatureLayout features(spec);
  for (const FeatureLayout::Feature& feature : features.features()) {
    if (feature.is_pooled()) {
      stride += (feature.dim + kAlignFloats - 1) / kAlignFloats * kAlignFloats;
    } else {
      sequences +=
          reserved_bytes(batch.lookups[feature.index] * feature.dim * int64_t{sizeof(float)});
    }
  }
  return reserved_bytes(batch.samples * stride * int64_t{sizeof(float)}) + sequences;
}

}  // namespace

GpuTrainer::GpuTrainer(const ModelSpec& spec, model::GpuLayers& layers, store::StoreOnGpu& store,
                       DenseOptimizer& dense_optimizer, Communicator& communicator,
                       ThreadPool& pool, Buffer parameters, GpuStepKernels kernels)
    : spec_(spec),
      features_(spec),
      layers_(layers),
      store_(store),
      dense_optimizer_(dense_optimizer),
      communicator_(communicator),
      gpu_(store.gpu()),
      gpu_stream_(store.stream()),
      stream_(pool, &gpu_stream_),
      stages_(communicator),
      kernels_(std::move(kernels)),
      parameters_(std::move(parameters)) {
  sequences_.resize(features_.sequences().size());
  sequence_gradients_.resize(features_.sequences().size());
}

// Layers that are still enqueued refer to what goes now.
GpuTrainer::~GpuTrainer() {
  static_cast<void>(store_.wait(gpu_stream_).ok());
}

Result<std::unique_ptr<GpuTrainer>> GpuTrainer::make(
    const ModelSpec& spec, model::GpuLayers& layers, store::StoreOnGpu& store,
    DenseOptimizer& dense_optimizer, Communicator& communicator, ThreadPool& pool,
    Buffer parameters, const kernels::codegen::CompileForGpu& compile) {
  RECMILL_ASSIGN_OR_RETURN(auto kernels,
                           GpuStepKernels::make(store.gpu(), dense_optimizer,
                                                layers.model().parameter_count(), compile));
  std::unique_ptr<GpuTrainer> made(new GpuTrainer(spec, layers, store, dense_optimizer,
                                                  communicator, pool, std::move(parameters),
                                                  std::move(kernels)));
  RECMILL_RETURN_IF_ERROR(made->allocate());
  return made;
}

int64_t GpuTrainer::host_bytes(const model::Model& layers, int64_t states) {
  return saturating_product({SubtreeSums::vector_bytes(layers.parameter_count()), 1 + states});
}

void GpuTrainer::need(const ModelSpec& spec, const model::Model& layers, int64_t states,
                      const store::GpuBatches& batches, int ranks, store::GpuLedger& ledger) {
  const auto add = [&](const std::string& what, const GpuBytes& bytes) {
    ledger.device.items.push_back({what, 0, bytes.device});
    ledger.pinned.items.push_back({"pinned, " + what, 0, bytes.pinned});
  };
  int64_t totals = 0;
  for (int phase = 0; phase < layers.phases(); ++phase) totals += layers.forward_sum_size(phase);
  const int64_t vector = layers.parameter_count() * int64_t{sizeof(float)};
  GpuBytes parameters{2 * vector, vector};
  parameters +=
      GpuStepKernels::need(layers.parameter_count(), states, std::ssize(layers.parameters()));
  add("dense parameters, gradient and optimizer state", parameters);
  if (ranks > 1) {
    const int64_t sums = GpuRankSum::need(ranks, std::max(layers.parameter_count(), totals));
    add("gradients of other ranks", {sums, 0});
    ledger.device.items.push_back(
        {"gradients in messages between GPUs", 0, sums + sums / 4, /*certain=*/false});
    ledger.pinned.items.push_back(
        {"pinned, gradients in messages between GPUs", 0, sums + sums / 4, /*certain=*/false});
  }
  const auto rows = [&](const store::GpuBatches::Size& size) {
    return GpuBytes{reserved_for_rows(spec, size) + reserved_for_rows(spec, batches.trained), 0};
  };
  store::add_need("looked-up rows and their gradient", batches, rows, ledger);
  const auto values = [&](const store::GpuBatches::Size& size) {
    const auto results = reserved_bytes(static_cast<int64_t>(Results(size.samples, totals).end));
    constexpr int64_t kLabelAndWeight = 2;
    const int64_t inputs =
        reserved_bytes(size.samples * (spec.num_dense + kLabelAndWeight) * int64_t{sizeof(float)});
    const int64_t gradient = reserved_bytes(size.samples * int64_t{sizeof(float)});
    const int64_t sent = inputs * batches.prepared;
    return GpuBytes{inputs + sent + results + gradient, sent + results};
  };
  store::add_need("values, logits and results", batches, values, ledger);
}

Status GpuTrainer::allocate() {
  const size_t bytes = bytes_of(layers_.model().parameter_count());
  const std::string what = "parameters of layers";
  RECMILL_ASSIGN_OR_RETURN(parameters_there_, gpu_.allocate(bytes, what));
  RECMILL_ASSIGN_OR_RETURN(gradient_, gpu_.allocate(bytes, what));
  RECMILL_ASSIGN_OR_RETURN(staging_, gpu_.allocate_pinned(bytes, what));
  RECMILL_ASSIGN_OR_RETURN(results_stream_, gpu_.open_stream());
  RECMILL_ASSIGN_OR_RETURN(inputs_stream_, gpu_.open_stream());
  if (store_.exchange() == nullptr) return {};
  const int64_t most = std::max(layers_.model().parameter_count(), layers_.totals_size());
  RECMILL_ASSIGN_OR_RETURN(rank_sum_,
                           GpuRankSum::make(gpu_, *store_.exchange(), communicator_.rank(),
                                            communicator_.ranks(), most, kernels_));
  return {};
}

// ---- parameters

Status GpuTrainer::load_parameters() {
  std::ranges::copy(parameters(), staging_.as<float>().begin());
  RECMILL_RETURN_IF_ERROR(
      gpu_stream_.to_device(parameters_there_, staging_, parameters_there_.size()));
  RECMILL_RETURN_IF_ERROR(gpu_stream_.synchronize());
  return kernels_.load_state(gpu_stream_);
}

Status GpuTrainer::settle() {
  RECMILL_RETURN_IF_ERROR(
      gpu_stream_.to_host(staging_, parameters_there_, parameters_there_.size()));
  RECMILL_RETURN_IF_ERROR(gpu_stream_.synchronize());
  for (const model::ParameterSpec& of : layers_.model().parameters()) {
    if (of.trained)
      std::ranges::copy(staging_.as<float>().subspan(of.offset, of.size()),
                        parameters().begin() + of.offset);
  }
  return kernels_.store_state(dense_optimizer_, gpu_stream_);
}

// What evaluation reads of the parameters that are not trained.
Status GpuTrainer::send_statistics() {
  if (!statistics_are_newer_) return {};
  for (const model::ParameterSpec& of : layers_.model().parameters()) {
    if (of.trained) continue;
    std::ranges::copy(parameters().subspan(of.offset, of.size()),
                      staging_.as<float>().begin() + of.offset);
    RECMILL_RETURN_IF_ERROR(gpu_stream_.to_device(parameters_there_, staging_, bytes_of(of.size()),
                                                  bytes_of(of.offset), bytes_of(of.offset)));
  }
  statistics_are_newer_ = false;
  return gpu_stream_.synchronize();
}

// ---- a batch

Status GpuTrainer::reserve_batch(const RankBatch& batch, bool training) {
  const int64_t samples = batch.samples();
  const Results results(samples, layers_.totals_size());
  const size_t pooled = bytes_of(samples * layers_.layout().stride);
  RECMILL_RETURN_IF_ERROR(reserve(pooled_, pooled, gpu_, kRows));
  RECMILL_RETURN_IF_ERROR(reserve(pooled_gradient_, training ? pooled : 0, gpu_, kRows));
  for (const FeatureLayout::Feature& feature : features_.sequences()) {
    const size_t bytes = bytes_of(feature.rows_out(batch.sparse) * feature.dim);
    RECMILL_RETURN_IF_ERROR(reserve(sequences_[feature.sequence], bytes, gpu_, kRows));
    RECMILL_RETURN_IF_ERROR(
        reserve(sequence_gradients_[feature.sequence], training ? bytes : 0, gpu_, kRows));
  }
  RECMILL_RETURN_IF_ERROR(reserve(logit_gradient_, bytes_of(samples), gpu_, "logits of a batch"));
  RECMILL_RETURN_IF_ERROR(reserve(results_there_, results.end, gpu_, "results of a batch"));
  return reserve(results_, results.end, gpu_, "results of a batch");
}

// Memory that the GPU has done with.
Result<std::unique_ptr<GpuTrainer::Inputs>> GpuTrainer::take_inputs() {
  std::unique_ptr<Inputs> inputs;
  {
    const std::lock_guard lock(resting_mutex_);
    if (!resting_.empty()) {
      inputs = std::move(resting_.front());
      resting_.pop_front();
    }
  }
  if (inputs != nullptr) {
    for (GpuEvent* const event : {&inputs->sent, &inputs->used})
      RECMILL_RETURN_IF_ERROR(event->synchronize());
    return inputs;
  }
  inputs = std::make_unique<Inputs>();
  for (GpuEvent* const event : {&inputs->sent, &inputs->used}) {
    RECMILL_ASSIGN_OR_RETURN(*event, gpu_.open_event());
  }
  return inputs;
}

Result<std::unique_ptr<GpuTrainer::Inputs>> GpuTrainer::send_inputs(const DenseBatch& batch) {
  RECMILL_ASSIGN_OR_RETURN(auto inputs, take_inputs());
  const InputPlaces places(batch);
  RECMILL_RETURN_IF_ERROR(reserve(inputs->host, bytes_of(places.end), gpu_, kValues));
  RECMILL_RETURN_IF_ERROR(reserve(inputs->there, bytes_of(places.end), gpu_, kValues));
  const auto to = inputs->host.as<float>().begin();
  std::ranges::copy(batch.values, to);
  std::ranges::copy(batch.labels, to + places.labels);
  std::ranges::copy(batch.sample_weights, to + places.weights);
  RECMILL_RETURN_IF_ERROR(
      inputs_stream_.to_device(inputs->there, inputs->host, bytes_of(places.end)));
  RECMILL_RETURN_IF_ERROR(inputs->sent.record(inputs_stream_));
  return inputs;
}

void GpuTrainer::give_back(std::unique_ptr<Inputs> inputs) {
  const std::lock_guard lock(resting_mutex_);
  resting_.push_back(std::move(inputs));
}

class GpuTrainer::InputsOfBatch final : public SentInputs {
 public:
  InputsOfBatch(GpuTrainer& trainer, std::unique_ptr<Inputs> inputs)
      : trainer_(trainer), inputs_(std::move(inputs)) {}
  ~InputsOfBatch() override { trainer_.give_back(std::move(inputs_)); }
  Inputs& inputs() const { return *inputs_; }

 private:
  GpuTrainer& trainer_;
  std::unique_ptr<Inputs> inputs_;
};

Result<std::unique_ptr<SentInputs>> GpuTrainer::send_ahead(const DenseBatch& batch) {
  RECMILL_ASSIGN_OR_RETURN(auto inputs, send_inputs(batch));
  return std::unique_ptr<SentInputs>(std::make_unique<InputsOfBatch>(*this, std::move(inputs)));
}

// Those that were sent ahead, or now.
Status GpuTrainer::place_inputs(const RankBatch& batch) {
  const size_t bytes = bytes_of(InputPlaces(batch.dense).end);
  RECMILL_RETURN_IF_ERROR(reserve(inputs_, bytes, gpu_, kValues));
  std::unique_ptr<Inputs> own;
  if (batch.sent == nullptr) {
    RECMILL_ASSIGN_OR_RETURN(own, send_inputs(batch.dense));
  }
  Inputs& inputs = own != nullptr ? *own : static_cast<const InputsOfBatch&>(*batch.sent).inputs();
  RECMILL_RETURN_IF_ERROR(gpu_stream_.wait_for(inputs.sent));
  RECMILL_RETURN_IF_ERROR(gpu_stream_.copy(inputs_, inputs.there, bytes));
  RECMILL_RETURN_IF_ERROR(inputs.used.record(gpu_stream_));
  if (own != nullptr) give_back(std::move(own));
  return {};
}

// Points the store at where rows and their gradients are.
void GpuTrainer::place_rows() {
  const auto placed_in = [&]<typename Place>(const GpuBuffer& pooled,
                                             std::span<const GpuBuffer> sequences,
                                             std::vector<Place>& places) {
    std::vector<float*> rows;
    for (const GpuBuffer& of : sequences) rows.push_back(of.address<float>());
    places = train::place_rows<Place>(features_, layers_.layout(), pooled.address<float>(), rows);
  };
  placed_in(pooled_, sequences_, outputs_);
  placed_in(pooled_gradient_, sequence_gradients_, gradients_);
}

model::GpuLayersInput GpuTrainer::layers_input(const RankBatch& batch, bool training) const {
  model::GpuLayersInput input = {.first_sample = batch.dense.first,
                                 .iteration = batch.before.iteration,
                                 .samples = batch.samples(),
                                 .training = training,
                                 .parameters = parameters_there_.address<float>(),
                                 .dense = inputs_.address<float>(),
                                 .pooled = pooled_.address<float>(),
                                 .sequences = {},
                                 .rows = {},
                                 .add_over_ranks = {}};
  if (rank_sum_ != nullptr)
    input.add_over_ranks = [this](float* values, int64_t count, GpuStream& stream) {
      return rank_sum_->add(values, count, stream);
    };
  for (const FeatureLayout::Feature& feature : features_.sequences())
    input.sequences.push_back({sequences_[feature.sequence].address<float>(),
                               batch.sparse.features[feature.index].offsets.data()});
  if (layers_.model().reads_rows())
    for (const SparseFeature& feature : batch.sparse.features)
      input.rows.push_back(feature.view(batch.samples()));
  return input;
}

// Up to the loss, and its copy to the host on a stream beside.
Status GpuTrainer::forward(const RankBatch& batch, bool training) {
  stages_.enter(Stage::lookup);
  RECMILL_RETURN_IF_ERROR(reserve_batch(batch, training));
  RECMILL_RETURN_IF_ERROR(place_inputs(batch));
  if (!training) RECMILL_RETURN_IF_ERROR(send_statistics());
  place_rows();
  RECMILL_RETURN_IF_ERROR(store_.lookup(*batch.prepared, outputs_, stream_));
  stages_.enter(Stage::dense_layers);
  const int64_t samples = batch.samples();
  const Results results(samples, layers_.totals_size());
  std::byte* const there = results_there_.address<std::byte>();
  auto* const logits = reinterpret_cast<float*>(there + results.logits);
  RECMILL_RETURN_IF_ERROR(layers_.forward(layers_input(batch, training), logits,
                                          reinterpret_cast<float*>(there + results.totals),
                                          gpu_stream_));
  const InputPlaces places(batch.dense);
  const float* const inputs = inputs_.address<float>();
  const gpu::LogLossArguments loss = {
      logits,
      inputs + places.labels,
      batch.dense.sample_weights.empty() ? nullptr : inputs + places.weights,
      samples,
      batch.cut.samples,
      training ? logit_gradient_.address<float>() : nullptr,
      reinterpret_cast<double*>(there)};
  if (samples > 0) RECMILL_RETURN_IF_ERROR(kernels_.log_loss(loss, gpu_stream_));
  RECMILL_RETURN_IF_ERROR(results_stream_.wait_for(gpu_stream_));
  return results.end == 0 ? Status()
                          : results_stream_.to_host(results_, results_there_, results.end);
}

Status GpuTrainer::backward() {
  model::GpuLayersGradient gradient = {
      pooled_gradient_.address<float>(), {}, gradient_.address<float>()};
  for (const GpuBuffer& of : sequence_gradients_) gradient.sequences.push_back(of.address<float>());
  return layers_.backward(logit_gradient_.address<float>(), gradient, gpu_stream_);
}

// Once they are there.
std::span<const float> GpuTrainer::logits(const RankBatch& batch) const {
  const Results places(batch.samples(), layers_.totals_size());
  const auto* const first =
      reinterpret_cast<const float*>(results_.as<std::byte>().data() + places.logits);
  return {first, static_cast<size_t>(batch.samples())};
}

// Waits for the loss.
Result<StepResult> GpuTrainer::result(const RankBatch& batch) {
  RECMILL_RETURN_IF_ERROR(store_.wait(results_stream_));
  const int64_t samples = batch.samples();
  double loss = 0;
  const auto* const sums = reinterpret_cast<const double*>(results_.as<std::byte>().data());
  for (int64_t block = 0; block < GpuStepKernels::loss_blocks(samples); ++block)
    loss += sums[block];
  StepResult result;
  result.samples = batch.cut.samples;
  result.logits = logits(batch);
  RECMILL_ASSIGN_OR_RETURN(result.loss, add_over_ranks(loss));
  if (std::isfinite(result.loss)) return result;
  return name_cause(batch);
}

// In the order of ranks.
Result<double> GpuTrainer::add_over_ranks(double own) {
  if (rank_sum_ == nullptr) return own;
  RECMILL_ASSIGN_OR_RETURN(const auto of_ranks, gather_values(own, communicator_));
  return std::accumulate(of_ranks.begin(), of_ranks.end(), 0.0);
}

Status GpuTrainer::name_cause(const RankBatch& batch) {
  RECMILL_RETURN_IF_ERROR(store_.wait(gpu_stream_));
  RECMILL_RETURN_IF_ERROR(settle());
  RECMILL_RETURN_IF_ERROR(batch.samples() > 0 ? name_own_cause(batch) : Status());
  return Status::Failed(rank_sum_ == nullptr
                            ? "the loss is not finite"
                            : "the loss is not finite; the cause is on another rank");
}

// Searches copies on the host.
Status GpuTrainer::name_own_cause(const RankBatch& batch) {
  std::vector<PinnedBuffer> copies;
  const auto copy_of = [&](const GpuBuffer& there) -> Result<float*> {
    RECMILL_ASSIGN_OR_RETURN(auto copy, gpu_.allocate_pinned(there.size(), kRows));
    RECMILL_RETURN_IF_ERROR(gpu_stream_.to_host(copy, there, there.size()));
    return copies.emplace_back(std::move(copy)).as<float>().data();
  };
  RECMILL_ASSIGN_OR_RETURN(float* const pooled, copy_of(pooled_));
  std::vector<float*> sequences;
  for (const GpuBuffer& there : sequences_) {
    RECMILL_ASSIGN_OR_RETURN(sequences.emplace_back(), copy_of(there));
  }
  const auto outputs =
      train::place_rows<store::FeatureOutput>(features_, layers_.layout(), pooled, sequences);
  RECMILL_RETURN_IF_ERROR(gpu_stream_.synchronize());
  return name_non_finite(
      {spec_, batch, outputs, layers_.model().parameters(), parameters(), logits(batch)});
}

// ---- steps

// Running statistics are the host's.
void GpuTrainer::finish_iteration(const RankBatch& batch) {
  const model::Model& model = layers_.model();
  if (!has_statistics(model)) return;
  const Results places(batch.samples(), layers_.totals_size());
  const auto* from =
      reinterpret_cast<const float*>(results_.as<std::byte>().data() + places.totals);
  std::vector<std::vector<float>> totals;
  for (int phase = 0; phase < model.phases(); ++phase) {
    const int64_t size = model.forward_sum_size(phase);
    totals.emplace_back(from, from + size);
    from += size;
  }
  model.finish_iteration(totals, batch.cut.samples, parameters());
  statistics_are_newer_ = true;
}

Result<StepResult> GpuTrainer::train(const RankBatch& batch, const store::Step& step) {
  RECMILL_RETURN_IF_ERROR(forward(batch, /*training=*/true));
  RECMILL_RETURN_IF_ERROR(backward());
  RECMILL_ASSIGN_OR_RETURN(const StepResult outcome, result(batch));
  finish_iteration(batch);
  if (rank_sum_ != nullptr) {
    stages_.enter(Stage::dense_gradients);
    RECMILL_RETURN_IF_ERROR(
        rank_sum_->add(gradient_.address<float>(), layers_.model().parameter_count(), gpu_stream_));
    // Then the update is waited for: not as long as another rank's message may be missing.
    if (gpu_.options().check_nan) RECMILL_RETURN_IF_ERROR(store_.wait(gpu_stream_));
  }
  stages_.enter(Stage::dense_update);
  RECMILL_RETURN_IF_ERROR(kernels_.update(parameters_there_.address<float>(),
                                          gradient_.address<float>(), step.iteration,
                                          step.learning_rate_scale, gpu_stream_));
  stages_.enter(Stage::row_update);
  const store::Update update{batch.prepared.get(), gradients_};
  RECMILL_RETURN_IF_ERROR(store_.update(std::span(&update, 1), step, stream_));
  return outcome;
}

Result<StepResult> GpuTrainer::score(const RankBatch& batch) {
  RECMILL_RETURN_IF_ERROR(forward(batch, /*training=*/false));
  return result(batch);
}

Status GpuTrainer::predict(const RankBatch& batch, ForwardState& state) {
  const StageClock::Figures before = stages_.clock().figures(Stage::lookup);
  RECMILL_RETURN_IF_ERROR(forward(batch, /*training=*/false));
  RECMILL_RETURN_IF_ERROR(store_.wait(results_stream_));
  const StageClock::Figures& after = stages_.clock().figures(Stage::lookup);
  state.lookup_seconds = after.seconds - before.seconds;
  state.received = static_cast<int64_t>(after.traffic.received - before.traffic.received);
  const auto found = logits(batch);
  state.logits.assign(found.begin(), found.end());
  return {};
}

}  // namespace recmill::train
