// SPDX-License-Identifier: Apache-2.0
// Requests on one rank from several threads at once, from raw ids to logits: each with a state of
// its own, all with the bits of one thread.
#include "step/scorer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <thread>

#include "base/random.h"
#include "comm/threads.h"
#include "model/initial_parameters.h"
#include "model/make_model.h"
#include "placement_plan/testing/random_plan.h"
#include "preprocess/dag/resolve.h"
#include "preprocess/run/preprocessor.h"
#include "step/rank_trainer.h"
#include "store/placed/placed_store.h"
#include "store/table_store.h"
#include "store/tables/plain_store.h"

namespace recmill::train {
namespace {

constexpr uint64_t kSeed = 61;
constexpr int64_t kDim = 8, kDense = 3;
constexpr int kSlices = 4, kIdColumns = 4;
constexpr int64_t kSizes[] = {1, 300, 2, 33, 0, 7, 150};  // samples of requests

/// Cells of single ids may be empty, bags have 0 to 6.
ColumnBatch columns_of(int64_t first, int64_t samples, uint64_t ids) {
  const Random random(kSeed, Purpose::test);
  ColumnBatch batch;
  batch.first = first;
  batch.samples = samples;
  batch.dense.resize(kDense);
  batch.ids.resize(kIdColumns);
  for (IdColumn& column : batch.ids) column.offsets.push_back(0);
  for (int64_t s = first; s < first + samples; ++s) {
    batch.labels.push_back(static_cast<float>(random.below(2, s, 0)));
    for (int64_t c = 0; c < kDense; ++c)
      batch.dense[c].push_back(random.below(9, s, 1 + c) == 0
                                   ? std::numeric_limits<float>::quiet_NaN()
                                   : 4.0f * random.uniform(s, 10 + c));
    for (uint64_t c = 0; c < kIdColumns; ++c) {
      const uint64_t length = c == 0 ? 1 : random.below(c == 1 ? 2 : 7, s, 20 + c);
      for (uint64_t i = 0; i < length; ++i)
        batch.ids[c].ids.push_back(random.below(ids, s, 100 + 10 * c + i));
      batch.ids[c].offsets.push_back(std::ssize(batch.ids[c].ids));
    }
  }
  return batch;
}

/// A target, a feature that may be empty, a bag, and a history of the target's table; by
/// dictionaries, but for the bag.
preprocess::ResolvedFeatures features_of(model::ModelKind kind) {
  DataSchema schema;
  schema.dense = {"I1", "I2", "I3"};
  schema.ids = {"item", "place", "tags", "history"};
  schema.bags = {"tags", "history"};
  preprocess::EmbeddingOptions embedding;
  embedding.rows = {150};
  embedding.dim = kDim;
  embedding.initial_scale = 0.5;
  embedding.mapping = preprocess::Mapping::dictionary;
  embedding.out_of_range = preprocess::OutOfRange::clamp;
  embedding.missing = preprocess::MissingId::empty;
  preprocess::TableOptions tags;
  tags.name = "tags";
  tags.mapping = preprocess::Mapping::modulo;
  preprocess::FeatureOptions item, history;
  item.name = item.column = item.table = history.table = "item";
  history.name = history.column = "history";
  if (kind == model::ModelKind::tbsm) history.pooling = preprocess::FeaturePooling::none;
  auto resolved = preprocess::resolve(schema, embedding, {tags}, {item, history}, {});
  RECMILL_CHECK(resolved.ok(), resolved.status().message());
  return *std::move(resolved);
}

Result<std::unique_ptr<store::EmbeddingStore>> store_of(const std::string& name,
                                                        const ModelSpec& spec,
                                                        Communicator& communicator,
                                                        ThreadPool& pool) {
  if (name == "plain") {
    RECMILL_ASSIGN_OR_RETURN(auto plain, store::PlainStore::create(spec, kSeed, pool));
    return std::unique_ptr<store::EmbeddingStore>(std::move(plain));
  }
  if (name == "local") return store::create_table_store(spec, kSeed, communicator, pool);
  RECMILL_ASSIGN_OR_RETURN(
      auto plan,
      table::PlacedTables::create(testing::random_plan(spec.tables, 1, kSeed), spec.tables, 1));
  RECMILL_ASSIGN_OR_RETURN(auto placed,
                           store::PlacedStore::create(spec, kSeed, communicator, pool, plan));
  return std::unique_ptr<store::EmbeddingStore>(std::move(placed));
}

/// One rank that answers requests.
class Server {
 public:
  Server(const model::ModelOptions& options, const std::string& store)
      : pool_(2), communicator_(ThreadsGroup(1).communicator(0)) {
    auto resolved = features_of(options.kind);
    spec_ = model::with_model_tables(resolved.model, options);
    preprocessor_ = *preprocess::make_preprocessor(resolved.graph, spec_, pool_);
    auto rows = store_of(store, spec_, *communicator_, pool_);
    auto model = model::make_model(options, spec_, kSeed);
    RECMILL_CHECK(rows.ok(), rows.status().message());
    RECMILL_CHECK(model.ok(), model.status().message());
    store_ = *std::move(rows);
    model_ = *std::move(model);
    const int64_t count = model_->parameter_count();
    optimizer_ = std::make_unique<DenseOptimizer>(DenseOptimizerOptions(), count,
                                                  std::vector<ParameterRange>{{0, count}});
    trainer_ =
        std::make_unique<RankTrainer>(spec_, *model_, *store_, *optimizer_, *communicator_, pool_,
                                      kSlices, *model::initial_parameters(*model_, kSeed));
    RECMILL_CHECK(trainer_->load_parameters().ok());
    grow(0);
    as_of_ = preprocessor_->versions();
  }

