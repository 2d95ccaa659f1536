// SPDX-License-Identifier: Apache-2.0
// Each model against the same formulas in plain tensor operations over the whole batch in one
// piece.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "base/random.h"
#include "model/initialize.h"
#include "model/make_model.h"
#include "schema/testing/tables_of_dims.h"

namespace recmill::model {
namespace {

constexpr uint64_t kSeed = 20231;

/// One global batch of random inputs, and a gradient by its logits.
struct Problem {
  ModelOptions options;
  ModelSpec spec;  // with the model's tables
  int64_t samples = 0;
  std::vector<float> dense, pooled, logit_gradient;
  struct Sequence {
    std::vector<float> rows;
    std::vector<int64_t> offsets;
  };
  std::vector<Sequence> sequences;
  struct Bags {
    std::vector<int64_t> offsets, rows;
  };
  std::vector<Bags> bags;  // [features], for first_order = dense
};

struct Outcome {
  std::vector<float> logits, by_pooled, by_parameters, parameters;
  std::vector<std::vector<float>> by_sequences;
  bool operator==(const Outcome&) const = default;
};

std::vector<float> normals(const char* what, int64_t count, double scale = 1.0) {
  const Random random(kSeed, Purpose::test, std::hash<std::string>{}(what));
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t e = 0; e < values.size(); ++e) values[e] = float(scale * random.normal(e));
  return values;
}

ModelSpec spec_of(size_t tables, int64_t dim, int64_t rows, int64_t num_dense) {
  return tables_of_dims(std::vector(tables, dim), rows, num_dense);
}

Problem problem_of(const ModelOptions& options, const ModelSpec& spec, int64_t samples) {
  Problem p;
  p.options = options;
  p.spec = with_model_tables(spec, options);
  p.samples = samples;
  int64_t width = 0;
  const Random random(kSeed, Purpose::test, 77);
  for (size_t f = 0; f < p.spec.features.size(); ++f) {
    if (p.spec.features[f].pooling != Pooling::none) {
      width += p.spec.dim_of(f);
    } else {
      Problem::Sequence sequence{{}, {5}};  // offsets[0] is subtracted
      for (int64_t i = 0; i < samples; ++i) {
        sequence.offsets.push_back(sequence.offsets.back() + int64_t(random.below(9, i)));
      }
      sequence.rows = normals(p.spec.features[f].name.c_str(),
                              (sequence.offsets.back() - 5) * p.spec.dim_of(f));
      p.sequences.push_back(std::move(sequence));
    }
    Problem::Bags bags{{0}, {}};
    for (int64_t i = 0; i < samples; ++i) {
      for (uint64_t j = 0; j < random.below(4, i, 10 + f); ++j) {
        const int64_t rows = p.spec.tables[p.spec.features[f].table].rows;
        bags.rows.push_back(int64_t(random.below(rows, i * 4 + j, 1000 + f)));
      }
      bags.offsets.push_back(int64_t(bags.rows.size()));
    }
    p.bags.push_back(std::move(bags));
  }
  p.dense = normals("dense", samples * spec.num_dense);
  p.pooled = normals("pooled", samples * width);
  p.logit_gradient =
      normals("logit gradient", samples, 1.0 / double(std::max<int64_t>(samples, 1)));
  return p;
}

/// Adds parts[0 .. S) by the balanced tree into parts[0].
void add_by_tree(std::vector<std::vector<float>>& parts) {
  for (size_t stride = 1; stride < parts.size(); stride *= 2) {
    for (size_t s = 0; s + stride < parts.size(); s += 2 * stride) {
      for (size_t e = 0; e < parts[s].size(); ++e) parts[s][e] += parts[s + stride][e];
    }
  }
}

/// What training does with a model: phases, trees, slices on the pool's threads.
class Runner {
 public:
  Runner(const Problem& problem, const Model& model, int slices)
      : p_(problem), model_(model), cut_{problem.samples, slices}, totals_(model.phases()) {
    stride_ = model.embedding_layout().stride;
    for (int s = 0; s < slices; ++s) states_.push_back(model.make_state());
  }

