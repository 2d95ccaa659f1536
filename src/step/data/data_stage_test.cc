// SPDX-License-Identifier: Apache-2.0
// Each stage alone, without threads, and the thread that drives them: over rows, a dictionary and a
// store that are as small as the seams allow.
#include "step/data/data_stage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "step/data/reader_source.h"
#include "step/data/testing/small_data.h"
#include "store/testing/planned_store.h"

namespace recmill::train {
namespace {

using store::Purpose;

constexpr int64_t kRows = 70, kEvaluationRows = 10;

/// Prepares, and does nothing else.
class SmallStore final : public store::EmbeddingStore {
 public:
  Result<std::unique_ptr<store::Prepared>> prepare(const store::Batch&) override {
    return std::make_unique<store::Prepared>();
  }
  Status lookup(store::Prepared&, store::Output, Stream&) override { return {}; }
  Status update(std::span<const store::Update>, const store::Step&, Stream&) override { return {}; }
  Status settle() override { return {}; }
  std::unique_ptr<store::RowSnapshot> snapshot(int64_t) override { return nullptr; }
  table::Extent extent(int) const override { return {}; }
  Status write_rows(const store::RowBlock&) override { return {}; }
  store::StoreStats stats() const override { return {}; }
};

/// The data path of one rank.
struct Data {
  explicit Data(bool grows) : preprocessor(grows) {}

  SmallReader train{kRows}, evaluation{kEvaluationRows};
  SmallPreprocessor preprocessor;

