// SPDX-License-Identifier: Apache-2.0
#include "kernels/tune/gpu_pool_subject.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/random.h"
#include "batch/feature_layout.h"
#include "kernels/embedding_pool/embedding_pool.h"
#include "kernels/tune/visits.h"

namespace recmill::kernels::tune {
namespace {

using codegen::CompiledGpuPool;
using codegen::GpuPoolRequest;
using codegen::GpuPoolSource;
using codegen::GpuSource;
using codegen::PoolFunction;

/// More than any class has: its candidates are to run in one launch.
constexpr int64_t kAllFunctions = 400;
/// What a schedule that reorders may differ by, relative to the largest sum.
constexpr float kReorderedTolerance = 1e-5f;

bool same_answer(std::span<const float> found, std::span<const float> expected, Order order) {
  if (order == Order::contract)
    return std::memcmp(found.data(), expected.data(), expected.size_bytes()) == 0;
  float largest = 0.0f;
  for (const float value : expected) largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < expected.size(); ++i)
    if (!(std::fabs(found[i] - expected[i]) <= kReorderedTolerance * largest)) return false;
  return true;
}

/// Blocks of candidates in random order, between blocks of the last feature, so many at each end at
/// least.
struct Arrangement {
  int64_t padding = 0;
  int32_t padded_with = 0;  // feature
  uint64_t seed = 1;

  std::vector<int64_t> operator()(std::vector<gpu::PoolBlock>& blocks) const {
    std::vector<gpu::PoolBlock> timed, filling;
    for (const gpu::PoolBlock& block : blocks)
      (block.feature == padded_with ? filling : timed).push_back(block);
    const Random random(seed, Purpose::test, 0);
    blocks.clear();
    const auto fill = [&] {
      const auto all = static_cast<int64_t>(filling.size());  // each once at least
      for (int64_t i = 0; i < std::max(padding, all) && all > 0; ++i)
        blocks.push_back(filling[i % all]);
    };
    fill();
    for (const size_t place : shuffled(timed.size(), random, 0)) blocks.push_back(timed[place]);
    fill();
    return {};
  }
};

/// The last candidate is what launches are filled with. Where its schedule is a candidate before,
/// that one's time is kept: with two draws of one schedule it would win too often.
void leave_out_second_default(std::vector<CandidateTime>& candidates) {
  const auto last = std::prev(candidates.end());
  if (std::find_if(candidates.begin(), last, [&](const CandidateTime& candidate) {
        return candidate.schedule == last->schedule;
      }) != last)
    candidates.erase(last);
}

}  // namespace

std::vector<PoolFunction> gpu_tuning_functions(const FeatureShape& shape, const RowStorage& rows,
                                               bool deterministic) {
  std::vector<PoolFunction> functions;
  const auto add = [&](Schedule schedule) {
    auto function =
        codegen::gpu_pool_function(std::move(schedule), rows, shape.pooling, shape.weighted);
    if (codegen::check_gpu_function(function).ok()) functions.push_back(std::move(function));
  };
  for (auto& schedule : gpu_pool_candidates(shape, deterministic)) add(std::move(schedule));
  add(default_gpu_pool_schedule(shape.pooling, rows));
  return functions;
}

GpuPoolRequest GpuPooledRows::request(PoolFunction function, size_t bags) const {
  GpuPoolRequest request{std::move(function), records, bags};
  request.function.two_memories = near != nullptr;
  request.far = far;
  request.near = near;
  return request;
}

codegen::GpuPoolSourceOptions gpu_tuning_options(int64_t blocks) {
  codegen::GpuPoolSourceOptions options;
  options.made_by = "Recmill";
  options.blocks = blocks;
  options.most_functions = kAllFunctions;
  options.timed = true;
  return options;
}

Result<std::unique_ptr<GpuPoolSubject>> GpuPoolSubject::make(Gpu& gpu,
                                                             std::vector<GpuPooledRows> features,
                                                             std::span<const SparseBatch> batches,
                                                             const GpuPoolSubjectOptions& options,
                                                             ThreadPool& pool) {
  RECMILL_CHECK(!features.empty() && !batches.empty());
  std::unique_ptr<GpuPoolSubject> subject(
      new GpuPoolSubject(gpu, std::move(features), batches, options, pool));
  RECMILL_RETURN_IF_ERROR(subject->open());
  return subject;
}