  void run(ThreadPool& pool, bool training, std::span<float> parameters, Outcome& out) {
    out.logits.assign(p_.samples, NAN);
    for (int phase = 0; phase < model_.phases(); ++phase) {
      each_slice(pool, model_.forward_sum_size(phase), [&](int s, std::span<float> sum) {
        const std::span logits =
            std::span(out.logits).subspan(cut_.begin(s), cut_.end(s) - cut_.begin(s));
        with_input(s, training, [&](const SliceInput& input) {
          return model_.forward(phase, input, total(phase - 1), *states_[s], sum, logits);
        });
      });
      totals_[phase] = parts_[0];
    }
    if (!training) return;
    const std::vector<std::vector<float>> forward_totals = totals_;
    out.by_pooled.assign(p_.pooled.size(), NAN);
    for (const auto& sequence : p_.sequences) {
      out.by_sequences.emplace_back(sequence.rows.size(), NAN);
    }
    std::vector<std::vector<float>> by_parameters(cut_.slices,
                                                  std::vector<float>(parameters.size(), NAN));
    std::vector<float> above;
    for (int phase = model_.phases() - 1; phase >= 0; --phase) {
      each_slice(pool, model_.backward_sum_size(phase), [&](int s, std::span<float> sum) {
        const int64_t begin = cut_.begin(s), count = cut_.end(s) - begin;
        std::vector<float*> by_sequences;
        for (size_t q = 0; q < p_.sequences.size(); ++q) {
          const auto& offsets = p_.sequences[q].offsets;
          const int64_t dim = int64_t(p_.sequences[q].rows.size()) /
                              std::max<int64_t>(1, offsets.back() - offsets[0]);
          by_sequences.push_back(out.by_sequences[q].data() + (offsets[begin] - offsets[0]) * dim);
        }
        const SliceGradient gradient{out.by_pooled.data() + begin * stride_, by_sequences,
                                     by_parameters[s].data()};
        with_input(s, training, [&](const SliceInput& input) {
          return model_.backward(phase, input, above,
                                 std::span(p_.logit_gradient).subspan(begin, count), *states_[s],
                                 sum, gradient);
        });
      });
      above = parts_[0];
    }
    add_by_tree(by_parameters);
    out.by_parameters = by_parameters[0];
    model_.finish_iteration(forward_totals, p_.samples, parameters);
  }

 private:
  std::span<const float> total(int phase) const {
    return phase < 0 ? std::span<const float>() : totals_[phase];
  }

  void each_slice(ThreadPool& pool, int64_t sum_size,
                  const std::function<void(int, std::span<float>)>& body) {
    parts_.assign(cut_.slices, std::vector<float>(sum_size, NAN));
    pool.run(cut_.slices, [&](int64_t s) { body(int(s), parts_[s]); });
    add_by_tree(parts_);
  }

  void with_input(int s, bool training,
                  const std::function<Status(const SliceInput&)>& body) const {
    const int64_t begin = cut_.begin(s), end = cut_.end(s);
    std::vector<SliceInput::Sequence> sequences;
    for (const auto& sequence : p_.sequences) {
      const int64_t lookups = sequence.offsets.back() - sequence.offsets[0];
      const int64_t dim = int64_t(sequence.rows.size()) / std::max<int64_t>(1, lookups);
      sequences.push_back(
          {sequence.rows.data() + (sequence.offsets[begin] - sequence.offsets[0]) * dim,
           sequence.offsets.data() + begin});
    }
    std::vector<JaggedView> rows;
    for (const auto& bags : p_.bags) {
      const JaggedView all{bags.offsets.data(), bags.rows.data(), nullptr, p_.samples, false};
      rows.push_back(all.slice(begin, end));
    }
    const SliceInput input{.first_sample = 1000 + begin,
                           .iteration = 3,
                           .samples = end - begin,
                           .training = training,
                           .dense = p_.dense.data() + begin * p_.spec.num_dense,
                           .pooled = const_cast<float*>(p_.pooled.data()) + begin * stride_,
                           .sequences = sequences,
                           .rows = rows};
    const Status status = body(input);
    EXPECT_TRUE(status.ok()) << status.message();
  }

