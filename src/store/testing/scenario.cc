// SPDX-License-Identifier: Apache-2.0
#include "store/testing/scenario.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <memory>
#include <thread>

#include "base/random.h"
#include "batch/feature_layout.h"
#include "table/embedding_table.h"

namespace recmill::store::testing {
namespace {

constexpr int kBatchesOfAnOperation = 4;  // at most
constexpr int64_t kGap = 3;               // floats between the rows of an output

int64_t bag_length(const Random& random, int64_t sample) {
  const uint64_t draw = random.below(100, sample, 1);
  if (draw < 25) return 0;
  if (draw < 90) return 1 + static_cast<int64_t>(random.below(4, sample, 2));
  if (draw < 98) return 5 + static_cast<int64_t>(random.below(20, sample, 2));
  return 60 + static_cast<int64_t>(random.below(80, sample, 2));  // around and above a run of 64
}

SparseFeature random_feature(const FeatureSpec& spec, int64_t rows, const Random& random,
                             int64_t samples) {
  SparseFeature feature;
  feature.one_each = !spec.weighted && spec.pooling == Pooling::sum;
  feature.offsets.assign(1, 0);
  for (int64_t sample = 0; sample < samples; ++sample) {
    const int64_t length = feature.one_each ? 1 : bag_length(random, sample);
    for (int64_t i = 0; i < length; ++i) {
      const double u = random.uniform64(sample, 10 + i);
      feature.rows.push_back(static_cast<int64_t>(static_cast<double>(rows) * u * u * u));
      if (spec.weighted) feature.weights.push_back(random.uniform(~sample, i) * 2 - 1);
    }
    feature.offsets.push_back(static_cast<int64_t>(feature.rows.size()));
  }
  return feature;
}

// A gradient of assorted sizes, zeros of both signs among them, that leans on what lookup() gave.
float gradient_of(const Random& random, int64_t item, int64_t element, float output) {
  const auto words = random.block(item, element);
  if (words[0] % 16 == 0) return words[0] & 16 ? 0.0f : -0.0f;
  const float noise = std::ldexp(Random::unit(words[1]) - 0.5f, static_cast<int>(words[2] % 8) - 6);
  return noise + output * 0.125f;
}

std::string words_of(float value) {
  return std::to_string(value) + " (" + std::to_string(std::bit_cast<uint32_t>(value)) + ")";
}

// "" or where two vectors of floats differ first.
std::string first_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size())
    return "sizes " + std::to_string(a.size()) + ", " + std::to_string(b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) {
      return "float " + std::to_string(i) + ": " + words_of(a[i]) + ", " + words_of(b[i]);
    }
  }
  return "";
}

// One rank's part of one global batch, on its way from the preparing thread to the driver.
struct Piece {
  int64_t number = 0;
  SparseBatch sparse;
  Batch batch;
  size_t step = 0;                  // place in the stream
  std::vector<int64_t> first_item;  // by feature: global position of output row 0
  std::unique_ptr<Prepared> prepared;
};

class Driver {
 public:
  Driver(const Scenario& scenario, EmbeddingStore& store, int rank, int ranks, ThreadPool& pool,
         Trace& trace)
      : scenario_(scenario),
        store_(store),
        rank_(rank),
        ranks_(ranks),
        own_(slices_of_rank(rank, ranks, scenario.slices)),
        stream_(pool),
        trace_(trace) {}

  Status run() {
    std::thread preparing([this] { prepare_all(); });
    Status status = run_operations();
    preparing.join();
    const Status finished = finish_snapshot();
    return status.ok() ? finished : status;
  }

