// SPDX-License-Identifier: Apache-2.0
#include "kernels/tune/pool_subject.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "batch/feature_layout.h"

namespace recmill::kernels::tune {
namespace {

constexpr int64_t kFloatsOfLine = 16;
/// In answers' gaps, where nobody may write.
constexpr float kUntouched = std::numeric_limits<float>::max();
/// What a template that reorders may differ by, relative to the largest sum.
constexpr float kReorderedTolerance = 1e-5f;

/// What the kernel needs, of this thread, until its next call; null: nothing.
std::byte* scratch_for(const PoolKernel& kernel, const PoolTask& task) {
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  thread_local std::vector<Line> lines;
  const bool weighted = task.bags.weights != nullptr;
  const size_t needed = (scratch_bytes(kernel, task.rows, task.pooling, weighted) + 63) / 64;
  if (needed > lines.size()) lines.resize(needed);
  return needed == 0 ? nullptr : lines.front().bytes;
}

/// Whether two outputs are the same bits, or for a template that reorders, near.
bool same_answer(std::span<const float> found, std::span<const float> expected, Order order) {
  if (order == Order::contract)
    return std::memcmp(found.data(), expected.data(), found.size_bytes()) == 0;
  float largest = 0.0f;
  for (float value : expected) largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < found.size(); ++i) {
    if (!(std::fabs(found[i] - expected[i]) <= kReorderedTolerance * largest)) return false;
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<PoolSubject>> PoolSubject::make(std::vector<PooledFeature> features,
                                                       std::span<const SparseBatch> batches,
                                                       const PoolSubjectOptions& options) {
  RECMILL_CHECK(!features.empty() && !batches.empty());
  std::unique_ptr<PoolSubject> subject(new PoolSubject());
  for (const SparseBatch& batch : batches) subject->batches_.push_back(&batch);
  subject->options_ = options;
  auto& shapes = subject->shapes_;
  for (size_t f = 0; f < features.size(); ++f) {
    BagCounter counter;
    for (const SparseBatch& batch : batches) counter.add(batch.features[f].view(batch.samples));
    const PooledFeature& feature = features[f];
    shapes.push_back({feature.rows.count, feature.rows.dim, feature.rows.precision, feature.pooling,
                      feature.weighted, counter.stats()});
    subject->columns_.push_back(subject->stride_);
    subject->stride_ += feature.rows.dim;
  }
  subject->stride_ = (subject->stride_ + kFloatsOfLine - 1) / kFloatsOfLine * kFloatsOfLine;
  subject->features_ = std::move(features);
  subject->work_.family = "embedding_pool";
  subject->work_.deterministic = options.deterministic;
  subject->set_classes(group_features(shapes));
  int64_t rows = 0;
  for (const SparseBatch& batch : batches) {
    rows = std::max(rows, batch.samples);
    for (size_t f = 0; f < shapes.size(); ++f)
      rows = std::max(
          rows, rows_out(subject->features_[f].pooling, batch.features[f].view(batch.samples)));
  }
  for (int thread = 0; thread < options.threads; ++thread) {
    RECMILL_ASSIGN_OR_RETURN(Buffer output,
                             Buffer::allocate(rows * subject->stride_ * sizeof(float)));
    subject->outputs_.push_back(std::move(output));
  }
  return subject;
}

std::vector<FeatureClass> PoolSubject::features() const {
  std::vector<FeatureClass> each;
  for (size_t f = 0; f < shapes_.size(); ++f)
    each.push_back({shapes_[f], {static_cast<int64_t>(f)}});
  return each;
}

void PoolSubject::set_classes(std::vector<FeatureClass> classes) {
  work_.classes = std::move(classes);
  count_batches();
}

void PoolSubject::keep_batches(std::span<const int64_t> kept) {
  std::vector<const SparseBatch*> batches;
  batches.reserve(kept.size());
  for (const int64_t batch : kept) batches.push_back(batches_.at(batch));
  batches_ = std::move(batches);
  count_batches();
}

void PoolSubject::count_batches() {
  work_.samples.clear();
  work_.lookups.clear();
  work_.bytes.clear();
  for (const SparseBatch* batch : batches_) {
    work_.samples.push_back(static_cast<double>(batch->samples));
    auto& lookups = work_.lookups.emplace_back();
    for (const SparseFeature& feature : batch->features)
      lookups.push_back(static_cast<double>(feature.view(batch->samples).lookups()));
  }
  for (size_t c = 0; c < work_.classes.size(); ++c) work_.bytes.push_back(bytes(c));
  expected_.clear();
}

PoolTask PoolSubject::task(int64_t feature, int64_t batch, Buffer& output) const {
  const SparseBatch& of = *batches_[batch];
  const PooledFeature& pooled = features_[feature];
  return {of.features[feature].view(of.samples), pooled.rows, pooled.pooling,
          output.as<float>().data() + columns_[feature], stride_};
}

std::vector<Schedule> PoolSubject::schedules(size_t of_class, const FusedParameters& value) const {
  if (value.defaults) return {defaults()[of_class].schedule};
  DeviceSpec device = options_.device;
  device.l2_bytes = value.l2_bytes;
  std::vector<Schedule> all;
  for (const PoolTemplate& of : options_.templates) {
    for (Schedule& schedule : kernels::candidates(of, work_.classes[of_class].shape, device))
      all.push_back(std::move(schedule));
  }
  return all;
}

bool PoolSubject::is_covered(size_t of_class) const {
  for (const int64_t feature : work_.classes[of_class].features) {
    const int64_t least = covering_lookups(features_[feature].rows);
    for (const SparseBatch* batch : batches_) {
      if (batch->features[feature].view(batch->samples).lookups() >= least) return true;
    }
  }
  return false;
}

std::vector<Candidate> PoolSubject::candidates(size_t of_class,
                                               const FusedParameters& value) const {
  auto all = schedules(of_class, value);
  if (!is_covered(of_class)) std::erase_if(all, stages);
  std::vector<Candidate> candidates;
  for (Schedule& schedule : all) {
    const auto kernel = find_pool_kernel(schedule, options_.templates);
    const Order order = kernel.ok() ? kernel->of->order : Order::contract;
    candidates.push_back({std::move(schedule), order});
  }
  return candidates;
}

Result<PoolSubject::Expected*> PoolSubject::expected(size_t of_class) {
  const auto [place, added] = expected_.try_emplace(of_class);
  Expected& made = place->second;
  if (!added) return &made;
  const int64_t feature = work_.classes[of_class].features.front();
  std::vector<int64_t> order(batches_.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return work_.lookups[a][feature] < work_.lookups[b][feature];
  });
  made.task = task(feature, order[order.size() / 2], outputs_[0]);
  made.task.stride = (made.task.rows.dim + kFloatsOfLine - 1) / kFloatsOfLine * kFloatsOfLine;
  const int64_t outputs = rows_out(features_[feature].pooling, made.task.bags);
  const size_t bytes = std::max<size_t>(1, outputs * made.task.stride) * sizeof(float);
  RECMILL_ASSIGN_OR_RETURN(made.answer, Buffer::allocate(bytes));
  RECMILL_ASSIGN_OR_RETURN(made.found, Buffer::allocate(bytes));
  std::ranges::fill(made.answer.as<float>(), kUntouched);
  made.task.out = made.answer.as<float>().data();
  embedding_pool_reference(made.task);
  made.task.out = made.found.as<float>().data();
  return &made;
}

Status PoolSubject::check(size_t of_class, const Schedule& schedule, const FusedParameters& value) {
  RECMILL_ASSIGN_OR_RETURN(const PoolKernel kernel, find_pool_kernel(schedule, options_.templates));
  RECMILL_ASSIGN_OR_RETURN(Expected* const of, expected(of_class));
  const auto [place, added] = of->checked.try_emplace(schedule.name());
  if (!added) return place->second;
  std::ranges::fill(of->found.as<float>(), kUntouched);
  if (kernel.of->admits != nullptr && !kernel.of->admits(of->task.bags)) return place->second;
  run_tiles(of->task, kernel, value.tile);
  if (!same_answer(of->found.as<float>(), of->answer.as<float>(), kernel.of->order))
    place->second = Status::Failed("schedule '" + schedule.name() +
                                   "' is refused: its answer is not the reference's");
  return place->second;
}

Status PoolSubject::prepare(const std::vector<std::vector<Schedule>>& candidates,
                            const FusedParameters& value, const Choice* disturbing) {
  if (disturbing != nullptr) {
    RECMILL_ASSIGN_OR_RETURN(disturbing_, kernels_of(*disturbing));
  }
  kernels_.clear();
  for (size_t c = 0; c < candidates.size(); ++c) {
    kernels_.emplace_back();
    for (const Schedule& schedule : candidates[c]) {
      RECMILL_ASSIGN_OR_RETURN(auto kernel, find_pool_kernel(schedule, options_.templates));
      kernels_.back().push_back(std::move(kernel));
    }
  }
  value_ = value;
  return {};
}

// The body itself, where a run might take the default schedule for bags like these.
void PoolSubject::run_tiles(const PoolTask& task, const PoolKernel& kernel, int64_t tile) const {
  std::byte* const scratch = scratch_for(kernel, task);
  for (int64_t first = 0; first < task.bags.samples; first += tile)
    kernel.of->body({&task, first, std::min(task.bags.samples, first + tile), first == 0},
                    kernel.values, scratch);
}

void PoolSubject::run_pieces(const PoolTask& task, const PoolKernel& kernel) const {
  const bool suits = kernel.suits(task);
  std::byte* const scratch = scratch_for(kernel, task);
  for (int64_t first = 0; first < task.bags.samples; first += value_.tile) {
    const PoolPiece piece{&task, first, std::min(task.bags.samples, first + value_.tile),
                          first == 0 && covers_table(task, 0, task.bags.samples)};
    suits ? kernel.of->body(piece, kernel.values, scratch) : default_pool_body(piece);
  }
}

void PoolSubject::run(size_t of_class, size_t candidate, int64_t feature, int64_t batch) {
  run_pieces(task(feature, batch, outputs_[0]), kernels_[of_class][candidate]);
}

double PoolSubject::bytes(size_t of_class) const {
  const int64_t feature = work_.classes[of_class].features.front();
  const PooledFeature& of = features_[feature];
  std::vector<bool> seen(of.rows.count);
  double bytes = 0.0;
  for (const SparseBatch* batch : batches_) {
    const JaggedView bags = batch->features[feature].view(batch->samples);
    const int64_t ids = bags.lookups() * (bags.weights != nullptr ? 12 : 8) + bags.samples * 8;
    const int64_t rows = distinct_rows_of(bags, seen) * bytes_of(of.rows.precision);
    bytes += static_cast<double>(ids + (rows + rows_out(of.pooling, bags) * 4) * of.rows.dim);
  }
  return bytes / static_cast<double>(batches_.size());
}

void PoolSubject::disturb(int64_t feature, int64_t batch, int thread) {
  run_pieces(task(feature, batch, outputs_[thread]), disturbing_[feature]);
}

std::vector<ChosenSchedule> PoolSubject::defaults() const {
  std::vector<ChosenSchedule> schedules;
  for (const FeatureClass& of : work_.classes)
    schedules.push_back(
        {default_pool_schedule(of.shape.pooling, of.shape.bags.one_each()), 0.0, 0.0});
  return schedules;
}

Result<std::vector<PoolKernel>> PoolSubject::kernels_of(const Choice& choice) const {
  const auto by_class = choice.schedules.empty() ? defaults() : choice.schedules;
  RECMILL_CHECK(by_class.size() == work_.classes.size());
  std::vector<PoolKernel> kernels(shapes_.size());
  for (size_t c = 0; c < by_class.size(); ++c) {
    RECMILL_ASSIGN_OR_RETURN(PoolKernel kernel,
                             find_pool_kernel(by_class[c].schedule, options_.templates));
    kernel.per_lookup = by_class[c].per_lookup;
    kernel.per_sample = by_class[c].per_sample;
    for (const int64_t f : work_.classes[c].features) kernels[f] = kernel;
  }
  return kernels;
}

Result<FusedRun> PoolSubject::fuse(const Choice& choice) {
  RECMILL_ASSIGN_OR_RETURN(auto kernels, kernels_of(choice));
  const int64_t tile = choice.schedules.empty() ? kWholeFeature : choice.value.tile;
  fused_ = std::make_unique<FusedPool>(std::move(kernels), tile);
  fused_->use(code_);
  return FusedRun([this](int64_t batch, ThreadPool& pool) { run_fused(batch, pool); });
}

void PoolSubject::run_fused(int64_t batch, ThreadPool& pool) {
  std::vector<PoolTask> tasks;
  for (size_t f = 0; f < features_.size(); ++f)
    tasks.push_back(task(static_cast<int64_t>(f), batch, outputs_[0]));
  TaskMap map;
  fused_->map(tasks, pool.threads(), map);
  fused_->run(tasks, map, pool);
}

}  // namespace recmill::kernels::tune
