// SPDX-License-Identifier: Apache-2.0
#include "verify/float64_run.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "batch/feature_layout.h"
#include "comm/threads.h"
#include "model/float64_model.h"
#include "run/rank.h"
#include "table/optimizers/ftrl.h"
#include "table/optimizers/row_state.h"

namespace recmill::train {
namespace {

// Formulas: the headers of table/, in float64. `mean_square` counts for row-wise Adagrad alone.
void update_row(const RowOptimizerOptions& o, double rate, int64_t iteration,
                std::span<const double> gradient, std::span<double> weights,
                std::span<double* const> state) {
  if (rate < table::Ftrl::kLeastRate && o.kind == OptimizerKind::ftrl) return;
  const bool counts_updates = o.kind == OptimizerKind::adam && o.correction == BiasCorrection::row;
  const double t = counts_updates ? ++state[2][0] : static_cast<double>(iteration) + 1.0;
  const double l2 = o.kind == OptimizerKind::ftrl ? 0.0 : o.l2;
  const auto dim = gradient.size();
  double mean_square = 0.0;
  for (size_t e = 0; e < dim; ++e) {
    const double g = gradient[e] + l2 * weights[e];
    mean_square += g * g / static_cast<double>(dim);
  }
  if (o.kind == OptimizerKind::rowwise_adagrad) state[0][0] += mean_square;
  for (size_t e = 0; e < dim; ++e) {
    double& w = weights[e];
    const double g = gradient[e] + l2 * w;
    const double before_step = w;
    switch (o.kind) {
      case OptimizerKind::sgd:
        w -= rate * g;
        break;
      case OptimizerKind::adagrad:
        state[0][e] += g * g;
        w -= rate * g / (std::sqrt(state[0][e]) + o.epsilon);
        break;
      case OptimizerKind::rowwise_adagrad:
        w -= rate / (std::sqrt(state[0][0]) + o.epsilon) * g;
        break;
      case OptimizerKind::adam: {
        state[0][e] = o.beta1 * state[0][e] + (1.0 - o.beta1) * g;
        state[1][e] = o.beta2 * state[1][e] + (1.0 - o.beta2) * g * g;
        const double root = std::sqrt(state[1][e] / (1.0 - std::pow(o.beta2, t)));
        w -= rate * (state[0][e] / (1.0 - std::pow(o.beta1, t))) / (root + o.epsilon);
        break;
      }
      case OptimizerKind::ftrl: {
        const double before = std::sqrt(state[0][e]);
        state[0][e] += g * g;
        const double after = std::sqrt(state[0][e]);
        state[1][e] += g - (after - before) / rate * w;
        const double linear = state[1][e];
        w = (std::clamp(linear, -o.l1, o.l1) - linear) / ((o.beta + after) / rate + o.l2);
        break;
      }
    }
    if (rate == 0.0) w = before_step;
  }
}

class Float64Training {
 public:
  Float64Training(const ResolvedRun& run, Rank& rank, model::Float64Model& model)
      : run_(run), rank_(rank), model_(model), features_(run.spec) {}

  Status start();
  Status step(const RankBatch& batch, double scale);
  Float64Outcome outcome;

 private:
  void look_up(const RankBatch& batch);
  std::vector<double> logit_gradient(const DenseBatch& dense, std::span<const double> logits) const;
  void update_tables(const RankBatch& batch, const model::Float64Gradient& gradient, double scale);
  double direction(int64_t i, double g, double t);
  void update_layers(std::vector<double>& gradient, int64_t iteration, double scale);