 private:
  void prepare_all() {
    std::vector<StepPlan> plans;
    auto pieces = make_pieces(plans);
    const Status planned = scenario_.look_ahead ? look_ahead(pieces, plans) : Status();
    std::vector<std::shared_ptr<const StepPlan>> of_steps;
    for (StepPlan& plan : plans) of_steps.push_back(std::make_shared<const StepPlan>(plan));
    for (auto& piece : pieces) {
      if (scenario_.in_stream) piece->batch.plan = of_steps[piece->step];
      auto prepared = planned.ok() ? store_.prepare(piece->batch) : planned;
      std::lock_guard lock(mutex_);
      if (prepared.ok())
        piece->prepared = *std::move(prepared);
      else if (failure_.ok())
        failure_ = prepared.status();
      pieces_.push_back(std::move(piece));
      ready_.notify_one();
    }
  }

  /// All batches, and their steps. Batches that are updated together are one step.
  std::vector<std::unique_ptr<Piece>> make_pieces(std::vector<StepPlan>& plans) {
    std::vector<std::unique_ptr<Piece>> pieces;
    int64_t iteration = 0;
    for (size_t operation = 0; operation < scenario_.operations.size(); ++operation) {
      const auto& wanted = scenario_.operations[operation];
      const bool trains = wanted.kind == Operation::Kind::train;
      for (size_t batch = 0; batch < wanted.batches.size(); ++batch) {
        if (batch == 0 || !trains) plans.push_back({std::ssize(plans), iteration});
        pieces.push_back(
            make_piece(wanted, number_of_batch(operation, batch), wanted.batches[batch]));
        pieces.back()->batch.iteration = iteration;
        pieces.back()->step = plans.size() - 1;
      }
      if (trains) ++iteration;
    }
    return pieces;
  }

  Status look_ahead(const std::vector<std::unique_ptr<Piece>>& pieces,
                    std::vector<StepPlan>& plans) {
    std::vector<StepBatches> steps(plans.size(), StepBatches(static_cast<size_t>(ranks_)));
    for (const auto& piece : pieces) {
      const SliceCut cut = piece->batch.cut;
      const SparseBatch whole =
          random_batch(scenario_.model, scenario_.seed, piece->number, cut.samples);
      for (int rank = 0; rank < ranks_; ++rank) {
        const SliceRange own = slices_of_rank(rank, ranks_, scenario_.slices);
        steps[piece->step][rank].push_back(slice(whole, cut.begin(own.begin), cut.begin(own.end)));
      }
    }
    return scenario_.look_ahead(scenario_.model, rank_, steps, plans);
  }

  std::unique_ptr<Piece> make_piece(const Operation& operation, int64_t number, int64_t samples) {
    auto piece = std::make_unique<Piece>();
    const SparseBatch whole = random_batch(scenario_.model, scenario_.seed, number, samples);
    piece->number = number;
    piece->batch.purpose =
        operation.kind == Operation::Kind::train ? Purpose::train : Purpose::evaluate;
    piece->batch.cut = {samples, scenario_.slices};
    piece->batch.first_slice = own_.begin;
    piece->batch.end_slice = own_.end;
    const int64_t begin = piece->batch.cut.begin(own_.begin);
    piece->sparse = slice(whole, begin, piece->batch.cut.begin(own_.end));
    piece->batch.sparse = &piece->sparse;
    for (size_t f = 0; f < whole.features.size(); ++f) {
      const bool pooled = is_pooled(scenario_.model.features[f].pooling);
      piece->first_item.push_back(pooled ? begin : whole.features[f].offsets[begin]);
    }
    return piece;
  }

