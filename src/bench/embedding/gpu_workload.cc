// SPDX-License-Identifier: Apache-2.0
#include "bench/embedding/gpu_workload.h"

#include <algorithm>
#include <cstring>

#include "base/json/json.h"
#include "base/random.h"
#include "bench/embedding/embedded_texts.h"
#include "bench/embedding/workload.h"
#include "bench/zipf.h"
#include "kernels/codegen/embedded_texts.h"
#include "kernels/codegen/gpu/device_text.h"
#include "kernels/codegen/gpu/gpu_distinct_source.h"
#include "kernels/codegen/gpu/gpu_pool_source.h"
#include "table/gpu/gpu_update_source.h"
#include "table/table_update.h"

namespace recmill::bench {
namespace {

namespace gpu = kernels::gpu;
using kernels::codegen::GpuPoolSource;
using kernels::codegen::GpuSource;

constexpr int64_t kSamples = 64;  // of lookups, and of rows, that are compared
constexpr unsigned kFillThreads = 256;

TableSpec spec_of(const GpuEmbeddingShape& shape, int64_t table) {
  TableSpec spec;
  spec.name = "t" + std::to_string(table);
  spec.rows = shape.rows;
  spec.dim = shape.dim;
  spec.optimizer.kind = shape.optimizer;
  spec.optimizer.learning_rate = kBenchLearningRate;
  return spec;
}

GpuSource fill_source() {
  using namespace kernels::codegen;
  return {device_text({kernel_types_text(), kernel_text(), fill_pattern_text(), fill_rows_text()}),
          "fill_rows"};
}

kernels::codegen::PoolFunction pool_function(const kernels::RowStorage& rows) {
  kernels::codegen::PoolFunction function;
  function.schedule = kernels::default_gpu_pool_schedule(Pooling::none, rows);
  function.dim = rows.dim;
  function.row_bytes = rows.stride;
  function.precision = rows.precision;
  function.pooling = Pooling::none;
  return function;
}

/// The first ones, by whom the most looked up are, and some among all others.
std::vector<int64_t> sample_of(int64_t count) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < std::min(kSamples / 2, count); ++i) places.push_back(i);
  for (int64_t i = 0; i < kSamples / 2; ++i) places.push_back(i * (count - 1) / (kSamples / 2));
  std::ranges::sort(places);
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

Status differs(const GpuEmbeddingShape& shape, const std::string& what, int64_t table, int64_t row,
               int64_t element, float found, float expected) {
  return Status::Failed("case " + shape.name + ": " + what + " of table t" + std::to_string(table) +
                        ", row " + std::to_string(row) + ", element " + std::to_string(element) +
                        ": " + std::to_string(found) + " in place of " + std::to_string(expected));
}

/// What `distinct` says of some of its rows, as of a table of these alone whose gradient has one
/// row for each of their lookups. `lookups`: where those are in the whole gradient.
DistinctRows part_of(const DistinctRows& distinct, std::span<const int64_t> places,
                     std::vector<int64_t>& lookups) {
  DistinctRows part;
  part.begins.push_back(0);
  for (const int64_t place : places) {
    part.rows.push_back(part.count());
    for (int64_t at = distinct.begins[place]; at < distinct.begins[place + 1]; ++at) {
      LookupSource source = distinct.sources[at];
      lookups.push_back(source.gradient_row);
      source.gradient_row = static_cast<uint32_t>(part.sources.size());
      part.sources.push_back(source);
    }
    part.begins.push_back(part.lookups());
  }
  return part;
}

}  // namespace