  std::unique_ptr<BatchSource> source(const BatchSchedule& schedule,
                                      const StreamPosition& start = {}) {
    return std::make_unique<ReaderSource>(schedule, train, &evaluation, preprocessor, start);
  }
};

/// 9 iterations in 3 epochs.
BatchSchedule schedule_of(int64_t evaluate_every, double negative_keep = 1.0) {
  return {.batch_size = 24,
          .eval_batch_size = 4,
          .epochs = 3,
          .evaluate_every = evaluate_every,
          .negative_keep = negative_keep,
          .seed = 7,
          .slices = 8};
}

/// What there is to see of a batch, whoever hands it out.
struct Seen {
  Purpose purpose;
  StreamPosition before, after;
  preprocess::DictionaryVersions dictionaries;
  bool last_of_pass, ends_training;
  int64_t samples;
  std::array<int, 3> slices;
  std::vector<float> dense, labels;
  std::vector<std::vector<int64_t>> offsets, rows;
  bool operator==(const Seen&) const = default;
};

Seen seen(const RankBatch& batch) {
  Seen seen{batch.purpose,
            batch.before,
            batch.after,
            batch.dictionaries,
            batch.last_of_pass,
            batch.ends_training,
            batch.cut.samples,
            {batch.cut.slices, batch.first_slice, batch.end_slice},
            batch.dense.values,
            batch.dense.labels,
            {},
            {}};
  for (const SparseFeature& feature : batch.sparse.features) {
    seen.offsets.push_back(feature.offsets);
    seen.rows.push_back(feature.rows);
  }
  return seen;
}

std::vector<Seen> read_all(BatchSource& source) {
  std::vector<Seen> all;
  RankBatch batch;
  while (true) {
    const auto there = source.next(batch);
    EXPECT_TRUE(there.ok()) << there.status().message();
    if (!there.ok() || !*there) return all;
    all.push_back(seen(batch));
  }
}

TEST(ReaderSource, has_evaluations_at_their_place_in_the_stream) {
  Data data(/*grows=*/true);
  const auto all = read_all(*data.source(schedule_of(2)));
  // Epochs of 24, 24 and 22 rows; evaluations of 4, 4 and 2 after each second iteration and the
  // last.
  std::vector<std::pair<Purpose, StreamPosition>> expected;
  std::vector<int64_t> samples;
  for (int64_t i = 1; i <= 9; ++i) {
    const bool ends = i % 3 == 0;
    const StreamPosition after{i, i / 3, ends ? 0 : i % 3 * 24};
    expected.emplace_back(Purpose::train, after);
    samples.push_back(ends ? 22 : 24);
    if (i % 2 != 0 && i != 9) continue;
    for (const int64_t of : {4, 4, 2}) {
      expected.emplace_back(Purpose::evaluate, after);
      samples.push_back(of);
    }
  }
  ASSERT_EQ(all.size(), expected.size());
  StreamPosition before;
  for (size_t b = 0; b < all.size(); ++b) {
    EXPECT_EQ(std::pair(all[b].purpose, all[b].after), expected[b]) << b;
    EXPECT_EQ(all[b].before, before) << b;
    EXPECT_EQ(all[b].samples, samples[b]) << b;
    const bool trains = all[b].purpose == Purpose::train;
    EXPECT_EQ(all[b].last_of_pass, samples[b] == (trains ? 22 : 2)) << b;
    EXPECT_EQ(all[b].ends_training, all[b].after.iteration == 9 && (trains || samples[b] == 2))
        << b;
    before = all[b].after;
  }
}

TEST(ReaderSource, without_evaluations_has_the_same_batches_to_train_on) {
  BatchSchedule schedule = schedule_of(0);
  Data data(/*grows=*/true), other(/*grows=*/true);
  auto all = read_all(*data.source(schedule));
  EXPECT_EQ(all.size(), 9u + 3 * 3);
  std::erase_if(all, [](const Seen& batch) { return batch.purpose != Purpose::train; });
  schedule.evaluates = false;
  EXPECT_TRUE(read_all(*other.source(schedule)) == all);
}

TEST(ReaderSource, hands_ranks_their_own_samples_of_the_batches_of_one) {
  for (const bool grows : {false, true}) {
    for (const double keep : {1.0, 0.6}) {
      BatchSchedule schedule = schedule_of(2, keep);
      Data one(grows);
      const auto all = read_all(*one.source(schedule));
      schedule.ranks = 2;
      std::array<std::vector<Seen>, 2> of_rank;
      for (schedule.rank = 0; schedule.rank < 2; ++schedule.rank) {
        Data data(grows);
        of_rank[schedule.rank] = read_all(*data.source(schedule));
        ASSERT_EQ(of_rank[schedule.rank].size(), all.size());
      }
      for (size_t b = 0; b < all.size(); ++b) {
        std::vector<float> labels;
        std::vector<int64_t> rows;
        for (const auto& batches : of_rank) {
          EXPECT_EQ(batches[b].after, all[b].after);
          EXPECT_EQ(batches[b].dictionaries, all[b].dictionaries);
          labels.insert(labels.end(), batches[b].labels.begin(), batches[b].labels.end());
          rows.insert(rows.end(), batches[b].rows[0].begin(), batches[b].rows[0].end());
        }
        EXPECT_EQ(labels, all[b].labels);
        EXPECT_EQ(rows, all[b].rows[0]);
      }
    }
  }
}

// A checkpoint after a batch has its position as JSON and its dictionaries.
void expect_to_go_on(const BatchSchedule& schedule, bool grows) {
  Data first(grows);
  const auto all = read_all(*first.source(schedule));
  for (size_t b = 0; b < all.size(); ++b) {
    if (all[b].purpose != Purpose::train) continue;
    Data data(grows);
    if (grows) {
      std::vector<uint64_t> ids(static_cast<size_t>(all[b].dictionaries[0]));
      first.preprocessor.read_dictionary(0, 0, ids);
      ASSERT_TRUE(data.preprocessor.restore_dictionary(0, ids).ok());
    }
    const Json properties{{"iteration", all[b].after.iteration},
                          {"reader", reader_property(all[b].after)}};
    const auto start = read_position(properties);
    ASSERT_TRUE(start.ok()) << start.status().message();
    EXPECT_EQ(*start, all[b].after);
    const auto rest = read_all(*data.source(schedule, *start));
    EXPECT_TRUE(
        std::equal(all.begin() + static_cast<int64_t>(b) + 1, all.end(), rest.begin(), rest.end()))
        << "after batch " << b << " of " << all.size();
  }
}

TEST(ReaderSource, goes_on_from_what_any_batch_carries_as_if_it_had_never_stopped) {
  for (const bool grows : {false, true}) {
    for (const double keep : {1.0, 0.6, 0.0}) {
      for (const int64_t every : {0, 2, 4}) expect_to_go_on(schedule_of(every, keep), grows);
    }
  }
}

TEST(ReaderSource, says_that_negatives_alone_were_there_and_none_was_kept) {
  SmallReader reader(1);  // row 0 of epoch 1 would be positive: the label follows from both
  SmallPreprocessor preprocessor(false);
  BatchSchedule schedule = schedule_of(0, 0.0);
  ReaderSource source(schedule, reader, nullptr, preprocessor, {0, 0, 1});
  RankBatch batch;
  EXPECT_EQ(source.next(batch).status().message(),
            "train.negative_keep: of the 1 training rows, none of which is positive, none was kept "
            "to train on");
}

TEST(StreamPosition, beyond_the_data_is_refused) {
  SmallReader reader(kRows);
  EXPECT_TRUE(check_position({3, 1, kRows - 1}, reader).ok());
  EXPECT_EQ(check_position({3, 1, kRows}, reader).message(),
            "training was at row 70 of the data, which has 70 rows");
}

TEST(StreamPosition, of_damaged_properties_is_an_error_that_names_the_property) {
  Json properties{{"iteration", 8}, {"reader", {{"epoch", 2}, {"row", -1}}}};
  EXPECT_EQ(read_position(properties).status().message(), "property reader/row is no count");
  properties["reader"].erase("epoch");
  EXPECT_EQ(read_position(properties).status().message(), "property reader/epoch is no count");
}

std::unique_ptr<RankBatch> batch_of(Purpose purpose, int64_t iteration) {
  auto batch = std::make_unique<RankBatch>();
  batch->purpose = purpose;
  batch->before.iteration = iteration;
  return batch;
}

TEST(BatchWindow, lets_a_batch_go_with_its_plan_once_so_many_follow_or_none_does) {
  constexpr int64_t kBatches = 5;
  for (const int64_t ahead : {0, 1, 3, 7}) {
    BatchWindow window(ahead);
    int64_t left = 0;
    const auto take = [&] {
      const auto batch = *window.take();
      if (batch == nullptr) return false;
      EXPECT_EQ(*batch->plan, (StepPlan{left, left / 2})) << to_string(*batch->plan);
      EXPECT_EQ(batch->before.iteration, left / 2);
      ++left;
      return true;
    };
    // Of two batches one is trained and one evaluated: each is a step.
    for (int64_t i = 0; i < kBatches; ++i) {
      ASSERT_TRUE(
          window.add(batch_of(i % 2 == 0 ? Purpose::train : Purpose::evaluate, i / 2)).ok());
      while (take()) {
      }
      EXPECT_EQ(left, std::max<int64_t>(0, i + 1 - ahead)) << ahead;
    }
    window.end();
    while (take()) {
    }
    EXPECT_EQ(left, kBatches) << ahead;
  }
}

TEST(BatchWindow, gives_requests_no_plan) {
  BatchWindow window(0);
  ASSERT_TRUE(window.add(batch_of(Purpose::serve, 3)).ok());
  ASSERT_TRUE(window.add(batch_of(Purpose::train, 3)).ok());
  EXPECT_EQ((*window.take())->plan, nullptr);
  EXPECT_EQ(*(*window.take())->plan, (StepPlan{0, 3}));
}

TEST(DataStage, hands_out_the_source_s_batches_prepared_by_their_plans_however_far_it_looks_ahead) {
  const BatchSchedule schedule = schedule_of(2);
  Data first(/*grows=*/true);
  const auto all = read_all(*first.source(schedule));
  for (const int64_t ahead : {0, 1, 7, 200}) {
    for (const size_t queue : {1, 4}) {
      Data data(/*grows=*/true);
      store::testing::PlannedStore store(std::make_unique<SmallStore>());
      DataStage stage(data.source(schedule), BatchWindow(ahead), store, nullptr, queue);
      std::vector<Seen> handed_out;
      while (true) {
        auto batch = stage.next();
        ASSERT_TRUE(batch.ok()) << batch.status().message();
        if (*batch == nullptr) break;
        EXPECT_NE((*batch)->prepared, nullptr);
        handed_out.push_back(seen(**batch));
        stage.recycle(*std::move(batch));
      }
      EXPECT_TRUE(handed_out == all) << ahead << " ahead, queue of " << queue;
      EXPECT_EQ(store.steps(), std::ssize(all));
    }
  }
}

TEST(DataStage, neither_plans_nor_prepares_requests) {
  BatchSchedule schedule = schedule_of(0);
  schedule.epochs = 0;
  schedule.serves = true;
  Data data(/*grows=*/false);
  SmallStore store;
  DataStage stage(data.source(schedule, {1, 0, 0}), BatchWindow(0), store, nullptr, 1);
  for (const int64_t samples : {4, 4, 2}) {
    const auto batch = stage.next();
    ASSERT_TRUE(batch.ok() && *batch != nullptr);
    EXPECT_EQ((*batch)->purpose, Purpose::serve);
    EXPECT_EQ((*batch)->cut.samples, samples);
    EXPECT_EQ((*batch)->plan, nullptr);
    EXPECT_EQ((*batch)->prepared, nullptr);
  }
  const auto end = stage.next();
  EXPECT_TRUE(end.ok() && *end == nullptr);
}

/// Two batches of another source, then an error.
class FailingSource final : public BatchSource {
 public:
  explicit FailingSource(std::unique_ptr<BatchSource> inner) : inner_(std::move(inner)) {}
  Result<bool> next(RankBatch& batch) override {
    if (given_++ < 2) return inner_->next(batch);
    return Status::Failed("the data has gone");
  }