  Result<std::unique_ptr<Piece>> next_piece() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return !pieces_.empty(); });
    if (!failure_.ok()) return failure_;
    auto piece = std::move(pieces_.front());
    pieces_.pop_front();
    return piece;
  }

  Status run_operations() {
    int64_t iteration = 0;
    for (const Operation& operation : scenario_.operations) {
      std::vector<std::unique_ptr<Piece>> pieces;
      for (size_t batch = 0; batch < operation.batches.size(); ++batch) {
        RECMILL_ASSIGN_OR_RETURN(auto piece, next_piece());
        RECMILL_RETURN_IF_ERROR(look_up(*piece));
        pieces.push_back(std::move(piece));
      }
      switch (operation.kind) {
        case Operation::Kind::train:
          RECMILL_RETURN_IF_ERROR(train(pieces, {iteration++, operation.learning_rate_scale}));
          break;
        case Operation::Kind::evaluate:
          break;
        case Operation::Kind::settle:
          RECMILL_RETURN_IF_ERROR(store_.settle());
          break;
        case Operation::Kind::read_rows:
          RECMILL_RETURN_IF_ERROR(read_rows());
          break;
        case Operation::Kind::snapshot:
          RECMILL_RETURN_IF_ERROR(take_snapshot());
          break;
        case Operation::Kind::write_rows:
          RECMILL_RETURN_IF_ERROR(finish_snapshot());
          RECMILL_RETURN_IF_ERROR(store_.settle());
          RECMILL_RETURN_IF_ERROR(write_rows(operation.table));
          break;
      }
      ++operation_;
    }
    return {};
  }

  int64_t stride(size_t feature) const { return scenario_.model.dim_of(feature) + kGap; }

  Status look_up(Piece& piece) {
    auto& outputs = trace_.outputs[piece.number];
    std::vector<FeatureOutput> views;
    for (size_t f = 0; f < outputs.size(); ++f) {
      views.push_back({outputs[f].data() + piece.first_item[f] * stride(f), stride(f)});
    }
    return store_.lookup(*piece.prepared, views, stream_);
  }

  Status train(const std::vector<std::unique_ptr<Piece>>& pieces, const Step& step) {
    std::vector<std::vector<std::vector<float>>> gradients(pieces.size());
    std::vector<std::vector<FeatureGradient>> views(pieces.size());
    std::vector<Update> updates;
    for (size_t i = 0; i < pieces.size(); ++i) {
      for (size_t f = 0; f < scenario_.model.features.size(); ++f) {
        gradients[i].push_back(gradient(*pieces[i], f));
        views[i].push_back({gradients[i][f].data(), scenario_.model.dim_of(f) + 1});
      }
      updates.push_back({pieces[i]->prepared.get(), views[i]});
    }
    return store_.update(updates, step, stream_);
  }

  // [items][dim + 1], another stride than that of the outputs.
  std::vector<float> gradient(const Piece& piece, size_t feature) {
    const int64_t dim = scenario_.model.dim_of(feature);
    const int64_t items = rows_out(scenario_.model.features[feature].pooling,
                                   piece.sparse.features[feature].view(piece.sparse.samples));
    const Random random(scenario_.seed + 1, recmill::Purpose::test, piece.number * 1000 + feature);
    std::vector<float> values(items * (dim + 1), NAN);
    for (int64_t item = 0; item < items; ++item) {
      const int64_t global = piece.first_item[feature] + item;
      const float* output = trace_.outputs[piece.number][feature].data() + global * stride(feature);
      for (int64_t e = 0; e < dim; ++e) {
        values[item * (dim + 1) + e] = gradient_of(random, global, e, output[e]);
      }
    }
    return values;
  }

  Status read_rows() {
    RECMILL_RETURN_IF_ERROR(finish_snapshot());
    RECMILL_RETURN_IF_ERROR(store_.settle());
    return read(*store_.snapshot(0), operation_);
  }

  // Every other snapshot is read while later operations wait for it again and again; the others
  // after all that follows.
  Status take_snapshot() {
    RECMILL_RETURN_IF_ERROR(finish_snapshot());
    RECMILL_RETURN_IF_ERROR(store_.settle());
    const bool late = (scenario_.seed + operation_) % 2 == 0;
    snapshot_ = store_.snapshot(late ? int64_t{1} << 40 : 0);
    snapshot_operation_ = operation_;
    if (!late) reading_ = std::thread([this] { snapshot_status_ = read_snapshot(); });
    return {};
  }

  Status read_snapshot() {
    const auto snapshot = std::move(snapshot_);
    return read(*snapshot, snapshot_operation_);
  }

  Status finish_snapshot() {
    if (reading_.joinable()) {
      reading_.join();
      return snapshot_status_;
    }
    return snapshot_ == nullptr ? Status() : read_snapshot();
  }

  Status read(RowSnapshot& snapshot, size_t operation) {
    auto& rows = trace_.rows[operation];
    std::pair<int, int64_t> last{-1, -1};
    return snapshot.read([&](const RowBlock& block) -> Status {
      const TableSpec& table = scenario_.model.tables[block.table];
      const ColumnRange columns = block.columns_of(table.dim);
      for (int64_t i = 0; i < block.count; ++i) {
        const std::pair key{block.table, block.row(i)};
        if (key <= last) return Status::Failed("rows do not ascend");
        last = key;
        std::lock_guard lock(trace_.mutex);
        auto& values = rows[key];
        bool once = take(block.weights, i, columns, table.dim, 0, values);
        int64_t begin = table.dim;
        const table::RowState state = table::row_state(table);
        for (size_t c = 0; c < state.size(); begin += state[c].width, ++c) {
          const bool by_row = state[c].width < table.dim;
          once = take(block.state[c], i, by_row ? ColumnRange{0, 1} : columns, state[c].width,
                      begin, values) &&
                 once;
        }
        if (once) continue;
        return Status::Failed("two ranks own something of row " + std::to_string(key.second) +
                              " of table " + std::to_string(key.first));
      }
      return {};
    });
  }

  // Puts row i of some columns to their places among `width` values from `begin` on; false: one was
  // there already. What nobody puts there stays what no store has.
  static bool take(std::span<const float> from, int64_t i, ColumnRange columns, int64_t width,
                   int64_t begin, std::vector<float>& values) {
    constexpr uint32_t kNothing = 0xFFFFFFFF;
    values.resize(std::max<size_t>(values.size(), begin + width), std::bit_cast<float>(kNothing));
    if (from.empty()) return true;
    bool once = true;
    for (int64_t e = 0; e < columns.count; ++e) {
      float& value = values[begin + columns.first + e];
      once = once && std::bit_cast<uint32_t>(value) == kNothing;
      value = from[i * columns.count + e];
    }
    return once;
  }

  // Replaces the upper two thirds of a table, every other time without its state.
  Status write_rows(int table) {
    const TableSpec& spec = scenario_.model.tables[table];
    const Random random(scenario_.seed + 2, recmill::Purpose::test, operation_);
    RowBlock block{table, spec.rows / 3, spec.rows - spec.rows / 3, {}, {}};
    std::vector<float> weights(block.count * spec.dim);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = random.uniform(0, i) - 0.5f;
    block.weights = weights;
    std::vector<std::vector<float>> state;
    if (operation_ % 2 == 0) {
      for (const auto& column : table::row_state(spec)) {
        std::vector<float> values(block.count * column.width);
        for (size_t i = 0; i < values.size(); ++i) values[i] = random.uniform(1 + state.size(), i);
        state.push_back(std::move(values));
      }
    }
    const std::vector<std::span<const float>> views(state.begin(), state.end());
    block.state = views;
    return store_.write_rows(block);
  }

  const Scenario& scenario_;
  EmbeddingStore& store_;
  const int rank_, ranks_;
  const SliceRange own_;
  Stream stream_;
  Trace& trace_;
  size_t operation_ = 0;
  std::unique_ptr<RowSnapshot> snapshot_;  // not read yet, or handed to reading_
  size_t snapshot_operation_ = 0;
  std::thread reading_;
  Status snapshot_status_;  // of reading_

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::unique_ptr<Piece>> pieces_;  // guarded by mutex_
  Status failure_;                             // guarded by mutex_
};

}  // namespace