  const Problem& p_;
  const Model& model_;
  const SliceCut cut_;
  int64_t stride_ = 0;
  std::vector<std::unique_ptr<SliceState>> states_;
  std::vector<std::vector<float>> parts_, totals_;
};

std::unique_ptr<Model> model_of(const Problem& problem) {
  auto model = make_model(problem.options, problem.spec, kSeed);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *std::move(model);
}

/// Random values everywhere (biases and norms too), running variances positive.
std::vector<float> parameters_of(const Model& model) {
  std::vector<float> values(model.parameter_count());
  model.initialize(kSeed, values);
  for (const auto& spec : model.parameters()) {
    const auto part = part_of(std::span(values), spec);
    const auto noise = normals(spec.name.c_str(), spec.size(), 0.1);
    for (size_t e = 0; e < part.size(); ++e)
      part[e] += spec.trained ? noise[e] : std::abs(noise[e]);
  }
  return values;
}

Outcome outcome_of(const Problem& problem, int slices, int threads, bool training = true) {
  const auto model = model_of(problem);
  Outcome out;
  out.parameters = parameters_of(*model);
  ThreadPool pool(threads);
  EXPECT_TRUE(model->load(out.parameters, pool).ok());
  Runner(problem, *model, slices).run(pool, training, out.parameters, out);
  return out;
}

/// The plain model: all inputs as tensors of one precision, parameters by name.
struct Plain {
  at::ScalarType type;
  at::Tensor dense, pooled;
  std::vector<at::Tensor> sequences;
  std::map<std::string, at::Tensor> parameters;