Result<std::unique_ptr<GpuEmbeddingWorkload>> GpuEmbeddingWorkload::make(
    const GpuEmbeddingShape& shape, const CompileForGpu& compile, Gpu& gpu, ThreadPool& pool) {
  RECMILL_ASSIGN_OR_RETURN(auto stream, gpu.open_stream());
  RECMILL_ASSIGN_OR_RETURN(auto finding, gpu.open_stream(StreamPriority::high));
  std::unique_ptr<GpuEmbeddingWorkload> made(
      new GpuEmbeddingWorkload(shape, gpu, pool, std::move(stream), std::move(finding)));
  RECMILL_RETURN_IF_ERROR(made->allocate());
  RECMILL_RETURN_IF_ERROR(made->load(compile));
  const int64_t row_floats = made->record_bytes() / static_cast<int64_t>(sizeof(float));
  for (const GpuBuffer& records : made->records_)
    RECMILL_RETURN_IF_ERROR(
        made->fill(records.address<float>(), shape.rows, row_floats, kRowPattern));
  RECMILL_RETURN_IF_ERROR(made->fill(made->gradient_.address<float>(), shape.all_lookups(),
                                     shape.dim, kGradientPattern));
  made->draw_ids();
  for (int64_t batch = 0; batch < kGpuBatches; ++batch) {
    made->find_distinct(made->batches_[batch]);
    RECMILL_RETURN_IF_ERROR(made->prepare(batch));
    RECMILL_RETURN_IF_ERROR(made->send(batch));
    RECMILL_RETURN_IF_ERROR(made->stream_.synchronize());
  }
  return made;
}

Status GpuEmbeddingWorkload::allocate() {
  for (int64_t t = 0; t < shape_.tables; ++t)
    tables_.push_back(table::EmbeddingTable::without_rows(spec_of(shape_, t), 1,
                                                          table::RowShare(shape_.rows, 0, 1)));
  for (const table::EmbeddingTable& table : tables_) {
    RECMILL_ASSIGN_OR_RETURN(auto records,
                             gpu_.allocate(static_cast<size_t>(shape_.rows * record_bytes()),
                                           "table " + table.spec().name));
    records_.push_back(std::move(records));
  }
  const size_t bytes = static_cast<size_t>(shape_.all_lookups() * shape_.dim) * sizeof(float);
  RECMILL_ASSIGN_OR_RETURN(output_, gpu_.allocate(bytes, "rows of a batch"));
  RECMILL_ASSIGN_OR_RETURN(gradient_, gpu_.allocate(bytes, "gradients of a batch"));
  const auto sampled = static_cast<size_t>(kSamples * std::max(record_bytes(), shape_.dim * 4));
  RECMILL_ASSIGN_OR_RETURN(staging_, gpu_.allocate_pinned(sampled, "rows to be compared"));
  return {};
}

Status GpuEmbeddingWorkload::load(const CompileForGpu& compile) {
  const kernels::RowStorage& rows = tables_[0].rows();
  const auto of = table::gpu_update_function(rows, tables_[0].spec().optimizer,
                                             SliceCut::default_slices(shape_.lookups));
  const auto update = table::gpu_update_sources({&of, 1}, "Recmill");
  std::vector<GpuSource> sources{fill_source(), update[0]};
  const std::vector<int64_t> table_rows(shape_.tables, shape_.rows);
  const kernels::RowKeys keys = kernels::row_keys(table_rows);
  const auto finding = kernels::codegen::gpu_distinct_sources(keys, "Recmill");
  sources.insert(sources.end(), finding.begin(), finding.end());
  RECMILL_ASSIGN_OR_RETURN(codes_, compile(sources));
  RECMILL_ASSIGN_OR_RETURN(fill_, gpu_.load(codes_[0].code));
  RECMILL_ASSIGN_OR_RETURN(auto update_kernel, gpu_.load(codes_[1].code));
  RECMILL_RETURN_IF_ERROR(load_finder(std::span(codes_).subspan(2), keys));
  std::vector<kernels::codegen::GpuPoolRequest> features;
  std::vector<table::GpuUpdatedTable> tables;
  for (int64_t t = 0; t < shape_.tables; ++t) {
    features.push_back({pool_function(rows), records_[t].address<u8>(), features.size()});
    tables.push_back({&tables_[t], records_[t].address<u8>(), nullptr, 0, 0});
  }
  RECMILL_ASSIGN_OR_RETURN(fused_pool_, compile_gpu_pool(features, {.made_by = "Recmill"},
                                                         /*exactly=*/false, compile, gpu_));
  updater_ = std::make_unique<table::GpuUpdater>(gpu_, std::vector{std::move(update_kernel)},
                                                 std::move(tables));
  return {};
}