int64_t number_of_batch(size_t operation, size_t batch) {
  return static_cast<int64_t>(operation * kBatchesOfAnOperation + batch);
}

ModelSpec scenario_model() {
  constexpr int64_t kDims[] = {1, 4, 16, 33, 64};
  constexpr int64_t kRows[] = {1, 7, 50, 300};
  ModelSpec model;
  for (const auto& [kind, kind_name] : EnumNames<OptimizerKind>::names) {
    for (const auto& [precision, precision_name] : EnumNames<RowPrecision>::names) {
      for (int64_t dim : kDims) {
        TableSpec table;
        table.name =
            std::string(kind_name) + "_" + std::string(precision_name) + "_" + std::to_string(dim);
        table.rows = kRows[(model.tables.size() + model.tables.size() / 4) % 4];
        table.dim = dim;
        table.precision = precision;
        table.optimizer.kind = kind;
        table.optimizer.learning_rate = 0.02 + 0.001 * static_cast<double>(model.tables.size());
        table.optimizer.initial_accumulator = model.tables.size() % 2 == 0 ? 0.1 : 0.0;
        table.optimizer.l1 = 0.001;
        table.optimizer.l2 = model.tables.size() % 3 == 0 ? 0.0 : 0.01;
        if (model.tables.size() % 2 == 0) table.optimizer.correction = BiasCorrection::row;
        model.tables.push_back(table);
      }
    }
  }
  model.tables[17].frozen = true;
  const int tables = static_cast<int>(model.tables.size());
  // The features of a table are not together.
  for (int i = 0; i < tables + tables / 2 + tables / 4; ++i) {
    FeatureSpec feature;
    feature.name = "f" + std::to_string(i);
    feature.table = i < tables ? i : (i * 7) % tables;
    feature.pooling = static_cast<Pooling>(i % 4 % 3);
    feature.weighted = i % 5 == 1 || i % 5 == 4;
    model.features.push_back(feature);
  }
  return model;
}