  at::Tensor linear(const std::string& name, const at::Tensor& x) const {
    return at::linear(x, parameters.at(name + ".weight"), parameters.at(name + ".bias"));
  }
  at::Tensor layers(const std::string& name, at::Tensor x, bool last_relu) const {
    for (int l = 0;; l += 2) {
      const std::string layer = name + "." + std::to_string(l);
      if (!parameters.contains(layer + ".weight")) return x;
      x = linear(layer, x);
      const bool last = !parameters.contains(name + "." + std::to_string(l + 2) + ".weight");
      if (!last || last_relu) x = x.relu();
    }
  }
  at::Tensor feature(int64_t f, int64_t dim) const { return pooled.narrow(1, f * dim, dim); }
};

using PlainModel = std::function<at::Tensor(const Problem&, const Plain&)>;  // logits

at::Tensor leaf(std::span<const float> values, at::IntArrayRef shape, at::ScalarType type) {
  return at::from_blob(const_cast<float*>(values.data()), shape, at::kFloat)
      .to(type, false, true)
      .set_requires_grad(true);
}

Outcome plain_outcome(const Problem& p, const PlainModel& plain_model, at::ScalarType type) {
  at::set_num_threads(1);
  const auto model = model_of(p);
  Outcome out;
  out.parameters = parameters_of(*model);
  const int64_t n = p.samples;
  Plain plain{.type = type,
              .dense = leaf(p.dense, {n, p.spec.num_dense}, type),
              .pooled = leaf(p.pooled, {n, model->embedding_layout().stride}, type),
              .sequences = {},
              .parameters = {}};
  std::vector<at::Tensor> leaves{plain.pooled};
  for (const auto& sequence : p.sequences) {
    const int64_t lookups = sequence.offsets.back() - sequence.offsets[0];
    plain.sequences.push_back(
        leaf(sequence.rows, {lookups, int64_t(sequence.rows.size()) / lookups}, type));
    leaves.push_back(plain.sequences.back());
  }
  for (const auto& spec : model->parameters()) {
    const auto part = part_of(std::span<const float>(out.parameters), spec);
    plain.parameters[spec.name] = leaf(part, spec.shape, type);
    if (spec.trained) leaves.push_back(plain.parameters[spec.name]);
  }
  const at::Tensor logits = plain_model(p, plain);
  const auto gradients = torch::autograd::grad({(logits * leaf(p.logit_gradient, {n}, type)).sum()},
                                               leaves, {}, false, false, true);
  const auto floats = [](const at::Tensor& tensor) {
    const at::Tensor values = tensor.detach().to(at::kFloat).contiguous();
    return std::vector<float>(values.const_data_ptr<float>(),
                              values.const_data_ptr<float>() + values.numel());
  };
  out.logits = floats(logits);
  out.by_pooled = floats(gradients[0]);
  size_t next = 1;
  for (size_t q = 0; q < p.sequences.size(); ++q)
    out.by_sequences.push_back(floats(gradients[next++]));
  out.by_parameters.assign(out.parameters.size(), 0.0f);
  for (const auto& spec : model->parameters()) {
    const at::Tensor values = plain.parameters[spec.name];
    std::ranges::copy(floats(values), part_of(std::span(out.parameters), spec).begin());
    if (!spec.trained) continue;
    const at::Tensor& gradient = gradients[next++];
    if (!gradient.defined()) continue;
    std::ranges::copy(floats(gradient), part_of(std::span(out.by_parameters), spec).begin());
  }
  return out;
}

double norm(std::span<const float> values) {
  double squares = 0;
  for (float value : values) squares += double(value) * double(value);
  return std::sqrt(squares);
}

/// |a - b| / |b|, Euclidean; `floor` keeps what is zero but for rounding from dividing by it.
double distance(std::span<const float> a, std::span<const float> b, double floor = 1e-30) {
  RECMILL_CHECK(a.size() == b.size());
  std::vector<float> difference(a.size());
  for (size_t e = 0; e < a.size(); ++e) difference[e] = a[e] - b[e];
  return norm(difference) / std::max(norm(b), floor);
}

/// A layer's gradients are held to at least a hundredth of the whole gradient: a bias below batch
/// normalisation has none but rounding.
void expect_near(const Problem& p, const Outcome& ours, const Outcome& plain, double tolerance) {
  EXPECT_LE(distance(ours.logits, plain.logits), tolerance);
  EXPECT_LE(distance(ours.by_pooled, plain.by_pooled), tolerance);
  for (size_t q = 0; q < p.sequences.size(); ++q) {
    EXPECT_LE(distance(ours.by_sequences[q], plain.by_sequences[q]), tolerance);
  }
  const double floor = 0.01 * norm(plain.by_parameters);
  const auto model = model_of(p);
  for (const auto& spec : model->parameters()) {
    const auto part = [&](const std::vector<float>& flat) {
      return part_of(std::span<const float>(flat), spec);
    };
    EXPECT_LE(distance(part(ours.parameters), part(plain.parameters)), tolerance) << spec.name;
    EXPECT_LE(distance(part(ours.by_parameters), part(plain.by_parameters), floor), tolerance)
        << "gradient of " << spec.name;
  }
}

// --- the plain formulas -----------------------------------------------------------------------

at::Tensor plain_deep_input(const Problem& p, const Plain& m, const at::Tensor& rows) {
  if (p.options.deep_input == DeepInput::dense) return m.dense;
  if (p.options.deep_input == DeepInput::rows) return rows;
  return at::cat({m.dense, rows}, 1);
}

at::Tensor plain_dlrm(const Problem& p, const Plain& m) {
  const int64_t dim = p.spec.dim_of(0);
  std::vector<at::Tensor> vectors, inputs;
  if (!p.options.bottom.empty()) vectors = inputs = {m.layers("bottom", m.dense, true)};
  for (size_t f = 0; f < p.spec.features.size(); ++f) vectors.push_back(m.feature(f, dim));
  for (size_t i = 0; i < vectors.size(); ++i) {
    for (size_t j = 0; j < i; ++j) inputs.push_back((vectors[i] * vectors[j]).sum(1, true));
  }
  return m.layers("top", at::cat(inputs, 1), false).flatten();
}

at::Tensor plain_mlp(const Problem&, const Plain& m) {
  return m.layers("top", at::cat({m.dense, m.pooled}, 1), false).flatten();
}

at::Tensor plain_wide_and_deep(const Problem& p, const Plain& m) {
  const at::Tensor deep = m.layers("deep", plain_deep_input(p, m, m.pooled), false);
  return m.linear("wide", at::cat({m.pooled, deep}, 1)).flatten();
}

at::Tensor plain_deep_cross(const Problem& p, const Plain& m) {
  const at::Tensor first = p.options.bottom.empty()
                               ? m.pooled
                               : at::cat({m.layers("bottom", m.dense, true), m.pooled}, 1);
  at::Tensor x = first;
  for (int l = 0; l < p.options.cross_layers; ++l) {
    const std::string name = "cross." + std::to_string(l);
    const at::Tensor full = at::matmul(m.parameters.at(name + ".w"), m.parameters.at(name + ".v"));
    x = first * (at::matmul(x, full.t()) + m.parameters.at(name + ".bias")) + x;
  }
  return m.layers("over", x, false).flatten();
}

at::Tensor plain_first_order(const Problem& p, const Plain& m) {
  const int64_t features = p.spec.features.size();
  if (p.options.first_order == FirstOrder::table) {
    return m.pooled.narrow(1, m.pooled.size(1) - features / 2, features / 2).sum(1);
  }
  std::vector<at::Tensor> samples;
  for (int64_t i = 0; i < p.samples; ++i) {
    at::Tensor sum = at::zeros({}, m.type);
    for (int64_t f = 0; f < features; ++f) {
      int64_t first = 0;
      for (int t = 0; t < p.spec.features[f].table; ++t) first += p.spec.tables[t].rows;
      const int64_t begin = p.bags[f].offsets[i], end = p.bags[f].offsets[i + 1];
      const bool mean = p.spec.features[f].pooling == Pooling::mean;
      for (int64_t j = begin; j < end; ++j) {
        const at::Tensor weight =
            m.parameters.at("first_order.weight").index({first + p.bags[f].rows[j], 0});
        sum = sum + (mean ? weight / (end - begin) : weight);
      }
    }
    samples.push_back(sum);
  }
  return at::stack(samples);
}

at::Tensor plain_deep_fm(const Problem& p, const Plain& m, bool training) {
  const int64_t own = std::ranges::count(p.spec.features, -1, &FeatureSpec::same_ids_as);
  const int64_t dim = p.spec.dim_of(0);
  at::Tensor logit = plain_first_order(p, m) + m.parameters.at("first_order.bias");
  for (int64_t i = 0; i < own; ++i) {
    for (int64_t j = 0; j < i; ++j) logit = logit + (m.feature(i, dim) * m.feature(j, dim)).sum(1);
  }
  at::Tensor x = plain_deep_input(p, m, m.pooled.narrow(1, 0, own * dim));
  const Random random(kSeed, Purpose::dropout, 3);
  int64_t element = 0;
  for (size_t l = 0; l + 1 < p.options.deep.size(); ++l) {
    x = m.linear("deep." + std::to_string(2 * l), x);
    if (p.options.batch_norm) {
      const std::string norm = "norm." + std::to_string(l);
      at::Tensor mean = m.parameters.at(norm + ".running_mean").detach();
      at::Tensor variance = m.parameters.at(norm + ".running_var").detach();
      x = at::batch_norm(x, m.parameters.at(norm + ".weight"), m.parameters.at(norm + ".bias"),
                         mean, variance, training, 0.1, 1e-5, false);
    }
    x = x.relu();
    if (training && p.options.dropout > 0) {
      std::vector<double> mask;
      for (int64_t i = 0; i < p.samples; ++i) {
        for (int64_t j = 0; j < x.size(1); ++j) {
          const bool kept = random.uniform(1000 + i, element + j) >= float(p.options.dropout);
          mask.push_back(kept ? 1.0 / (1.0 - p.options.dropout) : 0.0);
        }
      }
      x = x * at::tensor(mask, m.type).reshape(x.sizes());
    }
    element += x.size(1);
  }
  return logit + m.linear("deep." + std::to_string(2 * p.options.deep.size() - 2), x).flatten();
}

/// One sample and one step at a time.
at::Tensor plain_tbsm(const Problem& p, const Plain& m) {
  const int64_t length = p.options.sequence_length, dim = p.spec.dim_of(0);
  const auto step = [&](const at::Tensor& z, std::vector<at::Tensor> vectors) {
    std::vector<at::Tensor> inputs{z};
    vectors.insert(vectors.begin(), z);
    for (size_t i = 0; i < vectors.size(); ++i) {
      for (size_t j = 0; j < i; ++j) inputs.push_back((vectors[i] * vectors[j]).sum().reshape({1}));
    }
    return m.layers("top", at::cat(inputs).unsqueeze(0), true).flatten();
  };
  std::vector<at::Tensor> logits;
  for (int64_t i = 0; i < p.samples; ++i) {
    const at::Tensor z = m.layers("bottom", m.dense.narrow(0, i, 1), true).flatten();
    const at::Tensor rows = m.pooled[i];  // user, item, category
    const at::Tensor user = rows.narrow(0, 0, dim);
    const at::Tensor q = step(z, {user, rows.narrow(0, dim, dim), rows.narrow(0, 2 * dim, dim)});
    std::vector<at::Tensor> weights(length, at::zeros({1}, m.type)), h;
    const int64_t base = p.sequences[0].offsets[0], end = p.sequences[0].offsets[i + 1];
    const int64_t steps = std::min(length, end - p.sequences[0].offsets[i]);
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t lookup = end - steps + t - base;
      h.push_back(step(z, {user, m.sequences[0][lookup], m.sequences[1][lookup]}));
      weights[length - steps + t] = (h.back() * q).sum().reshape({1});
    }
    const at::Tensor attention =
        m.layers("attention", at::cat(weights).unsqueeze(0), false).flatten();
    at::Tensor context = at::zeros_like(q);
    for (int64_t t = 0; t < steps; ++t) context = context + attention[length - steps + t] * h[t];
    logits.push_back(m.layers("over", at::cat({context, q}).unsqueeze(0), false).flatten());
  }
  return at::cat(logits);
}

