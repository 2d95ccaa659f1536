// SPDX-License-Identifier: Apache-2.0
#include "table/update_subject.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "batch/feature_layout.h"

namespace recmill::table {

using kernels::BagGradients;
using kernels::RowUpdateKernel;
using kernels::Schedule;
using kernels::tune::Candidate;
using kernels::tune::Choice;
using kernels::tune::FeatureClass;
using kernels::tune::FusedParameters;
using kernels::tune::FusedRun;

namespace {

/// Gradients that are drawn; the others repeat them.
constexpr size_t kDrawn = 60013;
constexpr float kGradient = 1e-3f;
/// Weights stay near where they were, however often they are updated; the time is the same.
constexpr RowStep kTimedStep{1000, 1e-6};

/// So large that the weights show a gradient's last bits, whatever the table's learning rate.
RowStep checked_step(const EmbeddingTable& table) {
  const double rate = table.spec().optimizer.learning_rate;
  return {1000, rate > 0.0 ? 1024.0 / rate : 1.0};
}

/// What all tables of a class have in common beside their shapes.
std::string kind_of(const ModelSpec& model, size_t table, std::span<const size_t> features) {
  std::string kind(name_of(model.tables[table].optimizer.kind));
  if (features.size() == 1) return kind;
  for (size_t f : features)
    kind += (f == features[0] ? " " : "+") + std::string(name_of(model.features[f].pooling));
  return kind;
}

/// Weights and state of rows, row after row.
class RowContents {
 public:
  explicit RowContents(const EmbeddingTable& table) : dim_(table.spec().dim) {
    for (const StateColumn& column : table.state()) widths_.push_back(column.width);
  }
  std::vector<float> read(const EmbeddingTable& table, std::span<const int64_t> rows) const {
    std::vector<float> contents(rows.size() * width());
    float* at = contents.data();
    for (const int64_t row : rows) {
      std::vector<std::span<float>> state;
      float* column = at + dim_;
      for (const int64_t width : widths_) state.emplace_back(column, width), column += width;
      table.read(row, 1, {at, static_cast<size_t>(dim_)}, state);
      at = column;
    }
    return contents;
  }
  void write(EmbeddingTable& table, std::span<const int64_t> rows,
             const std::vector<float>& contents) const {
    const float* at = contents.data();
    for (const int64_t row : rows) {
      std::vector<std::span<const float>> state;
      const float* column = at + dim_;
      for (const int64_t width : widths_) state.emplace_back(column, width), column += width;
      table.write(row, 1, {at, static_cast<size_t>(dim_)}, state);
      at = column;
    }
  }

 private:
  size_t width() const { return std::accumulate(widths_.begin(), widths_.end(), dim_); }