  const ResolvedRun& run_;
  Rank& rank_;
  model::Float64Model& model_;
  const FeatureLayout features_;
  std::vector<std::vector<Buffer>> state_;        // [tables][columns], float64 [rows][width]
  std::vector<std::vector<double>> dense_state_;  // [columns][parameters]
  model::Float64Batch inputs_;
};

Result<Buffer> make_column(const TableSpec& spec, int64_t width, double value) {
  auto column = Buffer::allocate(static_cast<size_t>(spec.rows * width) * sizeof(double));
  if (!column.ok()) return column.status().at("table " + spec.name + ", rows in float64");
  std::ranges::fill(column->as<double>(), value);
  return column;
}

Status Float64Training::start() {
  for (const TableSpec& spec : run_.spec.tables) {
    RECMILL_ASSIGN_OR_RETURN(auto weights, make_column(spec, spec.dim, 0.0));
    outcome.tables.push_back(std::move(weights));
    state_.emplace_back();
    for (const table::StateColumn& column : table::row_state(spec)) {
      RECMILL_ASSIGN_OR_RETURN(auto state, make_column(spec, column.width, double{column.initial}));
      state_.back().push_back(std::move(state));
    }
  }
  outcome.layers = model_.parameters();
  outcome.parameters.assign(model_.parameter_count(), 0.0);
  const std::span<const float> initial = rank_.trainer->parameters();
  for (const model::ParameterSpec& to : outcome.layers) {
    for (const model::ParameterSpec& from : rank_.model->parameters()) {
      if (from.name != to.name) continue;
      RECMILL_CHECK(from.shape == to.shape, to.name);
      std::copy_n(initial.begin() + from.offset, from.size(),
                  outcome.parameters.begin() + to.offset);
    }
  }
  for (const DenseOptimizer::State& column : rank_.dense_optimizer->state()) {
    const double first = column.values.empty() ? 0.0 : double{column.values[0]};
    dense_state_.emplace_back(outcome.parameters.size(), first);
  }
  return rank_.store->read_rows([&](const store::RowBlock& block) {
    std::ranges::copy(block.weights, outcome.tables[block.table].as<double>().begin() +
                                         block.first * run_.spec.tables[block.table].dim);
    return Status();
  });
}

void Float64Training::look_up(const RankBatch& batch) {
  const int64_t samples = batch.samples();
  inputs_ = {};
  inputs_.first_sample = batch.dense.first;
  inputs_.iteration = batch.before.iteration;
  inputs_.samples = samples;
  inputs_.dense.assign(batch.dense.values.begin(), batch.dense.values.end());
  const int64_t stride = features_.columns();
  inputs_.pooled.assign(samples * stride, 0.0);
  for (const FeatureLayout::Feature& feature : features_.features()) {
    const JaggedView bags = batch.sparse.features[feature.index].view(samples);
    inputs_.rows.push_back(bags);
    const int64_t dim = feature.dim;
    if (!feature.is_pooled()) inputs_.sequences.emplace_back(bags.lookups() * dim);
    for (int64_t i = 0; i < samples; ++i) {
      const int64_t begin = bags.offsets[i], end = bags.offsets[i + 1];
      const double share = feature.pooling == Pooling::mean ? 1.0 / double(end - begin) : 1.0;
      for (int64_t j = begin; j < end; ++j) {
        const double* row = outcome.tables[feature.table].as<double>().data() + bags.rows[j] * dim;
        double* to = feature.is_pooled()
                         ? inputs_.pooled.data() + i * stride + feature.column
                         : inputs_.sequences.back().data() + (j - bags.offsets[0]) * dim;
        const double weight = share * (bags.weights == nullptr ? 1.0 : double{bags.weights[j]});
        for (int64_t e = 0; e < dim; ++e) to[e] += weight * row[e];
      }
    }
  }
}

std::vector<double> Float64Training::logit_gradient(const DenseBatch& dense,
                                                    std::span<const double> logits) const {
  std::vector<double> gradient;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double weight = dense.sample_weights.empty() ? 1.0 : double{dense.sample_weights[i]};
    const double p = 1.0 / (1.0 + std::exp(-logits[i]));
    gradient.push_back(weight * (p - double{dense.labels[i]}) / double(logits.size()));
  }
  return gradient;
}

void Float64Training::update_tables(const RankBatch& batch, const model::Float64Gradient& gradient,
                                    double scale) {
  std::vector<std::map<int64_t, std::vector<double>>> sums(run_.spec.tables.size());
  const int64_t samples = batch.samples();
  const int64_t stride = features_.columns();
  for (const FeatureLayout::Feature& feature : features_.features()) {
    const JaggedView& bags = inputs_.rows[feature.index];
    const int64_t dim = feature.dim;
    for (int64_t i = 0; i < samples; ++i) {
      const int64_t begin = bags.offsets[i], end = bags.offsets[i + 1];
      const double share = feature.pooling == Pooling::mean ? 1.0 / double(end - begin) : 1.0;
      for (int64_t j = begin; j < end; ++j) {
        std::vector<double>& sum = sums[feature.table][bags.rows[j]];
        sum.resize(dim);
        const double* from =
            feature.is_pooled()
                ? gradient.pooled.data() + i * stride + feature.column
                : gradient.sequences[feature.sequence].data() + (j - bags.offsets[0]) * dim;
        const double weight = share * (bags.weights == nullptr ? 1.0 : double{bags.weights[j]});
        for (int64_t e = 0; e < dim; ++e) sum[e] += weight * from[e];
      }
    }
  }
  for (size_t t = 0; t < sums.size(); ++t) {
    const TableSpec& table = run_.spec.tables[t];
    if (table.frozen) continue;
    const double rate = table.optimizer.learning_rate * scale;
    for (const auto& [row, sum] : sums[t]) {
      std::vector<double*> state;
      for (auto& column : state_[t]) {
        const auto values = column.as<double>();
        state.push_back(values.data() + row * (static_cast<int64_t>(values.size()) / table.rows));
      }
      const auto weights = outcome.tables[t].as<double>().subspan(row * table.dim, table.dim);
      update_row(table.optimizer, rate, batch.before.iteration, sum, weights, state);
    }
  }
}

// Of parameter i, whose gradient g goes into its state. Formulas:
// step/optimizer/dense_optimizer.h, in float64.
double Float64Training::direction(int64_t i, double g, double t) {
  const DenseOptimizerOptions& o = run_.options.optimizer;
  if (dense_state_.empty()) return g;
  double& m = dense_state_[0][i];
  switch (o.kind) {
    case DenseOptimizerKind::sgd:
      return m = o.momentum * m + g;
    case DenseOptimizerKind::adagrad:
      m += g * g;
      return g / (std::sqrt(m) + o.epsilon);
    case DenseOptimizerKind::adam:
      break;
  }
  double& v = dense_state_[1][i];
  m = o.beta1 * m + (1.0 - o.beta1) * g;
  v = o.beta2 * v + (1.0 - o.beta2) * g * g;
  const double root = std::sqrt(v / (1.0 - std::pow(o.beta2, t))) + o.epsilon;
  return m / (1.0 - std::pow(o.beta1, t)) / root;
}

void Float64Training::update_layers(std::vector<double>& gradient, int64_t iteration,
                                    double scale) {
  const DenseOptimizerOptions& o = run_.options.optimizer;
  const double t = static_cast<double>(iteration) + 1.0, rate = o.learning_rate * scale;
  double squares = 0.0;
  for (const double g : gradient) squares += g * g;
  const double norm = std::sqrt(squares);
  const double clip = o.clip_norm > 0.0 && norm > o.clip_norm ? o.clip_norm / norm : 1.0;
  for (const model::ParameterSpec& layer : outcome.layers) {
    for (int64_t i = layer.offset; layer.trained && i < layer.offset + layer.size(); ++i) {
      double& w = outcome.parameters[i];
      const double step = direction(i, clip * gradient[i] + o.weight_decay * w, t);
      if (rate != 0.0) w -= rate * step;
    }
  }
}

Status Float64Training::step(const RankBatch& batch, double scale) {
  look_up(batch);
  RECMILL_ASSIGN_OR_RETURN(const auto logits, model_.forward(inputs_, outcome.parameters));
  RECMILL_ASSIGN_OR_RETURN(model::Float64Gradient gradient,
                           model_.backward(logit_gradient(batch.dense, logits)));
  update_tables(batch, gradient, scale);
  update_layers(gradient.parameters, batch.before.iteration, scale);
  ++outcome.iterations;
  return {};
}

}  // namespace

