// SPDX-License-Identifier: Apache-2.0
#include "bench/embedding/workload.h"

#include "base/json/json.h"
#include "base/random.h"
#include "bench/zipf.h"

namespace recmill::bench {
namespace {

TableSpec spec_of(const EmbeddingShape& shape, int64_t table) {
  TableSpec spec;
  spec.name = "t" + std::to_string(table);
  spec.rows = shape.rows;
  spec.dim = shape.dim;
  spec.optimizer.kind = shape.optimizer;
  spec.optimizer.learning_rate = kBenchLearningRate;
  return spec;
}

}  // namespace

Result<EmbeddingWorkload> EmbeddingWorkload::make(const EmbeddingShape& shape, ThreadPool& pool) {
  EmbeddingWorkload workload;
  workload.shape_ = shape;
  for (int64_t t = 0; t < shape.tables; ++t) {
    RECMILL_ASSIGN_OR_RETURN(
        auto table, table::EmbeddingTable::create(spec_of(shape, t), 1,
                                                  table::RowShare(shape.rows, 0, 1), pool));
    const auto rows = table.rows();
    pool.run_ranges(shape.rows, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        auto* weights = reinterpret_cast<float*>(rows.record(row));
        for (int64_t e = 0; e < shape.dim; ++e)
          weights[e] = static_cast<float>(row % 8191) * 0x1p-20f + static_cast<float>(e) * 0x1p-12f;
      }
    });
    workload.tables_.push_back(std::move(table));
  }
  const SliceCut cut{shape.samples, SliceCut::default_slices(shape.samples)};
  for (int s = 0; s <= cut.slices; ++s) workload.slice_begins_.push_back(cut.begin(s));
  workload.distinct_.resize(shape.tables);
  RECMILL_RETURN_IF_ERROR(workload.make_batches());
  return workload;
}

Status EmbeddingWorkload::make_batches() {
  const Random random(7, Purpose::test);
  const int64_t columns = shape_.tables * shape_.dim;
  const size_t bytes = shape_.samples * columns * sizeof(float);
  RECMILL_ASSIGN_OR_RETURN(output_, Buffer::allocate(bytes));
  RECMILL_ASSIGN_OR_RETURN(gradient_, Buffer::allocate(bytes));
  const auto gradient = gradient_.as<float>();
  for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = (random.uniform(i, 1) - 0.5f) * 0.01f;
  for (int64_t i = 0; i <= shape_.samples; ++i) offsets_.push_back(i * shape_.bag);
  const int64_t lookups = shape_.samples * shape_.bag;
  std::vector<ZipfRows> zipf;
  for (int64_t t = 0; t < shape_.tables && shape_.zipf > 0.0; ++t)
    zipf.emplace_back(shape_.rows, shape_.zipf, t * 104729);
  ids_.resize(kBenchBatches * shape_.tables * lookups);
  for (size_t i = 0; i < ids_.size(); ++i) {
    const size_t table = i / lookups % shape_.tables;
    ids_[i] = zipf.empty() ? static_cast<int64_t>(random.below(shape_.rows, i, 2))
                           : zipf[table].row(random.uniform64(i, 2));
  }
  return {};
}

void EmbeddingWorkload::lookup(int64_t batch, ThreadPool& pool) {
  const int64_t columns = shape_.tables * shape_.dim;
  std::vector<kernels::PoolTask> tasks;
  for (int64_t t = 0; t < shape_.tables; ++t) {
    const JaggedView bags{offsets_.data(), ids(batch, t), nullptr, shape_.samples, shape_.bag == 1};
    tasks.push_back({bags, tables_[t].rows(), Pooling::sum,
                     output_.as<float>().data() + t * shape_.dim, columns});
  }
  kernels::embedding_pool(tasks, pool);
}

void EmbeddingWorkload::train(int64_t batch, ThreadPool& pool) {
  const int64_t columns = shape_.tables * shape_.dim;
  std::vector<kernels::FeatureBags> features;
  std::vector<kernels::GradientRows> gradients;
  for (int64_t t = 0; t < shape_.tables; ++t) {
    features.push_back(
        {{offsets_.data(), ids(batch, t), nullptr, shape_.samples, shape_.bag == 1}, Pooling::sum});
    gradients.push_back({gradient_.as<float>().data() + t * shape_.dim, columns});
  }
  std::vector<kernels::TableLookups> tables;
  std::vector<table::TableUpdate> updates;
  for (int64_t t = 0; t < shape_.tables; ++t) {
    tables.push_back({shape_.rows, {&features[t], 1}});
    updates.push_back({&tables_[t],
                       &distinct_[t],
                       {&gradients[t], 1},
                       static_cast<int>(slice_begins_.size()) - 1});
  }
  finder_.find(tables, {0, slice_begins_}, distinct_, pool);
  lookup(batch, pool);
  table::update_tables(updates, {iteration_++, 1.0}, pool);
}

Status EmbeddingWorkload::write(Files& files, const std::string& folder, int threads,
                                const std::string& rival) const {
  RECMILL_RETURN_IF_ERROR(
      write_atomically(files, folder + "/ids.bin", std::as_bytes(std::span(ids_))));
  RECMILL_RETURN_IF_ERROR(
      write_atomically(files, folder + "/gradient.bin", std::as_bytes(gradient_.as<float>())));
  Json json;
  json["rival"] = rival;
  json["threads"] = threads;
  json["tables"] = shape_.tables;
  json["rows"] = shape_.rows;
  json["dim"] = shape_.dim;
  json["samples"] = shape_.samples;
  json["bag"] = shape_.bag;
  json["batches"] = kBenchBatches;
  json["learning_rate"] = kBenchLearningRate;
  json["epsilon"] = RowOptimizerOptions{}.epsilon;
  return write_atomically(files, folder + "/shape.json", json.dump());
}

}  // namespace recmill::bench