  const int64_t dim_;
  std::vector<int64_t> widths_;
};

/// Whether the template lists each row that a lookup names once, and no other.
bool lists_right_rows(const RowUpdateKernel& kernel, const kernels::TableBags& bags,
                      std::span<const int64_t> right) {
  const auto sums = kernel.of->make_sums();
  sums->fold(bags, kernel.values);
  std::vector<int64_t> listed(sums->rows().begin(), sums->rows().end());
  std::vector<float> taken(listed.size() * bags.dim);
  sums->take(0, static_cast<int64_t>(listed.size()), taken.data());
  std::sort(listed.begin(), listed.end());
  return std::equal(listed.begin(), listed.end(), right.begin(), right.end());
}

}  // namespace

/// One batch: the features' bags and gradients, table after table.
struct UpdateSubject::Lookups {
  int64_t samples = 0;
  std::vector<int64_t> begins;  // [slices + 1], sample
  std::vector<kernels::FeatureBags> bags;
  std::vector<kernels::GradientRows> gradients;
  std::vector<BagGradients> bag_gradients;
};

/// What a thread needs to update one table after the other.
struct UpdateSubject::Worker {
  explicit Worker(int64_t task_floats) : updater(task_floats) {}
  ThreadPool alone{1};
  kernels::DistinctRowsFinder finder;
  DistinctRows distinct;
  TableUpdater updater;
};

/// The reference's answer for a class's first table, on a batch neither large nor small.
struct UpdateSubject::Expected {
  explicit Expected(const EmbeddingTable& of) : contents(of) {}
  int64_t table = 0;
  const Lookups* batch = nullptr;
  RowContents contents;
  DistinctRows distinct;
  std::vector<int64_t> rows;  // ascending
  std::vector<float> before, after;
  std::map<std::string, Status> checked;  // by schedule
};

UpdateSubject::UpdateSubject(std::span<EmbeddingTable> tables, const UpdateSubjectOptions& options)
    : tables_(tables), options_(options) {
  work_.family = "row_update";
  work_.exclusive = true;
}

UpdateSubject::~UpdateSubject() = default;

Result<std::unique_ptr<UpdateSubject>> UpdateSubject::make(const ModelSpec& model,
                                                           std::span<EmbeddingTable> tables,
                                                           std::span<const SparseBatch> batches,
                                                           const UpdateSubjectOptions& options) {
  RECMILL_CHECK(tables.size() == model.tables.size() && !batches.empty());
  std::unique_ptr<UpdateSubject> subject(new UpdateSubject(tables, options));
  subject->features_of_.resize(tables.size());
  for (size_t f = 0; f < model.features.size(); ++f)
    subject->features_of_[model.features[f].table].push_back(f);
  size_t first = 0;
  for (size_t t = 0; t < tables.size(); ++t) {
    RECMILL_CHECK(tables[t].share().ranks() == 1, tables[t].spec().name);
    subject->first_.push_back(first);
    first += subject->features_of_[t].size();
  }
  RECMILL_RETURN_IF_ERROR(subject->make_gradients(model, batches));
  subject->count_lookups(model);
  subject->set_classes(subject->grouped());
  subject->distinct_.resize(tables.size());
  return subject;
}

// Pooled gradients are side by side, as a model leaves them; those of each unpooled feature
// behind them, each by itself.
Status UpdateSubject::make_gradients(const ModelSpec& model, std::span<const SparseBatch> batches) {
  const FeatureLayout layout(model);
  int64_t samples = 0;
  for (const SparseBatch& batch : batches) samples = std::max(samples, batch.samples);
  int64_t end = samples * layout.columns();
  std::vector<int64_t> sequences;  // where each begins
  for (const FeatureLayout::Feature& feature : layout.sequences()) {
    sequences.push_back(end);
    int64_t most = 0;
    for (const SparseBatch& batch : batches) most = std::max(most, feature.rows_out(batch));
    end += most * feature.dim;
  }
  RECMILL_ASSIGN_OR_RETURN(gradients_, Buffer::allocate((end + 1) * sizeof(float)));
  const auto values = gradients_.as<float>();
  const Random random(0, Purpose::tuning);
  for (size_t i = 0; i < std::min(values.size(), kDrawn); ++i)
    values[i] = kGradient * (2.0f * random.uniform(i) - 1.0f);
  for (size_t i = kDrawn; i < values.size(); i += kDrawn)
    std::copy_n(values.begin(), std::min(kDrawn, values.size() - i), values.begin() + i);
  for (const SparseBatch& batch : batches) {
    auto made = std::make_unique<Lookups>();
    made->samples = batch.samples;
    const SliceCut cut{batch.samples, options_.slices};
    for (int s = 0; s <= cut.slices; ++s) made->begins.push_back(cut.begin(s));
    for (const auto& features : features_of_) {
      for (size_t f : features) {
        const FeatureLayout::Feature& feature = layout.features()[f];
        made->bags.push_back({batch.features[f].view(batch.samples), feature.pooling});
        if (feature.is_pooled()) {
          made->gradients.push_back({values.data() + feature.column, layout.columns()});
        } else {
          made->gradients.push_back({values.data() + sequences[feature.sequence], feature.dim});
        }
        made->bag_gradients.push_back(
            {made->bags.back().bags, feature.pooling, made->gradients.back(), made->begins});
      }
    }
    batches_.push_back(std::move(made));
  }
  return {};
}

void UpdateSubject::count_lookups(const ModelSpec& model) {
  std::vector<int64_t> offsets;
  for (size_t t = 0; t < tables_.size(); ++t) {
    const auto& features = features_of_[t];
    const TableSpec& spec = tables_[t].spec();
    if (spec.frozen || features.empty()) continue;
    kernels::tune::BagCounter counter;
    bool weighted = false;
    for (const auto& batch : batches_) {
      offsets.assign(batch->samples + 1, 0);
      for (size_t i = 0; i < features.size(); ++i) {
        const JaggedView& bags = batch->bags[first_[t] + i].bags;
        weighted |= bags.weights != nullptr;
        for (int64_t s = 0; s <= bags.samples && bags.samples > 0; ++s)
          offsets[s] += bags.offsets[s] - bags.offsets[0];
      }
      counter.add({offsets.data(), nullptr, nullptr, batch->samples});
    }
    const Pooling pooling = model.features[features[0]].pooling;
    each_.push_back({{spec.rows, spec.dim, spec.precision, pooling, weighted, counter.stats()},
                     {static_cast<int64_t>(t)},
                     kind_of(model, t, features)});
  }
}

std::vector<FeatureClass> UpdateSubject::grouped() const {
  std::vector<kernels::FeatureShape> shapes;
  std::vector<std::string> kinds;
  for (const FeatureClass& one : each_) {
    shapes.push_back(one.shape);
    kinds.push_back(one.kind);
  }
  auto classes = kernels::tune::group_features(shapes, kinds);
  for (FeatureClass& of : classes) {
    for (int64_t& table : of.features) table = each_[table].features.front();
  }
  return classes;
}

void UpdateSubject::set_classes(std::vector<FeatureClass> classes) {
  work_.classes = std::move(classes);
  tuned_.assign(tables_.size(), false);
  for (const FeatureClass& of : work_.classes) {
    for (const int64_t table : of.features) tuned_[table] = true;
  }
  count_batches();
}

void UpdateSubject::keep_batches(std::span<const int64_t> kept) {
  std::vector<std::unique_ptr<Lookups>> batches;
  batches.reserve(kept.size());
  for (const int64_t batch : kept) batches.push_back(std::move(batches_.at(batch)));
  batches_ = std::move(batches);
  count_batches();
}

void UpdateSubject::count_batches() {
  work_.samples.clear();
  work_.lookups.clear();
  work_.bytes.clear();
  for (const auto& batch : batches_) {
    work_.samples.push_back(static_cast<double>(batch->samples));
    auto& lookups = work_.lookups.emplace_back();
    for (int64_t table = 0; table < std::ssize(tables_); ++table)
      lookups.push_back(static_cast<double>(lookups_of(table, *batch)));
  }
  for (size_t c = 0; c < work_.classes.size(); ++c) work_.bytes.push_back(bytes(c));
  expected_.clear();
}

/// By the mean lookups of a batch.
Schedule UpdateSubject::default_of_class(size_t of_class) const {
  const int64_t table = work_.classes[of_class].features.front();
  int64_t lookups = 0;
  for (const auto& batch : batches_) lookups += lookups_of(table, *batch);
  const TableSpec& spec = tables_[table].spec();
  return kernels::schedule_of(kernels::default_row_update(
      {spec.rows, spec.dim, lookups / work_.batches(), options_.slices}));
}

std::vector<Candidate> UpdateSubject::candidates(size_t of_class,
                                                 const FusedParameters& value) const {
  if (value.defaults) return {{default_of_class(of_class)}};
  DeviceSpec device = options_.device;
  device.l2_bytes = value.l2_bytes;
  std::vector<Candidate> all;
  for (const auto& of : options_.templates) {
    for (Schedule& schedule : kernels::candidates(of.spec, work_.classes[of_class].shape, device))
      all.push_back({std::move(schedule)});
  }
  return all;
}

int64_t UpdateSubject::lookups_of(int64_t table, const Lookups& batch) const {
  int64_t lookups = 0;
  for (const auto& of : table_lookups(table, batch).features) lookups += of.bags.lookups();
  return lookups;
}

const RowUpdateKernel& UpdateSubject::default_of(int64_t table, const Lookups& batch) const {
  const TableSpec& spec = tables_[table].spec();
  return kernels::default_row_update(
      {spec.rows, spec.dim, lookups_of(table, batch), options_.slices});
}

kernels::TableLookups UpdateSubject::table_lookups(int64_t table, const Lookups& batch) const {
  return {tables_[table].spec().rows,
          {batch.bags.data() + first_[table], features_of_[table].size()}};
}

TableUpdate UpdateSubject::update_of(int64_t table, const Lookups& batch,
                                     const DistinctRows& distinct,
                                     const RowUpdateKernel& kernel) const {
  const size_t first = first_[table], count = features_of_[table].size();
  const TableSpec& spec = tables_[table].spec();
  return {&tables_[table],
          &distinct,
          {batch.gradients.data() + first, count},
          options_.slices,
          &kernel,
          {{batch.bag_gradients.data() + first, count}, spec.rows, spec.dim, options_.slices}};
}

void UpdateSubject::update_one(Worker& worker, int64_t table, const Lookups& batch,
                               const RowUpdateKernel& kernel, const RowStep& step) const {
  if (kernel.needs_distinct_rows()) {
    const auto lookups = table_lookups(table, batch);
    worker.finder.find({&lookups, 1}, {0, batch.begins}, {&worker.distinct, 1}, worker.alone);
  }
  const TableUpdate update = update_of(table, batch, worker.distinct, kernel);
  worker.updater.update({&update, 1}, step, worker.alone);
}

UpdateSubject::Expected& UpdateSubject::expected(size_t of_class) {
  auto& place = expected_[of_class];
  if (place != nullptr) return *place;
  const int64_t table = work_.classes[of_class].features.front();
  place = std::make_unique<Expected>(tables_[table]);
  Expected& made = *place;
  std::vector<const Lookups*> order;
  for (const auto& batch : batches_) order.push_back(batch.get());
  std::stable_sort(order.begin(), order.end(), [&](const Lookups* a, const Lookups* b) {
    return lookups_of(table, *a) < lookups_of(table, *b);
  });
  made.table = table;
  made.batch = order[order.size() / 2];
  kernels::distinct_rows_reference(table_lookups(table, *made.batch), {0, made.batch->begins},
                                   made.distinct);
  made.rows = made.distinct.rows;
  std::sort(made.rows.begin(), made.rows.end());
  made.before = made.contents.read(tables_[table], made.rows);
  const TableUpdate update =
      update_of(table, *made.batch, made.distinct, default_of(table, *made.batch));
  update_tables_reference({&update, 1}, checked_step(tables_[table]));
  made.after = made.contents.read(tables_[table], made.rows);
  made.contents.write(tables_[table], made.rows, made.before);
  return made;
}

Status UpdateSubject::check(size_t of_class, const Schedule& schedule, const FusedParameters&) {
  Expected& of = expected(of_class);
  const auto [place, added] = of.checked.try_emplace(schedule.name());
  if (added) place->second = compare(of, schedule);
  return place->second;
}

Status UpdateSubject::compare(Expected& of, const Schedule& schedule) {
  RECMILL_ASSIGN_OR_RETURN(const RowUpdateKernel kernel,
                           kernels::row_update_kernel(schedule, options_.templates));
  const std::string refused = "schedule '" + schedule.name() + "' is refused: ";
  const auto bags = update_of(of.table, *of.batch, of.distinct, kernel).bags;
  if (!kernel.needs_distinct_rows() && !lists_right_rows(kernel, bags, of.rows))
    return Status::Failed(refused + "its rows are not those that lookups name");
  EmbeddingTable& table = tables_[of.table];
  of.contents.write(table, of.rows, of.before);
  Worker worker(kTaskFloats);
  update_one(worker, of.table, *of.batch, kernel, checked_step(table));
  const auto found = of.contents.read(table, of.rows);
  of.contents.write(table, of.rows, of.before);
  if (std::memcmp(found.data(), of.after.data(), found.size() * sizeof(float)) != 0)
    return Status::Failed(refused + "its answer is not the reference's");
  return {};
}

Status UpdateSubject::prepare(const std::vector<std::vector<Schedule>>& candidates,
                              const FusedParameters& value, const Choice* disturbing) {
  if (disturbing != nullptr) {
    RECMILL_ASSIGN_OR_RETURN(disturbing_, kernels_of(*disturbing));
  }
  kernels_.clear();
  for (const auto& schedules : candidates) {
    kernels_.emplace_back();
    for (const Schedule& schedule : schedules) {
      RECMILL_ASSIGN_OR_RETURN(auto kernel,
                               kernels::row_update_kernel(schedule, options_.templates));
      kernels_.back().push_back(std::move(kernel));
    }
  }
  workers_.clear();
  task_floats_ = value.tile;
  return {};
}

std::unique_ptr<UpdateSubject::Worker> UpdateSubject::take_worker() {
  std::lock_guard lock(workers_mutex_);
  if (workers_.empty()) return std::make_unique<Worker>(task_floats_);
  auto worker = std::move(workers_.back());
  workers_.pop_back();
  return worker;
}

void UpdateSubject::give_worker(std::unique_ptr<Worker> worker) {
  std::lock_guard lock(workers_mutex_);
  workers_.push_back(std::move(worker));
}

void UpdateSubject::run(size_t of_class, size_t candidate, int64_t table, int64_t batch) {
  auto worker = take_worker();
  update_one(*worker, table, *batches_[batch], kernels_[of_class][candidate], kTimedStep);
  give_worker(std::move(worker));
}

double UpdateSubject::bytes(size_t of_class) const {
  const int64_t table = work_.classes[of_class].features.front();
  const TableSpec& spec = tables_[table].spec();
  int64_t width = spec.dim * kernels::bytes_of(spec.precision);
  for (const StateColumn& column : tables_[table].state()) width += column.width * 4;
  double bytes = 0.0;
  for (const auto& batch : batches_) {
    for (const auto& [bags, pooling] : table_lookups(table, *batch).features) {
      int64_t gradients = is_pooled(pooling) ? 0 : bags.lookups();
      for (int64_t i = 0; is_pooled(pooling) && i < bags.samples; ++i)
        gradients += bags.offsets[i] < bags.offsets[i + 1];
      bytes += static_cast<double>(bags.lookups() * (bags.weights != nullptr ? 12 : 8) +
                                   bags.samples * 8 + gradients * spec.dim * 4);
    }
    // Each row is read and written.
    const kernels::TableBags all = update_of(table, *batch, {}, default_of(table, *batch)).bags;
    bytes += static_cast<double>(2 * width) * static_cast<double>(touched_rows(all).size());
  }
  return bytes / static_cast<double>(batches_.size());
}

void UpdateSubject::disturb(int64_t table, int64_t batch, int /*thread*/) {
  const Lookups& of = *batches_[batch];
  auto worker = take_worker();
  update_one(*worker, table, of, disturbing_.empty() ? default_of(table, of) : disturbing_[table],
             kTimedStep);
  give_worker(std::move(worker));
}

Result<std::vector<RowUpdateKernel>> UpdateSubject::kernels_of(const Choice& choice) const {
  std::vector<RowUpdateKernel> kernels(choice.schedules.empty() ? 0 : tables_.size());
  for (size_t c = 0; c < choice.schedules.size(); ++c) {
    RECMILL_ASSIGN_OR_RETURN(
        const auto kernel,
        kernels::row_update_kernel(choice.schedules[c].schedule, options_.templates));
    for (const int64_t table : work_.classes[c].features) kernels[table] = kernel;
  }
  return kernels;
}

Result<FusedRun> UpdateSubject::fuse(const Choice& choice) {
  RECMILL_ASSIGN_OR_RETURN(fused_, kernels_of(choice));
  updater_ =
      std::make_unique<TableUpdater>(choice.schedules.empty() ? kTaskFloats : choice.value.tile);
  return FusedRun([this](int64_t batch, ThreadPool& pool) { run_fused(batch, pool); });
}

void UpdateSubject::run_fused(int64_t batch, ThreadPool& pool) {
  const Lookups& of = *batches_[batch];
  std::vector<kernels::TableLookups> lookups(tables_.size());
  std::vector<TableUpdate> updates;
  for (size_t t = 0; t < tables_.size(); ++t) {
    const auto table = static_cast<int64_t>(t);
    if (!tuned_[t]) continue;
    const RowUpdateKernel& kernel = fused_.empty() ? default_of(table, of) : fused_[t];
    if (kernel.needs_distinct_rows()) lookups[t] = table_lookups(table, of);
    updates.push_back(update_of(table, of, distinct_[t], kernel));
  }
  finder_.find(lookups, {0, of.begins}, distinct_, pool);
  updater_->update(updates, kTimedStep, pool);
}

}  // namespace recmill::table