Status GpuPoolSubject::open() {
  std::vector<FeatureShape> shapes;
  for (size_t f = 0; f < features_.size(); ++f) {
    BagCounter counter;
    for (const SparseBatch& batch : batches_) counter.add(batch.features[f].view(batch.samples));
    const GpuPooledRows& of = features_[f];
    shapes.push_back(
        {of.rows.count, of.rows.dim, of.rows.precision, of.pooling, of.weighted, counter.stats()});
  }
  classes_ = group_features(shapes);
  class_of_.resize(features_.size());
  for (size_t c = 0; c < classes_.size(); ++c)
    for (const int64_t f : classes_[c].features) class_of_[f] = c;
  RECMILL_ASSIGN_OR_RETURN(stream_, gpu_.open_stream());
  RECMILL_ASSIGN_OR_RETURN(timer_, gpu_.open_timer());
  return {};
}

JaggedView GpuPoolSubject::bags(int64_t feature, int64_t batch) const {
  return batches_[batch].features[feature].view(batches_[batch].samples);
}

int64_t GpuPoolSubject::rows_out(int64_t feature, int64_t batch) const {
  return recmill::rows_out(features_[feature].pooling, bags(feature, batch));
}

// All read the bags of the class's first feature.
std::vector<GpuPoolRequest> GpuPoolSubject::candidates_of(size_t of_class) const {
  const FeatureClass& of = classes_[of_class];
  const GpuPooledRows& feature = features_[of.features.front()];
  std::vector<GpuPoolRequest> requests;
  for (auto& function : gpu_tuning_functions(of.shape, feature.rows, options_.deterministic))
    requests.push_back(feature.request(std::move(function), 0));
  return requests;
}

Status GpuPoolSubject::compile_candidates(std::span<const int64_t> blocks) {
  std::vector<GpuSource> sources;
  for (size_t c = 0; c < classes_.size(); ++c) {
    std::vector<PoolFunction> functions;
    for (GpuPoolRequest& request : candidates_of(c)) functions.push_back(request.function);
    for (const int64_t at : blocks) {
      RECMILL_ASSIGN_OR_RETURN(const auto made,
                               gpu_pool_sources(functions, gpu_tuning_options(at)));
      for (const GpuPoolSource& source : made)
        if (std::ranges::find(sources, source.text, &GpuSource::text) == sources.end())
          sources.push_back(source);
    }
  }
  return options_.compile(sources).status();
}

std::vector<gpu::PoolOutput> GpuPoolSubject::outputs_of(size_t of_class, size_t count,
                                                        int64_t batch) const {
  const int64_t feature = classes_[of_class].features.front(), dim = features_[feature].rows.dim;
  std::vector<gpu::PoolOutput> outputs;
  for (size_t k = 0; k < count; ++k)
    outputs.push_back(
        {outputs_.address<float>() + static_cast<int64_t>(k) * rows_out(feature, batch) * dim,
         dim});
  return outputs;
}

Result<double> GpuPoolSubject::timed(const std::function<Status()>& work) {
  RECMILL_RETURN_IF_ERROR(timer_.start(stream_));
  RECMILL_RETURN_IF_ERROR(work());
  RECMILL_RETURN_IF_ERROR(timer_.stop(stream_));
  RECMILL_RETURN_IF_ERROR(stream_.synchronize());
  return timer_.seconds();
}