SparseBatch random_batch(const ModelSpec& model, uint64_t seed, int64_t number, int64_t samples) {
  SparseBatch batch;
  batch.first = number * 1000;
  batch.samples = samples;
  for (size_t f = 0; f < model.features.size(); ++f) {
    const FeatureSpec& spec = model.features[f];
    const Random random(seed, recmill::Purpose::test, number * 1000 + f);
    batch.features.push_back(random_feature(spec, model.tables[spec.table].rows, random, samples));
  }
  return batch;
}

SparseBatch slice(const SparseBatch& batch, int64_t begin, int64_t end) {
  SparseBatch part;
  part.first = batch.first + begin;
  part.samples = end - begin;
  for (const SparseFeature& whole : batch.features) {
    SparseFeature feature;
    const int64_t first = whole.offsets[begin], last = whole.offsets[end];
    for (int64_t sample = begin; sample <= end; ++sample) {
      feature.offsets.push_back(whole.offsets[sample] - first);
    }
    feature.rows.assign(whole.rows.begin() + first, whole.rows.begin() + last);
    if (!whole.weights.empty()) {
      feature.weights.assign(whole.weights.begin() + first, whole.weights.begin() + last);
    }
    feature.one_each = whole.one_each;
    part.features.push_back(std::move(feature));
  }
  return part;
}

Scenario without_snapshots(Scenario scenario) {
  for (Operation& operation : scenario.operations) {
    if (operation.kind == Operation::Kind::snapshot) operation.kind = Operation::Kind::read_rows;
  }
  return scenario;
}

Scenario training_scenario(uint64_t seed, int count) {
  constexpr int64_t kSizes[] = {50, 5, 1, 64, 33, 8, 0, 17};
  Scenario scenario{scenario_model(), seed, 8, {}};
  for (int i = 0; i < count; ++i) {
    scenario.operations.push_back(
        {Operation::Kind::train, {kSizes[i % 8]}, i % 3 == 2 ? 0.5 : 1.0, 0});
    if (i % 3 == 0) scenario.operations.push_back({Operation::Kind::snapshot, {}, 1.0, 0});
  }
  scenario.operations.push_back({Operation::Kind::read_rows, {}, 1.0, 0});
  return scenario;
}