Result<Float64Outcome> train_in_float64(const ResolvedRun& run, Files& files) {
  Float64Outcome outcome;
  const auto pool = make_pool(1);
  RECMILL_RETURN_IF_ERROR(run_ranks(1, [&](Communicator& communicator) -> Status {
    RECMILL_ASSIGN_OR_RETURN(Rank rank, make_rank(run, Way::plain, communicator, *pool, files));
    RECMILL_ASSIGN_OR_RETURN(
        const auto model, model::make_float64_model(run.options.model, run.spec,
                                                    static_cast<uint64_t>(run.options.train.seed)));
    Float64Training training(run, rank, *model);
    RECMILL_RETURN_IF_ERROR(training.start());
    BatchSchedule schedule = run.schedule(0);
    schedule.evaluates = false;
    const auto stage = make_data_stage(run, rank, schedule);
    while (true) {
      RECMILL_ASSIGN_OR_RETURN(auto batch, stage->next());
      if (batch == nullptr) break;
      const double scale = rank.learning_rate.scale(batch->before.iteration);
      RECMILL_RETURN_IF_ERROR(training.step(*batch, scale));
      stage->recycle(std::move(batch));
    }
    outcome = std::move(training.outcome);
    return {};
  }));
  return outcome;
}

}  // namespace recmill::train