  /// Training data that the dictionaries see.
  void grow(int64_t first) {
    DenseBatch dense;
    SparseBatch sparse;
    const auto status = preprocessor_->train(columns_of(first, 40, 90 + first), dense, sparse);
    RECMILL_CHECK(status.ok(), status.message());
  }

  /// A request up to where its logits are computed.
  Status prepare_request(int64_t number, RankBatch& batch) const {
    const int64_t samples = kSizes[number];
    batch.purpose = store::Purpose::serve;
    batch.cut = {samples, kSlices};
    batch.end_slice = kSlices;
    batch.prepared.reset();
    RECMILL_RETURN_IF_ERROR(preprocessor_->evaluate(columns_of(1000 * number, samples, 200), as_of_,
                                                    batch.dense, batch.sparse));
    return prepare(*store_, batch);
  }
  Trainer& trainer() const { return *trainer_; }

 private:
  ThreadPool pool_;
  std::unique_ptr<Communicator> communicator_;
  ModelSpec spec_;
  std::unique_ptr<preprocess::Preprocessor> preprocessor_;
  std::unique_ptr<store::EmbeddingStore> store_;
  std::unique_ptr<model::Model> model_;
  std::unique_ptr<DenseOptimizer> optimizer_;
  std::unique_ptr<RankTrainer> trainer_;
  preprocess::DictionaryVersions as_of_;
};

using Logits = std::vector<std::vector<float>>;  // of each request

/// As an evaluation scores them, one after the other.
Result<Logits> scored(const Server& server) {
  Logits logits;
  RankBatch batch;
  for (size_t number = 0; number < std::size(kSizes); ++number) {
    RECMILL_RETURN_IF_ERROR(server.prepare_request(static_cast<int64_t>(number), batch));
    RECMILL_ASSIGN_OR_RETURN(const StepResult result, server.trainer().score(batch));
    logits.emplace_back(result.logits.begin(), result.logits.end());
  }
  return logits;
}

/// All requests by one client, from `first` on, with the memory of one request.
Status answer_all(const Server& server, size_t first, Logits& logits) {
  logits.resize(std::size(kSizes));
  RankBatch batch;
  ForwardState state;
  for (size_t i = 0; i < std::size(kSizes); ++i) {
    const size_t number = (first + i) % std::size(kSizes);
    RECMILL_RETURN_IF_ERROR(server.prepare_request(static_cast<int64_t>(number), batch));
    RECMILL_RETURN_IF_ERROR(server.trainer().predict(batch, state));
    logits[number] = state.logits;
  }
  return {};
}

void expect_bits_of_one_client(Server& server, const Logits& expected, bool grows) {
  static int64_t seen = 0;
  for (const size_t clients : {1u, 2u, 4u, 8u}) {
    std::vector<Logits> found(clients);
    std::vector<Status> outcomes(clients);
    std::vector<std::thread> threads;
    std::atomic<bool> done = false;
    for (size_t client = 0; client < clients; ++client)
      threads.emplace_back(
          [&, client] { outcomes[client] = answer_all(server, client, found[client]); });
    std::thread training([&] {
      while (grows && !done) server.grow(seen += 40);
    });
    for (std::thread& thread : threads) thread.join();
    done = true;
    training.join();
    for (size_t client = 0; client < clients; ++client) {
      ASSERT_TRUE(outcomes[client].ok()) << outcomes[client].message();
      EXPECT_TRUE(found[client] == expected)
          << clients << " clients, " << (grows ? "growing" : "frozen") << " dictionaries, seed "
          << kSeed;
    }
  }
}

std::vector<model::ModelOptions> models() {
  using enum model::ModelKind;
  std::vector<model::ModelOptions> list = {
      {.kind = dlrm, .bottom = {16, kDim}, .top = {20, 1}},
      {.kind = dlrm,
       .bottom = {16, kDim},
       .top = {20, 1},
       .precision = model::LayerPrecision::bfloat16},
      {.kind = mlp, .top = {20, 1}},
      {.kind = wide_and_deep, .deep = {20, 1}},
      {.kind = deep_fm, .deep = {20, 1}},
      {.kind = deep_fm, .deep = {20, 1}, .batch_norm = true},
      {.kind = deep_cross, .bottom = {16}, .over = {20, 1}},
      {.kind = tbsm, .bottom = {16, kDim}, .top = {12, 6}, .over = {8, 1}}};
  std::erase_if(list, [](const model::ModelOptions& options) {
    const auto spec = model::with_model_tables(features_of(options.kind).model, options);
    const auto made = model::make_model(options, spec, kSeed);
    const bool lacks_torch =
        !made.ok() && made.status().message().find("without LibTorch") != std::string::npos;
    EXPECT_TRUE(made.ok() || lacks_torch) << made.status().message();
    return lacks_torch;
  });
  return list;
}

}  // namespace

TEST(Scorer, answers_several_threads_at_once_with_the_bits_of_one) {
  for (const model::ModelOptions& options : models()) {
    for (const char* const store : {"plain", "local", "placed"}) {
      SCOPED_TRACE(std::string(name_of(options.kind)) + " over " + store);
      Server server(options, store);
      const auto expected = scored(server);
      ASSERT_TRUE(expected.ok()) << expected.status().message();
      for (const bool grows : {false, true}) expect_bits_of_one_client(server, *expected, grows);
    }
  }
}

}  // namespace recmill::train
