// SPDX-License-Identifier: Apache-2.0
// The dense part of a training step alone: DLRM of Criteo-Kaggle's shape (13-512-256-64-16, 26 rows
// of 16, 512-256-1) with random rows in place of a store; forward, a gradient of the logits,
// backward, the tree over shards, SGD, and the packing of the new weights. Prints samples/s and the
// share of the FMA peak that was measured just before.
// usage: dlrm_bench [threads [float32|bfloat16 [batch]]]
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "batch/sparse_batch.h"
#include "comm/subtree_sums.h"
#include "kernels/dense_layer/dense_layer.h"
#include "kernels/dense_layer/fma_peak.h"
#include "model/dlrm.h"

namespace recmill::model {
namespace {

constexpr int64_t kFeatures = 26, kDim = 16, kDense = 13;
constexpr int64_t kPiece = 2048;  // parameters that are renewed at once

struct Part {
  const char* name;
  double seconds = 0;
};

class DenseStep {
 public:
  DenseStep(int64_t batch, LayerPrecision precision, Pool& pool)
      : pool_(pool), cut_{batch, ShardCut::default_shards(batch)} {
    ModelOptions options;
    options.bottom = {512, 256, 64, 16};
    options.top = {512, 256, 1};
    options.precision = precision;
    ModelSpec spec;
    spec.num_dense = kDense;
    for (int64_t f = 0; f < kFeatures; ++f) {
      spec.tables.emplace_back();
      spec.tables.back().dim = kDim;
      spec.features.emplace_back();
      spec.features.back().table = static_cast<int>(f);
    }
    auto made = make_dlrm(options, spec);
    RECMILL_CHECK(made.ok(), made.status().message());
    model_ = *std::move(made);
    const auto count = static_cast<size_t>(model_->parameter_count());
    parameters_.resize(count);
    model_->initialize(1, parameters_);
    RECMILL_CHECK(model_->load(parameters_, pool_).ok());
    fill(dense_, batch * kDense, 1);
    fill(rows_, batch * kFeatures * kDim, 2);
    row_gradients_.resize(rows_.size());
    logits_.resize(static_cast<size_t>(batch));
    logit_gradients_.resize(static_cast<size_t>(batch));
    sums_ = std::make_unique<SubtreeSums>(ShardRange{0, cut_.shards}, static_cast<int64_t>(count));
    for (int s = 0; s < cut_.shards; ++s) {
      states_.push_back(model_->make_state());
    }
    for (const ParameterSpec& p : model_->parameters()) {
      if (p.shape.size() == 2) products_ += p.size();
    }
  }

  /// 2 operations for each weight and sample forward, and 4 backward but for the first layer's
  /// input; 4 for each pair of rows and element.
  double operations() const {
    const double layers = 6.0 * static_cast<double>(products_) - 2.0 * 512 * kDense;
    const double pairs = (kFeatures + 1) * kFeatures / 2.0 * kDim * 6;
    return (layers + pairs) * static_cast<double>(cut_.samples);
  }

  void run() {
    Stopwatch watch;
    sums_->reset();
    pool_.run(cut_.shards, [&](int64_t s) { run_shard(static_cast<int>(s)); });
    lap(0, watch);
    const auto parts = sums_->parts();
    const auto renew = [&](int64_t begin, int64_t end) {
      std::array<float, kPiece> sum;
      for (int64_t at = begin; at < end; at += kPiece) {
        const auto count = static_cast<size_t>(std::min(kPiece, end - at));
        tree_sum<float>({0, cut_.shards}, parts, std::span(sum).first(count), at);
        float* weights = parameters_.data() + at;
        for (size_t i = 0; i < count; ++i) weights[i] -= 0.01f * sum[i];
      }
    };
    RECMILL_CHECK(model_->load(parameters_, pool_, renew).ok());
    lap(1, watch);
  }

  void print_parts(int64_t steps) const {
    std::printf("   ");
    for (const Part& part : parts_) {
      std::printf(" %s %.0f us", part.name, part.seconds / static_cast<double>(steps) * 1e6);
    }
    std::printf("\n");
  }
  void reset_parts() {
    for (Part& part : parts_) part.seconds = 0;
  }
  int shards() const { return cut_.shards; }

