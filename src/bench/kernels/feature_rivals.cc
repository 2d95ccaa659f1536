// SPDX-License-Identifier: Apache-2.0
#include "bench/kernels/feature_rivals.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "base/json/json.h"

namespace recmill::bench {
namespace {

constexpr double kTolerance = 1e-5;

/// offsets.bin and ids.bin as the script reads them.
Status write_batches(std::span<const SparseBatch> batches, const std::string& folder,
                     Files& files) {
  RECMILL_ASSIGN_OR_RETURN(const auto offsets, files.create(folder + "/offsets.bin"));
  RECMILL_ASSIGN_OR_RETURN(const auto ids, files.create(folder + "/ids.bin"));
  for (const SparseBatch& batch : batches) {
    std::vector<int64_t> all{0};
    for (const SparseFeature& feature : batch.features) {
      const int64_t first = all.back() - feature.offsets[0];
      for (int64_t i = 1; i <= batch.samples; ++i) all.push_back(first + feature.offsets[i]);
      RECMILL_RETURN_IF_ERROR(ids->append(std::as_bytes(
          std::span(feature.rows)
              .subspan(feature.offsets[0], all.back() - first - feature.offsets[0]))));
    }
    RECMILL_RETURN_IF_ERROR(offsets->append(std::as_bytes(std::span(all))));
  }
  RECMILL_RETURN_IF_ERROR(offsets->close());
  return ids->close();
}

Status write_floats(std::span<const float> values, const std::string& path, Files& files) {
  RECMILL_ASSIGN_OR_RETURN(const auto file, files.create(path));
  RECMILL_RETURN_IF_ERROR(file->append(std::as_bytes(values)));
  return file->close();
}

Json shape_of(const KernelWorkload& workload, const FeatureRivalsRequest& request) {
  Json json{{"rows", Json::array()}, {"dims", Json::array()}, {"samples", Json::array()}};
  for (const FeatureSpec& feature : workload.run.spec.features) {
    const TableSpec& table = workload.run.spec.tables[feature.table];
    json["rows"].push_back(table.rows);
    json["dims"].push_back(table.dim);
  }
  for (const SparseBatch& batch : workload.test_batches) json["samples"].push_back(batch.samples);
  const auto& optimizer = workload.run.spec.tables[0].optimizer;
  json["learning_rate"] = optimizer.learning_rate;
  json["epsilon"] = optimizer.epsilon;
  json["inference"] = request.inference;
  if (!request.gradient.empty()) json["gradient"] = true;
  if (!request.layers.units.empty()) json["layers"] = request.layers.units;
  return json;
}

}  // namespace

Result<FeatureRivals> FeatureRivals::start(const KernelWorkload& workload,
                                           const BenchOptions& options,
                                           const FeatureRivalsRequest& request) {
  const ModelSpec& spec = workload.run.spec;
  for (size_t f = 0; f < spec.features.size(); ++f) {
    if (spec.features[f].table != static_cast<int64_t>(f) || spec.features[f].weighted ||
        spec.features[f].pooling != Pooling::sum)
      return Status::BadRequest("rivals need a table for each feature and sums: " +
                                spec.features[f].name);
  }
  auto folder = std::make_unique<TemporaryFolder>();
  Files& files = posix_files();
  RECMILL_RETURN_IF_ERROR(write_batches(workload.test_batches, folder->path(), files));
  RECMILL_RETURN_IF_ERROR(
      write_atomically(files, folder->path() + "/shape.json", shape_of(workload, request).dump()));
  RECMILL_RETURN_IF_ERROR(write_floats(request.gradient, folder->path() + "/gradient.bin", files));
  RECMILL_RETURN_IF_ERROR(
      write_floats(request.layers.parameters, folder->path() + "/parameters.bin", files));
  RECMILL_ASSIGN_OR_RETURN(
      Rival rival,
      Rival::start(options.python, {options.scripts + "/embedding_features.py", folder->path()}));
  return FeatureRivals(std::move(folder), std::move(rival));
}

Result<std::vector<float>> FeatureRivals::lookup(const std::string& system, int64_t batch,
                                                 std::span<const int64_t> train) {
  const Json request{{"system", system},
                     {"batch", batch},
                     {"train", std::vector<int64_t>(train.begin(), train.end())}};
  RECMILL_RETURN_IF_ERROR(rival_.ask({{"check", request}}).status());
  RECMILL_ASSIGN_OR_RETURN(const std::string bytes,
                           read_text(posix_files(), folder_->path() + "/check.bin"));
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

Result<double> FeatureRivals::operation_seconds(const std::string& system, int threads) {
  const Json request{{"system", system}, {"threads", threads}};
  RECMILL_ASSIGN_OR_RETURN(const Json answer, rival_.ask({{"profile", request}}));
  return answer["seconds"].get<double>();
}

Contender FeatureRivals::contender(const std::string& system, int threads) {
  return [this, system, threads](std::span<const int64_t> order) -> Result<double> {
    const Json request{{"system", system},
                       {"threads", threads},
                       {"order", std::vector<int64_t>(order.begin(), order.end())}};
    RECMILL_ASSIGN_OR_RETURN(const Json answer, rival_.ask({{"run", request}}));
    return answer["seconds"].get<double>();
  };
}

Status check_outputs(const PoolBatches& ours, int64_t batch, std::span<const float> rival) {
  const int64_t samples = ours.samples(batch), columns = ours.columns();
  if (static_cast<int64_t>(rival.size()) != samples * columns)
    return Status::Failed(fmt::format("batch {}: a rival's answer has another size", batch));
  double worst = 0.0, largest = 0.0;
  for (int64_t i = 0; i < samples; ++i) {
    const auto row = ours.output(i);
    for (int64_t e = 0; e < columns; ++e) {
      const double value = rival[i * columns + e];
      worst = std::max(worst, std::fabs(row[e] - value));
      largest = std::max(largest, std::fabs(value));
    }
  }
  if (!(worst <= kTolerance * largest))
    return Status::Failed(
        fmt::format("batch {}: answers differ by {} of values up to {}", batch, worst, largest));
  return {};
}

}  // namespace recmill::bench
