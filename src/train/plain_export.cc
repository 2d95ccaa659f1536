// SPDX-License-Identifier: Apache-2.0
#include "train/plain_export.h"

#include <fmt/format.h>

#include "base/json/json.h"
#include "checkpoint/npy.h"
#include "model/initialize.h"

namespace recmill::train {
namespace {

using checkpoint::ElementType;

template <typename T>
constexpr ElementType kType = ElementType::uint8;
template <>
constexpr ElementType kType<float> = ElementType::float32;
template <>
constexpr ElementType kType<double> = ElementType::float64;
template <>
constexpr ElementType kType<int64_t> = ElementType::int64;

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

Json row_optimizer(const RowOptimizerOptions& o) {
  return {{"kind", name_of(o.kind)},
          {"epsilon", o.epsilon},
          {"initial_accumulator", o.initial_accumulator}};
}

}  // namespace

template <typename T>
Status PlainExport::write_array(const std::string& name, const std::vector<int64_t>& shape,
                                std::span<const T> values) {
  RECMILL_ASSIGN_OR_RETURN(auto file, checkpoint::create_npy(files_, folder_ + "/" + name + ".npy",
                                                             {name, kType<T>, shape}));
  RECMILL_RETURN_IF_ERROR(file->append(std::as_bytes(values)));
  return file->close();
}

Status PlainExport::describe(const model::ModelOptions& model, const ModelSpec& spec,
                             const DenseOptimizerOptions& optimizer) {
  if (model.kind != model::ModelKind::dlrm) {
    return Status::BadRequest(fmt::format("model.kind: '{}' has no plain PyTorch script, only dlrm",
                                          name_of(model.kind)));
  }
  for (const auto& table : spec.tables) {
    if (table.optimizer.l2 != 0.0)
      return Status::BadRequest(
          "embedding.optimizer.l2: the plain PyTorch script has none (table '" + table.name + "')");
  }
  Json json{{"num_dense", spec.num_dense},
            {"dim", spec.dim_of(0)},
            {"bottom", model.bottom},
            {"top", model.top},
            {"table_rows", Json::array()},
            {"features", Json::array()},
            {"row_optimizers", Json::array()},
            {"optimizer",
             {{"kind", name_of(optimizer.kind)},
              {"momentum", optimizer.momentum},
              {"epsilon", optimizer.epsilon},
              {"initial_accumulator", optimizer.initial_accumulator},
              {"beta1", optimizer.beta1},
              {"beta2", optimizer.beta2},
              {"weight_decay", optimizer.weight_decay},
              {"clip_norm", optimizer.clip_norm}}}};
  for (const auto& table : spec.tables) {
    json["table_rows"].push_back(table.rows);
    json["row_optimizers"].push_back(row_optimizer(table.optimizer));
  }
  for (const auto& feature : spec.features) {
    json["features"].push_back({{"table", feature.table}, {"pooling", name_of(feature.pooling)}});
  }
  for (const char* part : {"parameters", "tables", "train", "eval"}) {
    RECMILL_RETURN_IF_ERROR(files_.make_folder(folder_ + "/" + part));
  }
  return write_atomically(files_, folder_ + "/model.json", json.dump(2) + "\n");
}

Status PlainExport::parameters(std::span<const model::ParameterSpec> specs,
                               std::span<const float> flat) {
  for (const auto& spec : specs) {
    RECMILL_RETURN_IF_ERROR(
        write_array("parameters/" + spec.name, spec.shape, model::part_of(flat, spec)));
  }
  return {};
}

Status PlainExport::table(int table, int64_t dim, std::span<const float> rows) {
  return write_array(fmt::format("tables/{}", table),
                     {static_cast<int64_t>(rows.size()) / dim, dim}, rows);
}

void PlainExport::Samples::add(const DenseBatch& dense_batch, const SparseBatch& sparse) {
  columns = dense_batch.columns;
  append(dense, dense_batch.values);
  append(labels, dense_batch.labels);
  bounds.push_back(bounds.back() + dense_batch.samples);
  features.resize(sparse.features.size());
  for (size_t f = 0; f < features.size(); ++f) {
    const SparseFeature& from = sparse.features[f];
    SparseFeature& to = features[f];
    if (to.offsets.empty()) to.offsets.push_back(0);
    const int64_t shift = to.offsets.back() - from.offsets.front();
    for (int64_t i = 1; i <= sparse.samples; ++i) to.offsets.push_back(from.offsets[i] + shift);
    append(to.rows, from.rows);
    append(to.weights, from.weights);
  }
}

void PlainExport::train(const DenseBatch& dense, const SparseBatch& sparse,
                        std::span<const double> rates) {
  train_.add(dense, sparse);
  rates_.insert(rates_.end(), rates.begin(), rates.end());
}

Status PlainExport::write(const std::string& part, const Samples& samples) {
  const int64_t count = samples.bounds.back();
  RECMILL_RETURN_IF_ERROR(
      write_array(part + "/dense", {count, samples.columns}, std::span(samples.dense)));
  RECMILL_RETURN_IF_ERROR(write_array(part + "/labels", {count}, std::span(samples.labels)));
  RECMILL_RETURN_IF_ERROR(write_array(
      part + "/batches", {static_cast<int64_t>(samples.bounds.size())}, std::span(samples.bounds)));
  for (size_t f = 0; f < samples.features.size(); ++f) {
    const SparseFeature& feature = samples.features[f];
    const auto lookups = static_cast<int64_t>(feature.rows.size());
    RECMILL_RETURN_IF_ERROR(
        write_array(fmt::format("{}/rows_{}", part, f), {lookups}, std::span(feature.rows)));
    RECMILL_RETURN_IF_ERROR(write_array(fmt::format("{}/offsets_{}", part, f),
                                        {static_cast<int64_t>(feature.offsets.size())},
                                        std::span(feature.offsets)));
    if (feature.weights.empty()) continue;
    RECMILL_RETURN_IF_ERROR(
        write_array(fmt::format("{}/weights_{}", part, f), {lookups}, std::span(feature.weights)));
  }
  return {};
}

Status PlainExport::finish() {
  RECMILL_RETURN_IF_ERROR(write("train", train_));
  const auto batches = static_cast<int64_t>(train_.bounds.size()) - 1;
  const int64_t width = batches == 0 ? 0 : static_cast<int64_t>(rates_.size()) / batches;
  RECMILL_RETURN_IF_ERROR(
      write_array("train/learning_rates", {batches, width}, std::span<const double>(rates_)));
  return write("eval", eval_);
}

}  // namespace recmill::train