// --- the cases --------------------------------------------------------------------------------

struct Case {
  std::string name;
  Problem problem;
  PlainModel plain;
};

ModelOptions deep_fm_options() {
  return {.kind = ModelKind::deep_fm, .deep = {24, 16, 8, 1}, .dropout = 0.5, .batch_norm = true};
}

Problem tbsm_problem(int64_t samples) {
  ModelSpec spec = spec_of(3, 8, 50, 1);
  for (int t : {1, 2}) {
    spec.features.push_back(
        {.name = t == 1 ? "items" : "categories", .table = t, .pooling = Pooling::none});
  }
  return problem_of({.kind = ModelKind::tbsm,
                     .bottom = {8},
                     .top = {15, 15},
                     .over = {20, 1},
                     .attention = {15},
                     .sequence_length = 6},
                    spec, samples);
}

std::vector<Case> all_cases(int64_t samples) {
  using enum ModelKind;
  const ModelSpec spec = spec_of(5, 8, 40, 13);
  ModelSpec mean_pooled = spec;
  mean_pooled.features[2].pooling = Pooling::mean;
  const PlainModel plain = [](const Problem& p, const Plain& m) {
    return plain_deep_fm(p, m, true);
  };
  ModelOptions rows_only = deep_fm_options();
  rows_only.deep_input = DeepInput::rows;
  ModelOptions dense_first = deep_fm_options();
  dense_first.first_order = FirstOrder::dense;
  dense_first.batch_norm = false;
  std::vector<Case> cases;
  cases.push_back({"dlrm",
                   problem_of({.kind = dlrm, .bottom = {32, 8}, .top = {24, 1}}, spec, samples),
                   plain_dlrm});
  cases.push_back({"dlrm without dense values",
                   problem_of({.kind = dlrm, .top = {24, 1}}, spec_of(5, 8, 40, 0), samples),
                   plain_dlrm});
  cases.push_back({"wide_and_deep",
                   problem_of({.kind = wide_and_deep, .deep = {32, 16}}, spec, samples),
                   plain_wide_and_deep});
  cases.push_back({"wide_and_deep over dense",
                   problem_of({.kind = wide_and_deep, .deep = {32}, .deep_input = DeepInput::dense},
                              spec, samples),
                   plain_wide_and_deep});
  cases.push_back(
      {"deep_cross",
       problem_of({.kind = deep_cross, .bottom = {32, 8}, .over = {32, 1}, .cross_rank = 4}, spec,
                  samples),
       plain_deep_cross});
  cases.push_back({"deep_cross without dense values",
                   problem_of({.kind = deep_cross, .over = {32, 1}, .cross_layers = 3},
                              spec_of(5, 8, 40, 0), samples),
                   plain_deep_cross});
  cases.push_back({"deep_fm", problem_of(deep_fm_options(), spec, samples), plain});
  cases.push_back({"deep_fm over rows", problem_of(rows_only, spec, samples), plain});
  cases.push_back(
      {"deep_fm, dense first order", problem_of(dense_first, mean_pooled, samples), plain});
  cases.push_back({"tbsm", tbsm_problem(samples), plain_tbsm});
  ModelSpec two_dims = spec_of(5, 8, 40, 13);
  two_dims.tables[1].dim = 3;
  cases.push_back(
      {"mlp", problem_of({.kind = mlp, .top = {32, 16, 1}}, two_dims, samples), plain_mlp});
  return cases;
}