Result<GpuPoolSubject::Launch> GpuPoolSubject::launch(const CompiledGpuPool& candidates,
                                                      size_t of_class, int64_t blocks,
                                                      int64_t batch) {
  const int64_t feature = classes_[of_class].features.front();
  const auto count = static_cast<size_t>(candidates.pool->features());
  Arrangement arrangement;
  arrangement.padding = blocks * gpu_.properties().sms;
  arrangement.padded_with = static_cast<int32_t>(count) - 1;
  arrangement.seed = options_.seed + static_cast<uint64_t>(batch);
  const std::vector<JaggedView> of{bags(feature, batch)};
  RECMILL_RETURN_IF_ERROR(candidates.pool->stage(of, pool_, bags_, arrangement));
  const auto mapped = GpuFusedPool::blocks(bags_);
  const std::string what = "candidates of a feature";
  const size_t floats = count * static_cast<size_t>(rows_out(feature, batch)) *
                        static_cast<size_t>(features_[feature].rows.dim);
  RECMILL_RETURN_IF_ERROR(reserve_outputs(floats));
  RECMILL_RETURN_IF_ERROR(reserve(clocks_, mapped.size() * sizeof(int64_t), gpu_, what));
  RECMILL_RETURN_IF_ERROR(reserve(found_, mapped.size() * sizeof(int64_t), gpu_, what));
  RECMILL_RETURN_IF_ERROR(candidates.pool->send(bags_, stream_));
  Launch made;
  RECMILL_ASSIGN_OR_RETURN(made.nanoseconds, timed([&] {
                             return candidates.pool->run(bags_, outputs_of(of_class, count, batch),
                                                         stream_, clocks_.address<int64_t>());
                           }));
  made.nanoseconds *= 1e9;
  RECMILL_RETURN_IF_ERROR(stream_.to_host(found_, clocks_, mapped.size() * sizeof(int64_t)));
  RECMILL_RETURN_IF_ERROR(stream_.synchronize());
  const auto clocks = found_.as<int64_t>().first(mapped.size());
  made.shares.assign(count, 0.0);
  double all = 0.0;
  int64_t filling = 0, parts = 0;  // blocks of the default schedule, and those of one run of it
  for (size_t b = 0; b < mapped.size(); ++b) {
    made.shares[mapped[b].feature] += static_cast<double>(clocks[b]);
    all += static_cast<double>(clocks[b]);
    if (mapped[b].feature != arrangement.padded_with) continue;
    ++filling;
    parts = std::max<int64_t>(parts, mapped[b].part + 1);
  }
  for (double& share : made.shares) share /= std::max(all, 1.0);
  made.shares.back() *=
      static_cast<double>(parts) / static_cast<double>(std::max<int64_t>(1, filling));
  return made;
}

std::vector<float> GpuPoolSubject::reference(int64_t feature, int64_t batch) const {
  const GpuPooledRows& of = features_[feature];
  std::vector<float> expected(rows_out(feature, batch) * of.rows.dim);
  embedding_pool_reference(
      {bags(feature, batch), of.rows, of.pooling, expected.data(), of.rows.dim});
  return expected;
}

// What is wrong with the answers of the last launch; empty: nothing.
Result<std::vector<std::string>> GpuPoolSubject::check(size_t of_class, int64_t batch,
                                                       std::span<const GpuPoolRequest> candidates) {
  const int64_t feature = classes_[of_class].features.front();
  const std::vector<float> expected = reference(feature, batch);
  const size_t bytes = expected.size() * sizeof(float);  // pinned memory is one candidate's
  RECMILL_RETURN_IF_ERROR(reserve(found_, bytes, gpu_, "answers"));
  std::vector<std::string> wrong;
  for (size_t k = 0; k < candidates.size(); ++k) {
    const Schedule& schedule = candidates[k].function.schedule;
    const auto kernel = find_gpu_pool_kernel(schedule);
    RECMILL_RETURN_IF_ERROR(stream_.to_host(found_, outputs_, bytes, 0, k * bytes));
    RECMILL_RETURN_IF_ERROR(stream_.synchronize());
    const auto answer = found_.as<float>().first(expected.size());
    wrong.push_back(same_answer(answer, expected, kernel->of->order)
                        ? ""
                        : "schedule '" + schedule.name() +
                              "' is refused: its answer is not the reference's");
  }
  return wrong;
}