Status GpuEmbeddingWorkload::load_finder(std::span<const kernels::codegen::GpuCode> codes,
                                         kernels::RowKeys keys) {
  std::vector<GpuKernel> kernels;
  for (const kernels::codegen::GpuCode& code : codes) {
    RECMILL_ASSIGN_OR_RETURN(auto kernel, gpu_.load(code.code));
    kernels.push_back(std::move(kernel));
  }
  finder_ = std::make_unique<kernels::GpuDistinctRowsFinder>(gpu_, std::move(kernels), keys);
  return {};
}

Status GpuEmbeddingWorkload::fill(float* to, int64_t rows, int64_t row_floats,
                                  const FillPattern& pattern) {
  const int64_t blocks = (rows * row_floats + kFillThreads - 1) / kFillThreads;
  return gpu_.launch(fill_, {{static_cast<unsigned>(blocks)}, {kFillThreads}},
                     FillArguments{to, rows, row_floats, shape_.dim, pattern}, stream_);
}

void GpuEmbeddingWorkload::draw_ids() {
  const Random random(7, Purpose::test);
  batches_.resize(kGpuBatches);
  for (Batch& batch : batches_) batch.ids.resize(shape_.tables);
  pool_.run(shape_.tables, [&](int64_t t) {
    const ZipfRows zipf(shape_.rows, shape_.zipf, t * 104729);
    for (int64_t b = 0; b < kGpuBatches; ++b) {
      std::vector<int64_t>& ids = batches_[b].ids[t];
      for (int64_t i = 0; i < shape_.lookups; ++i)
        ids.push_back(zipf.row(random.uniform64(
            static_cast<uint64_t>((b * shape_.tables + t) * shape_.lookups + i), 2)));
    }
  });
  for (int64_t i = 0; i <= shape_.lookups; ++i) offsets_.push_back(i);
  const SliceCut cut{shape_.lookups, SliceCut::default_slices(shape_.lookups)};
  for (int s = 0; s <= cut.slices; ++s) slice_begins_.push_back(cut.begin(s));
}

JaggedView GpuEmbeddingWorkload::bags(const Batch& batch, int64_t table) const {
  return {offsets_.data(), batch.ids[table].data(), nullptr, shape_.lookups, true};
}

void GpuEmbeddingWorkload::find_distinct(Batch& batch) {
  std::vector<kernels::FeatureBags> features;
  for (int64_t t = 0; t < shape_.tables; ++t) features.push_back({bags(batch, t), Pooling::none});
  std::vector<kernels::TableLookups> tables;
  for (const kernels::FeatureBags& feature : features)
    tables.push_back({shape_.rows, {&feature, 1}});
  batch.distinct.resize(shape_.tables);
  kernels::DistinctRowsFinder().find(tables, {0, slice_begins_}, batch.distinct, pool_);
}

Status GpuEmbeddingWorkload::prepare(int64_t number) {
  Batch& batch = batches_[number];
  std::vector<JaggedView> views;
  for (int64_t t = 0; t < shape_.tables; ++t) views.push_back(bags(batch, t));
  RECMILL_RETURN_IF_ERROR(fused_pool_.pool->stage(views, pool_, batch.bags));
  std::vector<kernels::GpuTableLookups> tables;
  for (int64_t t = 0; t < shape_.tables; ++t) {
    const gpu::PoolFeature& there = batch.bags.features()[t];
    kernels::GpuTableLookups& table = tables.emplace_back();
    table.rows = shape_.rows;
    table.features.push_back({{views[t], Pooling::none},
                              {0, slice_begins_},
                              there.offsets,
                              there.lookups,
                              there.weights});
  }
  RECMILL_RETURN_IF_ERROR(finder_->stage(tables, batch.lookups));
  const std::vector<int64_t> most_rows(shape_.tables, std::min(shape_.lookups, shape_.rows));
  const std::vector<int64_t> one_each(shape_.tables, 1);
  return updater_->stage(most_rows, one_each, static_cast<int>(slice_begins_.size()) - 1,
                         batch.updates);
}

Status GpuEmbeddingWorkload::send(int64_t batch) {
  RECMILL_RETURN_IF_ERROR(fused_pool_.pool->send(batches_[batch].bags, stream_));
  RECMILL_RETURN_IF_ERROR(kernels::GpuDistinctRowsFinder::send(batches_[batch].lookups, stream_));
  return updater_->send(batches_[batch].updates, stream_);
}