TEST(TorchModels, forward_and_gradients_equal_the_plain_model_over_the_whole_batch) {
  for (const Case& c : all_cases(67)) {
    const Outcome exact = plain_outcome(c.problem, c.plain, at::kDouble);
    const Outcome plain = plain_outcome(c.problem, c.plain, at::kFloat);
    for (int slices : {1, 2, 8}) {
      SCOPED_TRACE(testing::Message() << c.name << ", slices " << slices);
      const Outcome ours = outcome_of(c.problem, slices, 1);
      expect_near(c.problem, ours, exact, 2e-5);
      expect_near(c.problem, ours, plain, 2e-5);
    }
  }
}

TEST(TorchModels, are_bitwise_the_same_at_every_number_of_threads) {
  for (const Case& c : all_cases(67)) {
    SCOPED_TRACE(c.name);
    const Outcome one = outcome_of(c.problem, 8, 1);
    for (int threads : {2, 3, 8}) EXPECT_TRUE(one == outcome_of(c.problem, 8, threads)) << threads;
  }
}

TEST(TorchModels, empty_slices_and_an_empty_batch_give_zero_gradients) {
  for (int64_t samples : {0, 1, 3}) {
    for (const Case& c : all_cases(samples)) {
      SCOPED_TRACE(testing::Message() << c.name << ", samples " << samples);
      const Outcome ours = outcome_of(c.problem, 8, 2);
      for (float value : ours.by_parameters) EXPECT_TRUE(std::isfinite(value));
      if (samples > 0) continue;
      EXPECT_EQ(std::vector<float>(ours.by_parameters.size()), ours.by_parameters);
    }
  }
}