Scenario random_scenario(uint64_t seed, int count) {
  Scenario scenario{scenario_model(), seed, 8, {}};
  const Random random(seed, recmill::Purpose::test, 99);
  for (int i = 0; i < count; ++i) {
    Operation operation;
    const uint64_t draw = random.below(20, i, 0);
    operation.kind = draw < 10   ? Operation::Kind::train
                     : draw < 15 ? Operation::Kind::evaluate
                     : draw < 16 ? Operation::Kind::settle
                     : draw < 17 ? Operation::Kind::read_rows
                     : draw < 18 ? Operation::Kind::snapshot
                                 : Operation::Kind::write_rows;
    const bool looks_up =
        operation.kind == Operation::Kind::train || operation.kind == Operation::Kind::evaluate;
    const uint64_t batches = looks_up ? 1 + random.below(10, i, 1) / 8 : 0;
    for (uint64_t b = 0; b < batches; ++b) {
      operation.batches.push_back(static_cast<int64_t>(random.below(24, i, 2 + b)));
    }
    operation.learning_rate_scale = random.uniform64(i, 8) + 0.5;
    operation.table = static_cast<int>(random.below(scenario.model.tables.size(), i, 9));
    scenario.operations.push_back(std::move(operation));
  }
  scenario.operations.push_back({Operation::Kind::read_rows, {}, 1.0, 0});
  return scenario;
}

Trace::Trace(const Scenario& scenario)
    : outputs(scenario.operations.size() * kBatchesOfAnOperation),
      rows(scenario.operations.size()) {
  for (size_t operation = 0; operation < scenario.operations.size(); ++operation) {
    const auto& batches = scenario.operations[operation].batches;
    for (size_t batch = 0; batch < batches.size(); ++batch) {
      const int64_t number = number_of_batch(operation, batch);
      const SparseBatch whole = random_batch(scenario.model, scenario.seed, number, batches[batch]);
      for (size_t f = 0; f < whole.features.size(); ++f) {
        const int64_t items =
            rows_out(scenario.model.features[f].pooling, whole.features[f].view(whole.samples));
        outputs[number].emplace_back(items * (scenario.model.dim_of(f) + kGap), NAN);
      }
    }
  }
}

std::string Trace::difference(const Trace& other) const {
  if (outputs.size() != other.outputs.size()) return "other operations";
  for (size_t number = 0; number < outputs.size(); ++number) {
    for (size_t f = 0; f < outputs[number].size(); ++f) {
      const auto found = first_difference(outputs[number][f], other.outputs[number][f]);
      if (found.empty()) continue;
      return "operation " + std::to_string(number / kBatchesOfAnOperation) + ", feature " +
             std::to_string(f) + ": " + found;
    }
  }
  for (size_t operation = 0; operation < rows.size(); ++operation) {
    const std::string at = "rows after operation " + std::to_string(operation);
    if (rows[operation].size() != other.rows[operation].size()) return at + ": other rows";
    for (const auto& [key, values] : rows[operation]) {
      const auto theirs = other.rows[operation].find(key);
      if (theirs == other.rows[operation].end()) return at + ": a row is missing";
      const auto found = first_difference(values, theirs->second);
      if (found.empty()) continue;
      return at + ", table " + std::to_string(key.first) + ", row " + std::to_string(key.second) +
             ": " + found;
    }
  }
  return "";
}

Status carry_out(const Scenario& scenario, EmbeddingStore& store, int rank, int ranks,
                 ThreadPool& pool, Trace& trace) {
  return Driver(scenario, store, rank, ranks, pool, trace).run();
}

}  // namespace recmill::store::testing