Status GpuEmbeddingWorkload::lookup(int64_t batch) {
  std::vector<gpu::PoolOutput> outputs;
  for (int64_t t = 0; t < shape_.tables; ++t)
    outputs.push_back({output_.address<float>() + t * shape_.lookups * shape_.dim, shape_.dim});
  return fused_pool_.pool->run(batches_[batch].bags, outputs, stream_);
}

Status GpuEmbeddingWorkload::find_rows(int64_t batch) {
  found_ = batch;
  return finder_->run(batches_[batch].lookups, finding_);
}

Status GpuEmbeddingWorkload::update(int64_t batch) {
  RECMILL_CHECK(found_ == batch, "an update of rows that were not found for it");
  found_ = -1;
  std::vector<std::vector<gpu::Gradients>> gradients;
  for (int64_t t = 0; t < shape_.tables; ++t)
    gradients.push_back(
        {{gradient_.address<float>() + t * shape_.lookups * shape_.dim, shape_.dim}});
  table::GpuUpdates& updates = batches_[batch].updates;
  RECMILL_RETURN_IF_ERROR(updater_->send_arguments(updates, finder_->found().tables, gradients,
                                                   {iteration_++, 1.0}, stream_));
  RECMILL_RETURN_IF_ERROR(wait_for_rows());
  RECMILL_RETURN_IF_ERROR(updater_->run(updates, stream_));
  return finding_.wait_for(stream_);  // what is found next is written where this update reads
}

int64_t GpuEmbeddingWorkload::lookup_bytes(int64_t batch) const {
  const int64_t row = shape_.dim * 4, ids = 8, offsets = 8;
  int64_t bytes = shape_.all_lookups() * (row + ids + offsets);  // what is written, and where from
  for (const DistinctRows& of : batches_[batch].distinct) bytes += of.count() * row;
  return bytes;
}

int64_t GpuEmbeddingWorkload::update_bytes(int64_t batch) const {
  const int64_t row = shape_.dim * 4, ids = 8;
  int64_t bytes = shape_.all_lookups() * (row + ids);  // gradients, and whose they are
  for (const DistinctRows& of : batches_[batch].distinct)
    bytes += of.count() * 2 * record_bytes();  // read and written
  return bytes;
}

// ---- what it must be

std::vector<int64_t> GpuEmbeddingWorkload::sampled_rows(int64_t table) const {
  const DistinctRows& distinct = batches_[0].distinct[table];
  std::vector<int64_t> rows;
  for (const int64_t place : sample_of(distinct.count())) rows.push_back(distinct.rows[place]);
  return rows;
}

Status GpuEmbeddingWorkload::check() {
  RECMILL_RETURN_IF_ERROR(check_lookups());
  RECMILL_RETURN_IF_ERROR(find_rows(0));
  RECMILL_RETURN_IF_ERROR(update(0));
  expected_rows_.clear();
  for (int64_t t = 0; t < shape_.tables; ++t) RECMILL_RETURN_IF_ERROR(check_update(t));
  return {};
}

Status GpuEmbeddingWorkload::check_lookups() {
  RECMILL_RETURN_IF_ERROR(lookup(0));
  const auto places = sample_of(shape_.lookups);
  const size_t row_bytes = static_cast<size_t>(shape_.dim) * sizeof(float);
  for (int64_t t = 0; t < shape_.tables; ++t) {
    for (size_t p = 0; p < places.size(); ++p)
      RECMILL_RETURN_IF_ERROR(
          stream_.to_host(staging_, output_, row_bytes, p * row_bytes,
                          static_cast<size_t>(t * shape_.lookups + places[p]) * row_bytes));
    RECMILL_RETURN_IF_ERROR(stream_.synchronize());
    for (size_t p = 0; p < places.size(); ++p) {
      const int64_t row = batches_[0].ids[t][places[p]];
      for (int64_t e = 0; e < shape_.dim; ++e) {
        const float found = staging_.as<float>()[p * shape_.dim + e];
        if (found != value_of(kRowPattern, row, e))
          return differs(shape_, "a lookup", t, row, e, found, value_of(kRowPattern, row, e));
      }
    }
  }
  return {};
}