TEST(TorchModels, evaluation_uses_running_statistics_and_drops_nothing) {
  const Problem p = problem_of(deep_fm_options(), spec_of(5, 8, 40, 13), 67);
  const auto plain = [](const Problem& q, const Plain& m) { return plain_deep_fm(q, m, false); };
  const Outcome exact = plain_outcome(p, plain, at::kDouble);
  for (int slices : {1, 2, 8}) {
    const Outcome ours = outcome_of(p, slices, 2, false);
    EXPECT_LE(distance(ours.logits, exact.logits), 2e-5);
    EXPECT_EQ(parameters_of(*model_of(p)), ours.parameters);
  }
}

TEST(TorchModels, unaligned_parameters_are_used_alike) {
  const Problem p =
      problem_of({.kind = ModelKind::wide_and_deep, .deep = {32, 16}}, spec_of(5, 8, 40, 13), 67);
  const auto model = model_of(p);
  const std::vector<float> values = parameters_of(*model);
  ThreadPool pool(1);
  std::vector<Outcome> outcomes(16);
  for (size_t shift = 0; shift < 16; ++shift) {
    std::vector<float> shifted(values.size() + 16);
    std::ranges::copy(values, shifted.begin() + shift);
    const std::span<float> parameters(shifted.data() + shift, values.size());
    std::fill(parameters.begin(), parameters.end(), 0.0f);
    // As after an update: the model reads what it had renewed.
    const Model::Renew renew = [&](int64_t begin, int64_t end) {
      for (int64_t e = begin; e < end; ++e) parameters[e] += values[e];
    };
    ASSERT_TRUE(model->load(parameters, pool, renew).ok());
    Runner(p, *model, 2).run(pool, true, parameters, outcomes[shift]);
    EXPECT_TRUE(outcomes[shift] == outcomes[0]) << "shifted by " << shift << " floats";
  }
}