 private:
  static void fill(std::vector<float>& values, int64_t size, uint64_t stream) {
    const Random random(1, Purpose::test, stream);
    values.resize(static_cast<size_t>(size));
    for (size_t i = 0; i < values.size(); ++i) values[i] = 2 * random.uniform(i) - 1;
  }

  void lap(size_t part, Stopwatch& watch) {
    parts_[part].seconds += watch.seconds();
    watch = Stopwatch();
  }

  void run_shard(int s) {
    const int64_t begin = cut_.begin(s), samples = cut_.end(s) - begin;
    std::unique_ptr<ShardState> state;
    {
      std::lock_guard lock(mutex_);
      state = std::move(states_.back());
      states_.pop_back();
    }
    ShardInput input;
    input.samples = samples;
    input.training = true;
    input.dense = dense_.data() + begin * kDense;
    input.pooled = rows_.data() + begin * kFeatures * kDim;
    const auto at = static_cast<size_t>(begin), count = static_cast<size_t>(samples);
    const auto logits = std::span(logits_).subspan(at, count);
    const auto gradients = std::span(logit_gradients_).subspan(at, count);
    float* sum = sums_->take();
    RECMILL_CHECK(model_->forward(0, input, {}, *state, {}, logits).ok());
    for (size_t i = 0; i < count; ++i) {
      gradients[i] = (logits[i] > 0 ? 1e-3f : -1e-3f) / static_cast<float>(cut_.samples);
    }
    RECMILL_CHECK(model_
                      ->backward(0, input, {}, gradients, *state, {},
                                 {row_gradients_.data() + begin * kFeatures * kDim, {}, sum})
                      .ok());
    sums_->put(s, sum);
    std::lock_guard lock(mutex_);
    states_.push_back(std::move(state));
  }

  Pool& pool_;
  ShardCut cut_;
  std::unique_ptr<Model> model_;
  int64_t products_ = 0;
  std::mutex mutex_;
  std::vector<float> parameters_, dense_, rows_, row_gradients_, logits_, logit_gradients_;
  std::vector<std::unique_ptr<ShardState>> states_;
  std::unique_ptr<SubtreeSums> sums_;
  std::vector<Part> parts_ = {{"shards"}, {"update"}};
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure(int64_t batch, LayerPrecision precision, Pool& pool) {
  DenseStep step(batch, precision, pool);
  const int64_t steps = std::max<int64_t>(1, 65536 / batch);
  for (int64_t i = 0; i < std::max<int64_t>(2, steps / 8); ++i) step.run();
  step.reset_parts();
  const double peak = kernels::dense_layer::fma_peak(precision == LayerPrecision::float32
                                                         ? kernels::Precision::float32
                                                         : kernels::Precision::bfloat16,
                                                     pool);
  std::vector<double> rates;
  for (int repetition = 0; repetition < 7; ++repetition) {
    const Stopwatch watch;
    for (int64_t i = 0; i < steps; ++i) step.run();
    rates.push_back(static_cast<double>(steps * batch) / watch.seconds());
  }
  const double rate = median(rates);
  const double share = rate * step.operations() / static_cast<double>(batch) / peak;
  std::printf("%-9s batch %5ld shards %d: %7.0f samples/s, %.1f %% of %.0f Gflop/s\n",
              std::string(name_of(precision)).c_str(), static_cast<long>(batch), step.shards(),
              rate, share * 100, peak * 1e-9);
  step.print_parts(7 * steps);
}

}  // namespace
}  // namespace recmill::model

int main(int argc, char** argv) {
  recmill::Pool pool(argc > 1 ? std::max(1, std::atoi(argv[1])) : 2);
  pool.set_thread_start(recmill::kernels::dense_layer::use_one_thread);
  using recmill::model::LayerPrecision;
  for (LayerPrecision precision : {LayerPrecision::float32, LayerPrecision::bfloat16}) {
    if (argc > 2 && recmill::name_of(precision) != argv[2]) continue;
    for (int64_t batch : {128, 2048, 16384}) {
      if (argc > 3 && batch != std::atoi(argv[3])) continue;
      recmill::model::measure(batch, precision, pool);
    }
  }
  return 0;
}