Status GpuEmbeddingWorkload::check_update(int64_t table) {
  const DistinctRows& distinct = batches_[0].distinct[table];
  const auto places = sample_of(distinct.count());
  std::vector<int64_t> lookups;
  const DistinctRows part = part_of(distinct, places, lookups);
  std::vector<float> gradient;
  for (const int64_t lookup : lookups)
    for (int64_t e = 0; e < shape_.dim; ++e)
      gradient.push_back(value_of(kGradientPattern, table * shape_.lookups + lookup, e));
  TableSpec spec = spec_of(shape_, table);
  spec.rows = part.count();
  auto expected = table::EmbeddingTable::without_rows(spec, 1, table::RowShare(spec.rows, 0, 1));
  RECMILL_RETURN_IF_ERROR(expected.allocate(nullptr));
  const auto floats_of = [&](int64_t slot) {
    return reinterpret_cast<float*>(expected.rows().record(slot));
  };
  for (int64_t r = 0; r < spec.rows; ++r)
    for (int64_t e = 0; e < shape_.dim; ++e)
      floats_of(r)[e] = value_of(kRowPattern, distinct.rows[places[r]], e);
  const kernels::GradientRows rows{gradient.data(), shape_.dim};
  const table::TableUpdate update{
      &expected, &part, {&rows, 1}, static_cast<int>(slice_begins_.size()) - 1};
  table::update_tables_reference({&update, 1}, {0, 1.0});

  const auto bytes = static_cast<size_t>(record_bytes());
  for (size_t r = 0; r < places.size(); ++r)
    RECMILL_RETURN_IF_ERROR(stream_.to_host(staging_, records_[table], bytes, r * bytes,
                                            static_cast<size_t>(distinct.rows[places[r]]) * bytes));
  RECMILL_RETURN_IF_ERROR(stream_.synchronize());
  const int64_t row_floats = record_bytes() / 4;
  for (int64_t r = 0; r < spec.rows; ++r) {
    for (int64_t e = 0; e < row_floats; ++e) {
      const float found = staging_.as<float>()[r * row_floats + e];
      if (std::memcmp(&found, floats_of(r) + e, sizeof found) != 0)
        return differs(shape_, "an update", table, distinct.rows[places[r]], e, found,
                       floats_of(r)[e]);
    }
    expected_rows_.insert(expected_rows_.end(), floats_of(r), floats_of(r) + shape_.dim);
  }
  return {};
}

Status GpuEmbeddingWorkload::write(Files& files, const std::string& folder) const {
  std::vector<int64_t> ids, sampled, counts;
  for (const Batch& batch : batches_)
    for (const auto& of_table : batch.ids) ids.insert(ids.end(), of_table.begin(), of_table.end());
  for (int64_t t = 0; t < shape_.tables; ++t) {
    const auto rows = sampled_rows(t);
    counts.push_back(std::ssize(rows));
    sampled.insert(sampled.end(), rows.begin(), rows.end());
  }
  RECMILL_RETURN_IF_ERROR(
      write_atomically(files, folder + "/ids.bin", std::as_bytes(std::span(ids))));
  RECMILL_RETURN_IF_ERROR(
      write_atomically(files, folder + "/sample.bin", std::as_bytes(std::span(sampled))));
  const auto pattern = [](const FillPattern& of) {
    return Json{{"by_row", of.by_row},
                {"by_element", of.by_element},
                {"modulus", of.modulus},
                {"less", of.less},
                {"scale", of.scale}};
  };
  Json json;
  json["tables"] = shape_.tables;
  json["rows"] = shape_.rows;
  json["dim"] = shape_.dim;
  json["lookups"] = shape_.lookups;
  json["batches"] = kGpuBatches;
  json["sampled"] = counts;
  const RowOptimizerOptions& optimizer = tables_[0].spec().optimizer;
  json["optimizer"] = {{"kind", name_of(optimizer.kind)},
                       {"learning_rate", optimizer.learning_rate},
                       {"beta1", optimizer.beta1},
                       {"beta2", optimizer.beta2},
                       {"epsilon", optimizer.epsilon}};
  json["row_pattern"] = pattern(kRowPattern);
  json["gradient_pattern"] = pattern(kGradientPattern);
  return write_atomically(files, folder + "/shape.json", json.dump());
}

}  // namespace recmill::bench