Result<ClassTimes> GpuPoolSubject::time_candidates(size_t of_class, int64_t blocks, int64_t visited,
                                                   int64_t rounds) {
  const int64_t feature = classes_[of_class].features.front();
  const auto candidates = candidates_of(of_class);
  RECMILL_ASSIGN_OR_RETURN(const auto compiled,
                           compile_gpu_pool(candidates, gpu_tuning_options(blocks),
                                            /*exactly=*/true, options_.compile, gpu_));
  ClassTimes times;
  std::vector<std::string> wrong;
  std::vector<std::vector<std::vector<double>>> nanoseconds(
      candidates.size(), std::vector<std::vector<double>>(visited));
  for (int64_t round = 0; round < rounds; ++round) {
    for (int64_t batch = 0; batch < visited; ++batch) {
      if (wrong.empty()) RECMILL_RETURN_IF_ERROR(spoil_outputs());
      RECMILL_ASSIGN_OR_RETURN(const Launch took, launch(compiled, of_class, blocks, batch));
      if (wrong.empty()) {
        RECMILL_ASSIGN_OR_RETURN(wrong, check(of_class, batch, candidates));
      }
      for (size_t k = 0; k < candidates.size(); ++k)
        nanoseconds[k][batch].push_back(took.nanoseconds * took.shares[k]);
      if (round > 0) continue;
      times.lookups += static_cast<double>(bags(feature, batch).lookups()) / visited;
      times.samples += static_cast<double>(bags(feature, batch).samples) / visited;
    }
  }
  for (size_t k = 0; k < candidates.size(); ++k) {
    const VisitTime time = time_of(nanoseconds[k]);
    const Schedule& schedule = candidates[k].function.schedule;
    times.candidates.push_back({schedule, wrong[k].empty() ? time.nanoseconds : 0.0,
                                wrong[k].empty() ? time.spread : 0.0, wrong[k],
                                find_gpu_pool_kernel(schedule)->of->order});
  }
  leave_out_second_default(times.candidates);
  return times;
}

std::vector<Schedule> GpuPoolSubject::by_feature(std::span<const Schedule> by_class) const {
  RECMILL_CHECK(by_class.size() == classes_.size());
  std::vector<Schedule> schedules;
  for (const size_t of_class : class_of_) schedules.push_back(by_class[of_class]);
  return schedules;
}

Result<CompiledGpuPool> GpuPoolSubject::fuse(std::span<const Schedule> by_feature,
                                             const FuseOptions& how) {
  RECMILL_CHECK(by_feature.size() == features_.size());
  std::vector<GpuPoolRequest> requests;
  for (size_t f = 0; f < features_.size(); ++f)
    requests.push_back(features_[f].request(
        codegen::gpu_pool_function(by_feature[f], features_[f].rows, features_[f].pooling,
                                   features_[f].weighted),
        f));
  codegen::GpuPoolSourceOptions options;
  options.made_by = "Recmill";
  options.dispatch = how.dispatch;
  options.blocks = std::max<int64_t>(1, how.blocks);
  options.listed = how.listed;
  return compile_gpu_pool(requests, options, how.blocks > 0, options_.compile, gpu_);
}

std::vector<Schedule> GpuPoolSubject::defaults() const {
  std::vector<Schedule> schedules;
  for (const FeatureClass& of : classes_) {
    const GpuPooledRows& feature = features_[of.features.front()];
    schedules.push_back(default_gpu_pool_schedule(feature.pooling, feature.rows));
  }
  return schedules;
}

Status GpuPoolSubject::reserve_outputs(size_t floats) {
  const size_t bytes = floats * sizeof(float);
  if (bytes <= outputs_.size()) return {};
  RECMILL_RETURN_IF_ERROR(reserve(outputs_, bytes, gpu_, "rows looked up by a batch"));
  return spoil_outputs();
}

// To NaNs: what a run before wrote is no answer of the next one.
Status GpuPoolSubject::spoil_outputs() {
  if (outputs_.size() == 0) return {};
  return gpu_.driver().fill(outputs_.address<std::byte>(), 0xff, outputs_.size(), stream_.handle());
}

int64_t GpuPoolSubject::floats_out(int64_t batch) const {
  int64_t floats = 0;
  for (size_t f = 0; f < features_.size(); ++f)
    floats += rows_out(static_cast<int64_t>(f), batch) * features_[f].rows.dim;
  return floats;
}