TEST(TorchModels, bfloat16_layers_stay_near_float32) {
  for (Case& c : all_cases(67)) {
    const ModelKind kind = c.problem.options.kind;
    if (kind == ModelKind::dlrm || kind == ModelKind::mlp) continue;  // by kernels/dense_layer
    SCOPED_TRACE(c.name);
    const Outcome full = outcome_of(c.problem, 2, 1);
    c.problem.options.precision = LayerPrecision::bfloat16;
    const Outcome half = outcome_of(c.problem, 2, 1);
    EXPECT_LE(distance(half.logits, full.logits), 0.02);
    EXPECT_GT(distance(half.logits, full.logits), 1e-5);
    EXPECT_TRUE(half == outcome_of(c.problem, 2, 2));
  }
}

TEST(Tbsm, histories_of_unequal_length_are_refused_with_the_sample) {
  Problem p = tbsm_problem(4);
  p.sequences[1].offsets.back() += 1;
  const auto model = model_of(p);
  const std::vector<float> values = parameters_of(*model);
  ThreadPool pool(1);
  ASSERT_TRUE(model->load(values, pool).ok());
  std::vector<SliceInput::Sequence> sequences;
  for (const auto& s : p.sequences) sequences.push_back({s.rows.data(), s.offsets.data()});
  const auto state = model->make_state();
  std::vector<float> logits(4);
  const Status status = model->forward(0,
                                       {.first_sample = 100,
                                        .samples = 4,
                                        .dense = p.dense.data(),
                                        .pooled = p.pooled.data(),
                                        .sequences = sequences,
                                        .rows = {}},
                                       {}, *state, {}, logits);
  EXPECT_THAT(status.message(), testing::HasSubstr("sample 103: its histories have"));
}

int64_t trained_floats(const ModelOptions& options, const ModelSpec& spec) {
  auto model = make_model(options, with_model_tables(spec, options), kSeed);
  EXPECT_TRUE(model.ok()) << model.status().message();
  int64_t floats = 0;
  for (const auto& parameter : (*model)->parameters())
    floats += parameter.trained ? parameter.size() : 0;
  return floats;
}

/// BagPipe (SOSP 2023), table 2: Criteo Kaggle, dimension 48. Counted: all dense parameters, not
/// the D-dimensional tables, not running statistics. DeepFM's 33,762,577 first-order weights are
/// among them, as a dense parameter or as rows of the store's tables of dimension 1.
TEST(ParameterCounts, are_those_of_table_2_of_bagpipe) {
  const std::vector<int64_t> rows{1460,  583,  10131227, 2202608, 305, 24,     12517,   633,   3,
                                  93145, 5683, 8351593,  3194,    27,  14992,  5461306, 10,    5652,
                                  2173,  4,    7046547,  18,      15,  286181, 105,     142572};
  ModelSpec spec = spec_of(26, 48, 1, 13);
  for (size_t t = 0; t < 26; ++t) spec.tables[t].rows = rows[t];
  EXPECT_EQ(136'673, trained_floats({.kind = ModelKind::wide_and_deep,
                                     .deep = {256, 256, 256},
                                     .deep_input = DeepInput::dense},
                                    spec));
  EXPECT_EQ(2'718'609, trained_floats({.kind = ModelKind::deep_cross,
                                       .bottom = {1024, 512, 256, 64, 48},
                                       .over = {1024, 512, 256, 1},
                                       .cross_layers = 2,
                                       .cross_rank = 8},
                                      spec));
  ModelOptions deep_fm{.kind = ModelKind::deep_fm,
                       .deep = {64, 64, 64, 1},
                       .dropout = 0.5,
                       .batch_norm = true,
                       .first_order = FirstOrder::dense,
                       .deep_input = DeepInput::rows};
  EXPECT_EQ(33'851'283, trained_floats(deep_fm, spec));
  deep_fm.first_order = FirstOrder::table;
  int64_t first_order_rows = 0;
  for (const auto& table : with_model_tables(spec, deep_fm).tables) {
    first_order_rows += table.dim == 1 ? table.rows : 0;
  }
  EXPECT_EQ(33'851'283, trained_floats(deep_fm, spec) + first_order_rows);
}

}  // namespace
}  // namespace recmill::model
