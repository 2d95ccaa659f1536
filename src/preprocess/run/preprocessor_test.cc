// SPDX-License-Identifier: Apache-2.0
#include "preprocess/run/preprocessor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "base/json/json.h"
#include "base/random.h"
#include "preprocess/dag/resolve.h"
#include "preprocess/run/testing/equal_batches.h"

namespace recmill::preprocess {
namespace {

constexpr int64_t kDense = 3;

/// Two columns of one id or none, one of one id each, bags with and without weights.
DataSchema schema() {
  DataSchema schema;
  schema.dense = {"I1", "I2", "I3"};
  schema.ids = {"a", "b", "always", "tags", "scored"};
  schema.bags = {"tags", "scored"};
  schema.weighted = {"scored"};
  return schema;
}

ColumnBatch make_batch(int64_t first, int64_t samples, uint64_t ids, uint64_t seed) {
  const Random random(seed, Purpose::test);
  ColumnBatch batch;
  batch.first = first;
  batch.samples = samples;
  batch.dense.resize(kDense);
  batch.ids.resize(5);
  for (auto& column : batch.ids) column.offsets.push_back(0);
  for (int64_t s = first; s < first + samples; ++s) {
    batch.labels.push_back(random.uniform(s, 0));
    for (int64_t c = 0; c < kDense; ++c) {
      const uint32_t bits = random.bits(s, 4 + c);
      batch.dense[c].push_back(bits % 5 == 0 ? std::numeric_limits<float>::quiet_NaN()
                                             : static_cast<float>(bits % 3000) - 10.0f);
    }
    for (uint64_t c = 0; c < 5; ++c) {
      const uint64_t length = c < 2    ? random.below(4, s, 100 + c) > 0
                              : c == 2 ? 1
                                       : random.below(c == 3 ? 5 : 20, s, 100 + c);
      for (uint64_t i = 0; i < length; ++i) {
        batch.ids[c].ids.push_back(random.below(ids, s, 1000 + c * 100 + i));
        if (c == 4) batch.ids[c].weights.push_back(random.uniform(s, 8000 + i));
      }
      batch.ids[c].offsets.push_back(static_cast<int64_t>(batch.ids[c].ids.size()));
    }
  }
  return batch;
}

struct Options {
  EmbeddingOptions embedding;
  std::vector<TableOptions> tables;
  std::vector<FeatureOptions> features;
  PreprocessOptions preprocess;
  Options() { embedding.rows = {1000}; }
  ResolvedFeatures resolve() const {
    auto resolved = preprocess::resolve(schema(), embedding, tables, features, preprocess);
    EXPECT_TRUE(resolved.ok()) << resolved.status().message();
    return *std::move(resolved);
  }
};

FeatureOptions feature(const std::string& name, const std::string& column,
                       const std::string& table) {
  FeatureOptions feature;
  feature.name = name;
  feature.column = column;
  feature.table = table;
  return feature;
}

/// Every way to map ids, with bags cut, filled, dropped and shared.
std::vector<std::pair<std::string, Options>> all_options() {
  std::vector<std::pair<std::string, Options>> list;
  list.emplace_back("defaults", Options());
  for (const auto mapping :
       {Mapping::hash, Mapping::dictionary, Mapping::direct, Mapping::modulo}) {
    for (const auto policy : {OutOfRange::clamp, OutOfRange::drop}) {
      for (const auto missing : {MissingId::value, MissingId::empty}) {
        Options options;
        options.embedding.rows = {300};
        options.embedding.mapping = mapping;
        options.embedding.out_of_range = policy;
        options.embedding.missing = missing;
        options.embedding.missing_id = 5;
        list.emplace_back(std::string(name_of(mapping)) + ' ' + std::string(name_of(policy)) + ' ' +
                              std::string(name_of(missing)),
                          options);
        options.embedding.max_length = 3;
        auto bucket = feature("I1_bucket", "I1", "");
        bucket.borders = {0, 10, 100};
        options.features = {feature("left", "a", "shared"), feature("right", "tags", "shared"),
                            feature("again", "a", "shared"), bucket};
        list.emplace_back(list.back().first + " shared", options);
      }
    }
  }
  for (const auto policy : {OutOfRange::clamp, OutOfRange::drop}) {
    Options options;
    options.embedding.rows = {300};
    options.embedding.mapping = Mapping::dictionary;
    options.embedding.out_of_range = policy;
    options.embedding.min_count = 3;
    options.embedding.unseen = Unseen::zero;
    options.embedding.pooling = FeaturePooling::weighted_mean;
    list.emplace_back("rare ids " + std::string(name_of(policy)), options);
  }
  return list;
}

}  // namespace

TEST(Preprocessor, equals_the_plain_one_bitwise_at_any_number_of_threads) {
  for (const auto& [name, options] : all_options()) {
    ResolvedFeatures resolved = options.resolve();
    // What DeepFM does: the same rows of a narrower table.
    resolved.model.features.push_back({"a_first_order", 0, Pooling::sum, false, 0});
    auto plain = make_plain_preprocessor(resolved.graph, resolved.model);
    ASSERT_TRUE(plain.ok()) << plain.status().message();
    std::vector<std::unique_ptr<ThreadPool>> pools;
    std::vector<std::unique_ptr<Preprocessor>> fast;
    for (int threads : {1, 2, 3}) {
      pools.push_back(std::make_unique<ThreadPool>(threads));
      auto made = make_preprocessor(resolved.graph, resolved.model, *pools.back());
      ASSERT_TRUE(made.ok()) << made.status().message();
      fast.push_back(*std::move(made));
    }
    DictionaryVersions early;
    int64_t first = 0;
    // The vectors of the outputs are reused from batch to batch.
    DenseBatch dense[3], plain_dense;
    SparseBatch sparse[3], plain_sparse;
    for (const int64_t samples : {0, 1, 1023, 1024, 1025, 2500, 7}) {
      SCOPED_TRACE(name + ", " + std::to_string(samples) + " samples");
      const ColumnBatch batch = make_batch(first, samples, 400, 31);
      ASSERT_TRUE((*plain)->train(batch, plain_dense, plain_sparse).ok());
      for (size_t i = 0; i < fast.size(); ++i) {
        ASSERT_TRUE(fast[i]->train(batch, dense[i], sparse[i]).ok());
        expect_equal(dense[i], plain_dense);
        expect_equal(sparse[i], plain_sparse);
        EXPECT_EQ(fast[i]->versions(), (*plain)->versions());
        EXPECT_EQ(fast[i]->flattened(), (*plain)->flattened());
      }
      first += samples;
      if (samples == 1023) early = (*plain)->versions();
    }
    const ColumnBatch held_out = make_batch(first, 1500, 500, 32);
    for (const auto& as_of : {early, (*plain)->versions()}) {
      ASSERT_TRUE((*plain)->evaluate(held_out, as_of, plain_dense, plain_sparse).ok());
      for (size_t i = 0; i < fast.size(); ++i) {
        ASSERT_TRUE(fast[i]->evaluate(held_out, as_of, dense[i], sparse[i]).ok());
        SCOPED_TRACE(name + ", evaluation");
        expect_equal(sparse[i], plain_sparse);
        EXPECT_EQ(fast[i]->versions(), (*plain)->versions()) << "evaluation grew a dictionary";
        EXPECT_EQ(fast[i]->counts(), (*plain)->counts());
      }
    }
    // A second epoch.
    const ColumnBatch again = make_batch(0, 2500, 400, 31);
    (*plain)->stop_counting();
    ASSERT_TRUE((*plain)->train(again, plain_dense, plain_sparse).ok());
    for (size_t i = 0; i < fast.size(); ++i) {
      fast[i]->stop_counting();
      ASSERT_TRUE(fast[i]->train(again, dense[i], sparse[i]).ok());
      expect_equal(sparse[i], plain_sparse);
      EXPECT_EQ(fast[i]->versions(), (*plain)->versions());
      EXPECT_EQ(fast[i]->counts(), (*plain)->counts());
    }
  }
}

TEST(Preprocessor, evaluates_on_several_threads_at_once_beside_training_with_the_bits_of_one) {
  for (const auto& [name, options] : all_options()) {
    const ResolvedFeatures resolved = options.resolve();
    ThreadPool pool(2);
    const std::unique_ptr<Preprocessor> made[] = {
        *make_preprocessor(resolved.graph, resolved.model, pool),
        *make_plain_preprocessor(resolved.graph, resolved.model)};
    for (const auto& of : made) {
      DenseBatch dense;
      SparseBatch sparse, expected;
      ASSERT_TRUE(of->train(make_batch(0, 300, 400, 31), dense, sparse).ok());
      const DictionaryVersions as_of = of->versions();
      const ColumnBatch held_out = make_batch(3000, 100, 500, 32);
      ASSERT_TRUE(of->evaluate(held_out, as_of, dense, expected).ok());
      std::vector<SparseBatch> found(4);
      std::vector<std::thread> threads;
      for (SparseBatch& own : found)
        threads.emplace_back([&] {
          DenseBatch own_dense;
          for (int i = 0; i < 3; ++i)
            EXPECT_TRUE(of->evaluate(held_out, as_of, own_dense, own).ok());
        });
      ASSERT_TRUE(of->train(make_batch(300, 300, 400, 31), dense, sparse).ok());
      for (std::thread& thread : threads) thread.join();
      SCOPED_TRACE(name);
      for (const SparseBatch& own : found) expect_equal(own, expected);
    }
  }
}

/// "scored" of one sample with these ids and weights, after `train`.
SparseFeature scored(Options options, const std::vector<uint64_t>& ids,
                     const std::vector<float>& weights, const std::vector<uint64_t>& train) {
  const ResolvedFeatures resolved = options.resolve();
  ThreadPool pool(1);
  auto made = *make_preprocessor(resolved.graph, resolved.model, pool);
  DenseBatch dense;
  SparseBatch sparse;
  ColumnBatch batch = make_batch(0, 1, 9, 1);
  batch.ids[4] = {.offsets = {0, std::ssize(train)}, .ids = {}, .weights = {}};
  batch.ids[4].ids.assign(train.begin(), train.end());
  batch.ids[4].weights.assign(train.size(), 1.0f);
  EXPECT_TRUE(made->train(batch, dense, sparse).ok());
  batch.ids[4] = {.offsets = {0, std::ssize(ids)}, .ids = {}, .weights = {}};
  batch.ids[4].ids.assign(ids.begin(), ids.end());
  batch.ids[4].weights.assign(weights.begin(), weights.end());
  EXPECT_TRUE(made->evaluate(batch, made->versions(), dense, sparse).ok());
  return sparse.features[4];
}

TEST(Preprocessor, weights_of_a_weighted_mean_are_divided_by_the_sum_of_those_that_are_left) {
  Options options;
  options.embedding.mapping = Mapping::dictionary;
  options.embedding.pooling = FeaturePooling::weighted_mean;
  const auto weights_of = [&](const std::vector<uint64_t>& ids, const std::vector<float>& weights) {
    const SparseFeature made = scored(options, ids, weights, {5, 6});
    return std::vector<float>(made.weights.begin(), made.weights.end());
  };
  EXPECT_EQ(weights_of({5, 6, 7}, {1, 2, 5}), (std::vector<float>{0.125f, 0.25f, 0.625f}));
  EXPECT_EQ(weights_of({5, 6}, {1, -3}), (std::vector<float>{-0.5f, 1.5f}));
  EXPECT_EQ(weights_of({5, 6}, {2, -2}), (std::vector<float>{0, 0})) << "of sum 0";
  options.embedding.unseen = Unseen::zero;
  EXPECT_EQ(weights_of({5, 6, 7}, {1, 3, 4}), (std::vector<float>{0.25f, 0.75f}));
}

TEST(Preprocessor, ids_that_training_did_not_see_are_row_0_or_left_out) {
  Options options;
  options.embedding.mapping = Mapping::dictionary;
  const auto rows_of = [&](const std::vector<uint64_t>& ids, const std::vector<uint64_t>& train) {
    const SparseFeature made = scored(options, ids, std::vector<float>(ids.size(), 1.0f), train);
    return std::vector<int64_t>(made.rows.begin(), made.rows.end());
  };
  EXPECT_EQ(rows_of({6, 7, 5}, {5, 6}), (std::vector<int64_t>{2, 0, 1}));
  options.embedding.unseen = Unseen::zero;
  EXPECT_EQ(rows_of({6, 7, 5}, {5, 6}), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(rows_of({7}, {5, 6}), std::vector<int64_t>());
  options.embedding.min_count = 2;
  EXPECT_EQ(rows_of({6, 5}, {5, 6, 6}), std::vector<int64_t>{1}) << "5 was seen once";
}

TEST(Preprocessor, restored_at_the_version_of_a_batch_it_goes_on_as_it_did) {
  Options options;
  options.embedding.mapping = Mapping::dictionary;
  options.embedding.min_count = 3;
  options.embedding.rows = {100000};
  const ResolvedFeatures resolved = options.resolve();
  ThreadPool pool(2);
  auto whole = *make_preprocessor(resolved.graph, resolved.model, pool);
  DenseBatch dense;
  SparseBatch sparse, again;
  ASSERT_TRUE(whole->train(make_batch(0, 500, 50000, 1), dense, sparse).ok());
  const DictionaryVersions version = whole->versions();
  const ColumnBatch next = make_batch(500, 500, 50000, 1);
  ASSERT_TRUE(whole->train(next, dense, sparse).ok());  // preprocessing runs ahead
  auto restored = *make_preprocessor(resolved.graph, resolved.model, pool);
  for (size_t d = 0; d < version.size(); ++d) {
    std::vector<uint64_t> ids(version[d]);
    whole->read_dictionary(static_cast<int>(d), 0, ids);
    ASSERT_TRUE(restored->restore_dictionary(static_cast<int>(d), ids).ok());
  }
  EXPECT_EQ(restored->versions(), version);
  ASSERT_TRUE(restored->train(next, dense, again).ok());
  expect_equal(again, sparse);
}

TEST(Preprocessor, an_id_without_a_row_is_named_with_column_sample_and_value) {
  for (const auto mapping : {Mapping::direct, Mapping::dictionary}) {
    Options options;
    options.embedding.mapping = mapping;
    options.embedding.rows = {10};
    options.embedding.missing = MissingId::empty;
    const ResolvedFeatures resolved = options.resolve();
    ThreadPool pool(2);
    ColumnBatch batch = make_batch(0, 3000, 9, 4);
    batch.first = 7000;
    batch.ids[3].ids[batch.ids[3].offsets[2001] - 1] = 77;  // some sample up to 2000
    int64_t sample = 2000;
    while (batch.ids[3].offsets[sample + 1] == batch.ids[3].offsets[sample]) --sample;
    const std::string where = "column 'tags', sample " + std::to_string(7000 + sample) + ": id 77 ";
    auto fast = *make_preprocessor(resolved.graph, resolved.model, pool);
    auto plain = *make_plain_preprocessor(resolved.graph, resolved.model);
    DenseBatch dense;
    SparseBatch sparse;
    const std::string message = fast->train(batch, dense, sparse).message();
    EXPECT_EQ(message, plain->train(batch, dense, sparse).message());
    EXPECT_EQ(message, where + (mapping == Mapping::direct
                                    ? "is outside the table of feature 'tags': rows = 10"
                                    : "is new, and the dictionary of table 'tags' is full: "
                                      "rows = 10"));
  }
}

TEST(Preprocessor, a_bucket_without_a_row_is_named) {
  Options options;
  auto bucket = feature("I1_bucket", "I1", "");
  bucket.borders = {0, 10, 100};
  options.features = {bucket};
  ResolvedFeatures resolved = options.resolve();
  for (Chain& chain : resolved.graph.features)
    if (chain.source == Source::dense)
      chain.ops.push_back({"direct", Json{{"rows", 2}, {"out_of_range", "error"}}});
  ThreadPool pool(2);
  ColumnBatch batch = make_batch(0, 50, 9, 6);
  for (float& value : batch.dense[0]) value = -1.0f;
  batch.first = 600;
  batch.dense[0][41] = 20.0f;
  const std::string where = "column 'I1', sample 641: id 2 is outside the table of feature ";
  DenseBatch dense;
  SparseBatch sparse;
  auto fast = *make_preprocessor(resolved.graph, resolved.model, pool);
  auto plain = *make_plain_preprocessor(resolved.graph, resolved.model);
  const std::string message = fast->train(batch, dense, sparse).message();
  EXPECT_EQ(message, plain->train(batch, dense, sparse).message());
  EXPECT_THAT(message, testing::StartsWith(where));
}

TEST(Preprocessor, equal_ids_of_different_columns_take_unrelated_rows) {
  Options options;
  const ResolvedFeatures resolved = options.resolve();
  auto plain = *make_plain_preprocessor(resolved.graph, resolved.model);
  ColumnBatch batch = make_batch(0, 1000, 400, 5);
  batch.ids[1] = batch.ids[0];
  DenseBatch dense;
  SparseBatch sparse;
  ASSERT_TRUE(plain->train(batch, dense, sparse).ok());
  int equal = 0;
  for (size_t i = 0; i < 1000; ++i) {
    equal += sparse.features[0].rows[i] == sparse.features[1].rows[i];
  }
  EXPECT_LT(equal, 50);  // 1000 rows: about one in a thousand
}

TEST(Preprocessor, a_graph_that_cannot_run_is_an_error_that_names_the_chain) {
  ResolvedFeatures resolved = Options().resolve();
  resolved.graph.features[1].ops.push_back({"first_x", Json{{"x", 1}}});
  const auto made = make_plain_preprocessor(resolved.graph, resolved.model);
  EXPECT_EQ(made.status().message(), "chain 'b': op 'first_x' cannot be there");
}

}  // namespace recmill::preprocess