Status GpuPoolSubject::check_fused(const CompiledGpuPool& fused,
                                   std::span<const Schedule> by_feature, int64_t batch,
                                   const ArrangeGpuBlocks& arrange) {
  RECMILL_RETURN_IF_ERROR(reserve_outputs(static_cast<size_t>(floats_out(batch))));
  RECMILL_RETURN_IF_ERROR(spoil_outputs());
  RECMILL_RETURN_IF_ERROR(run_fused(fused, batch, arrange).status());
  size_t at = 0;
  for (size_t f = 0; f < features_.size(); ++f) {
    const std::vector<float> expected = reference(static_cast<int64_t>(f), batch);
    const size_t bytes = expected.size() * sizeof(float);
    if (bytes == 0) continue;
    RECMILL_RETURN_IF_ERROR(reserve(found_, bytes, gpu_, "answers"));
    RECMILL_RETURN_IF_ERROR(stream_.to_host(found_, outputs_, bytes, 0, at));
    RECMILL_RETURN_IF_ERROR(stream_.synchronize());
    at += bytes;
    const Order order = find_gpu_pool_kernel(by_feature[f])->of->order;
    if (!same_answer(found_.as<float>().first(expected.size()), expected, order))
      return Status::Failed("feature number " + std::to_string(f) + ": the answer of '" +
                            by_feature[f].name() + "' is not the reference's");
  }
  return {};
}

Result<ClassTimes> GpuPoolSubject::time_alone(size_t of_class, int64_t visited, int64_t rounds) {
  const int64_t feature = classes_[of_class].features.front();
  const auto candidates = candidates_of(of_class);
  std::vector<GpuSource> sources;  // together: compilers work side by side
  for (const GpuPoolRequest& candidate : candidates) {
    RECMILL_ASSIGN_OR_RETURN(const auto made, codegen::gpu_pool_sources({&candidate.function, 1},
                                                                        {.made_by = "Recmill"}));
    sources.push_back(made.front());
  }
  RECMILL_RETURN_IF_ERROR(options_.compile(sources).status());
  ClassTimes times;
  for (const GpuPoolRequest& candidate : candidates) {
    RECMILL_ASSIGN_OR_RETURN(const auto alone,
                             compile_gpu_pool({&candidate, 1}, {.made_by = "Recmill"},
                                              /*exactly=*/false, options_.compile, gpu_));
    std::vector<std::vector<double>> nanoseconds(visited);
    for (int64_t round = 0; round <= rounds; ++round) {
      for (int64_t batch = 0; batch < visited; ++batch) {
        const std::vector<JaggedView> of{bags(feature, batch)};
        RECMILL_RETURN_IF_ERROR(alone.pool->stage(of, pool_, bags_));
        const size_t floats = static_cast<size_t>(rows_out(feature, batch)) *
                              static_cast<size_t>(features_[feature].rows.dim);
        RECMILL_RETURN_IF_ERROR(reserve_outputs(floats));
        RECMILL_RETURN_IF_ERROR(alone.pool->send(bags_, stream_));
        RECMILL_ASSIGN_OR_RETURN(
            const double seconds,
            timed([&] { return alone.pool->run(bags_, outputs_of(of_class, 1, batch), stream_); }));
        if (round > 0) nanoseconds[batch].push_back(seconds * 1e9);
      }
    }
    const VisitTime time = time_of(nanoseconds);
    const Schedule& schedule = candidate.function.schedule;
    times.candidates.push_back(
        {schedule, time.nanoseconds, time.spread, "", find_gpu_pool_kernel(schedule)->of->order});
  }
  leave_out_second_default(times.candidates);
  return times;
}

void GpuPoolSubject::set_batches(std::span<const SparseBatch> batches) {
  batches_ = batches;
}

Result<double> GpuPoolSubject::run_fused(const CompiledGpuPool& fused, int64_t batch,
                                         const ArrangeGpuBlocks& arrange) {
  std::vector<JaggedView> of;
  std::vector<int64_t> begins{0};
  for (size_t f = 0; f < features_.size(); ++f) {
    const auto feature = static_cast<int64_t>(f);
    of.push_back(bags(feature, batch));
    begins.push_back(begins.back() + rows_out(feature, batch) * features_[f].rows.dim);
  }
  RECMILL_RETURN_IF_ERROR(reserve_outputs(static_cast<size_t>(begins.back())));
  std::vector<gpu::PoolOutput> outputs;
  for (size_t f = 0; f < features_.size(); ++f)
    outputs.push_back({outputs_.address<float>() + begins[f], features_[f].rows.dim});
  RECMILL_RETURN_IF_ERROR(fused.pool->stage(of, pool_, bags_, arrange));
  RECMILL_RETURN_IF_ERROR(fused.pool->send(bags_, stream_));
  return timed([&] { return fused.pool->run(bags_, outputs, stream_); });
}

}  // namespace recmill::kernels::tune