 private:
  const std::unique_ptr<BatchSource> inner_;
  int given_ = 0;
};

TEST(DataStage, tells_an_error_behind_the_batches_that_came_before_it) {
  for (const int64_t ahead : {0, 1, 7}) {
    Data data(/*grows=*/true);
    SmallStore store;
    DataStage stage(std::make_unique<FailingSource>(data.source(schedule_of(0))),
                    BatchWindow(ahead), store, nullptr, 1);
    for (const int64_t iteration : {0, 1}) {
      auto batch = stage.next();
      ASSERT_TRUE(batch.ok() && *batch != nullptr);
      EXPECT_EQ((*batch)->before.iteration, iteration);
      stage.recycle(*std::move(batch));
    }
    EXPECT_EQ(stage.next().status().message(), "the data has gone");
  }
}

/// Every other batch is of an evaluation. Counts those that it is given to be used again.
class AlternatingSource final : public BatchSource {
 public:
  explicit AlternatingSource(int64_t& of_evaluations) : of_evaluations_(of_evaluations) {}
  Result<bool> next(RankBatch& batch) override {
    of_evaluations_ += batch.purpose == Purpose::evaluate ? 1 : 0;
    batch.purpose = made_ % 2 == 0 ? Purpose::train : Purpose::evaluate;
    return ++made_ <= 100;
  }

 private:
  int64_t& of_evaluations_;
  int64_t made_ = 0;
};

TEST(DataStage, uses_no_batch_of_an_evaluation_again_where_it_looks_ahead) {
  for (const int64_t ahead : {0, 1, 7}) {
    SmallStore store;
    int64_t of_evaluations = 0, batches = 0;
    {
      DataStage stage(std::make_unique<AlternatingSource>(of_evaluations), BatchWindow(ahead),
                      store, nullptr, 1);
      for (auto batch = stage.next(); *batch != nullptr; batch = stage.next(), ++batches)
        stage.recycle(*std::move(batch));
    }
    EXPECT_EQ(batches, 100);
    EXPECT_EQ(of_evaluations > 0, ahead == 0) << ahead;
  }
}

TEST(DataStage, may_end_before_its_stream_does) {
  for (const int64_t ahead : {0, 2}) {
    Data data(/*grows=*/true);
    SmallStore store;
    DataStage stage(data.source(schedule_of(0)), BatchWindow(ahead), store, nullptr, 1);
    EXPECT_TRUE(stage.next().ok());
  }
}

}  // namespace
}  // namespace recmill::train
