// SPDX-License-Identifier: Apache-2.0
// Each stage alone, without threads, and the thread that drives them.
#include "step/data/data_stage.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/testing/faulty_files.h"
#include "base/testing/shared_files.h"
#include "run/rank.h"
#include "run/testing/small_run.h"
#include "step/data/reader_source.h"
#include "store/testing/planned_store.h"

namespace recmill::train {
namespace {

using store::Purpose;

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

/// 70 rows and 10 held out, with dictionaries that grow, or a table that is looked up by hash.
RunOptions options_of(int64_t evaluate_every, double negative_keep, bool grows) {
  RunOptions options = small_run();
  options.train.eval_batch_size = 4;
  options.train.evaluate_every = evaluate_every;
  options.train.negative_keep = negative_keep;
  if (!grows) options.embedding.mapping = preprocess::Mapping::hash;
  return options;
}

/// Calls `body` on each of `ranks` with a rank of its own, of the initial state.
void on_ranks(RunOptions options, int ranks,
              const std::function<Status(const ResolvedRun&, Communicator&,
                                         const std::function<Result<Rank>()>&)>& body) {
  options.train.ranks = ranks;
  FaultyFiles disk;
  SharedFiles files(disk, [](const std::string&) { return Status(); });
  const auto run = resolve_run(options, files);
  ASSERT_TRUE(run.ok()) << run.status().message();
  const Status status = run_ranks(ranks, [&](Communicator& communicator) -> Status {
    ThreadPool pool(1);
    return body(*run, communicator,
                [&] { return make_rank(*run, Way::engine, communicator, pool, files); });
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

std::unique_ptr<BatchSource> source_of(Rank& rank, const BatchSchedule& schedule,
                                       const StreamPosition& start = {}) {
  return std::make_unique<ReaderSource>(schedule, *rank.train_rows, rank.eval_rows.get(),
                                        *rank.preprocessor, start);
}

Result<std::vector<Seen>> read_all(BatchSource& source) {
  std::vector<Seen> all;
  RankBatch batch;
  while (true) {
    RECMILL_ASSIGN_OR_RETURN(const bool there, source.next(batch));
    if (!there) return all;
    all.push_back(seen(batch));
  }
}

/// Lists of dictionaries as they were at some batch, for another rank.
void carry_over(const preprocess::Preprocessor& from, const preprocess::DictionaryVersions& as_of,
                preprocess::Preprocessor& to) {
  for (size_t list = 0; list < as_of.size(); ++list) {
    std::vector<uint64_t> ids(static_cast<size_t>(as_of[list]));
    from.read_dictionary(static_cast<int>(list), 0, ids);
    EXPECT_TRUE(to.restore_dictionary(static_cast<int>(list), ids).ok());
  }
}

TEST(ReaderSource, has_evaluations_at_their_place_in_the_stream) {
  on_ranks(
      options_of(2, 1.0, true), 1,
      [](const ResolvedRun& run, Communicator&, const auto& make) -> Status {
        RECMILL_ASSIGN_OR_RETURN(Rank rank, make());
        RECMILL_ASSIGN_OR_RETURN(const auto all, read_all(*source_of(rank, run.schedule(0))));
        // Epochs of 24, 24 and 22 rows; evaluations of 4, 4 and 2 after each second iteration and
        // the last.
        std::vector<std::pair<Purpose, StreamPosition>> expected;
        std::vector<int64_t> samples;
        for (int64_t i = 1; i <= 9; ++i) {
          const bool ends = i % 3 == 0;
          expected.emplace_back(Purpose::train, StreamPosition{i, i / 3, ends ? 0 : i % 3 * 24});
          samples.push_back(ends ? 22 : 24);
          if (i % 2 != 0 && i != 9) continue;
          for (const int64_t of : {4, 4, 2}) {
            expected.emplace_back(Purpose::evaluate, expected.back().second);
            samples.push_back(of);
          }
        }
        EXPECT_EQ(all.size(), expected.size());
        StreamPosition before;
        for (size_t b = 0; b < std::min(all.size(), expected.size()); ++b) {
          EXPECT_EQ(std::pair(all[b].purpose, all[b].after), expected[b]) << b;
          EXPECT_EQ(all[b].before, before) << b;
          EXPECT_EQ(all[b].samples, samples[b]) << b;
          EXPECT_EQ(all[b].ends_training,
                    all[b].after.iteration == 9 && (all[b].purpose == Purpose::train || b == 23))
              << b;
          before = all[b].after;
        }
        return {};
      });
}

TEST(ReaderSource, without_evaluations_has_the_same_batches_to_train_on) {
  on_ranks(options_of(0, 1.0, true), 1,
           [](const ResolvedRun& run, Communicator&, const auto& make) -> Status {
             BatchSchedule schedule = run.schedule(0);
             RECMILL_ASSIGN_OR_RETURN(Rank rank, make());
             RECMILL_ASSIGN_OR_RETURN(auto all, read_all(*source_of(rank, schedule)));
             std::erase_if(all, [](const Seen& batch) { return batch.purpose != Purpose::train; });
             schedule.evaluates = false;
             RECMILL_ASSIGN_OR_RETURN(Rank other, make());
             RECMILL_ASSIGN_OR_RETURN(const auto trained, read_all(*source_of(other, schedule)));
             EXPECT_EQ(trained.size(), 9u);
             EXPECT_TRUE(trained == all);
             return {};
           });
}

// A checkpoint after a batch has its position as JSON and its dictionaries.
TEST(ReaderSource, goes_on_from_what_any_batch_carries_as_if_it_had_never_stopped) {
  for (const int ranks : {1, 2}) {
    for (const auto& options : {options_of(0, 1.0, true), options_of(2, 0.6, true),
                                options_of(2, 0.6, false), options_of(4, 1.0, false)}) {
      on_ranks(options, ranks,
               [](const ResolvedRun& run, Communicator& communicator, const auto& make) -> Status {
                 const BatchSchedule schedule = run.schedule(communicator.rank());
                 RECMILL_ASSIGN_OR_RETURN(Rank first, make());
                 RECMILL_ASSIGN_OR_RETURN(const auto all, read_all(*source_of(first, schedule)));
                 for (size_t b = 0; b < all.size(); ++b) {
                   if (all[b].purpose != Purpose::train) continue;
                   RECMILL_ASSIGN_OR_RETURN(Rank rank, make());
                   carry_over(*first.preprocessor, all[b].dictionaries, *rank.preprocessor);
                   const Json properties{{"iteration", all[b].after.iteration},
                                         {"reader", reader_property(all[b].after)}};
                   RECMILL_ASSIGN_OR_RETURN(const auto start, read_position(properties));
                   EXPECT_EQ(start, all[b].after);
                   RECMILL_ASSIGN_OR_RETURN(const auto rest,
                                            read_all(*source_of(rank, schedule, start)));
                   EXPECT_TRUE(std::equal(all.begin() + static_cast<int64_t>(b) + 1, all.end(),
                                          rest.begin(), rest.end()))
                       << "after batch " << b << " of " << all.size();
                 }
                 return {};
               });
    }
  }
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
      const auto batch = window.take();
      if (batch == nullptr) return false;
      EXPECT_EQ(*batch->plan, (StepPlan{left, left / 2})) << to_string(*batch->plan);
      EXPECT_EQ(batch->before.iteration, left / 2);
      ++left;
      return true;
    };
    // Of two batches one is trained and one evaluated: each is a step.
    for (int64_t i = 0; i < kBatches; ++i) {
      window.add(batch_of(i % 2 == 0 ? Purpose::train : Purpose::evaluate, i / 2));
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
  window.add(batch_of(Purpose::serve, 3));
  window.add(batch_of(Purpose::train, 3));
  EXPECT_EQ(window.take()->plan, nullptr);
  EXPECT_EQ(*window.take()->plan, (StepPlan{0, 3}));
}

TEST(DataStage, hands_out_the_source_s_batches_prepared_by_their_plans_however_far_it_looks_ahead) {
  const RunOptions options = options_of(2, 1.0, true);
  on_ranks(options, 1, [](const ResolvedRun& run, Communicator&, const auto& make) -> Status {
    RECMILL_ASSIGN_OR_RETURN(Rank first, make());
    RECMILL_ASSIGN_OR_RETURN(const auto all, read_all(*source_of(first, run.schedule(0))));
    for (const int64_t ahead : {0, 1, 7, 200}) {
      for (const size_t queue : {1, 4}) {
        RECMILL_ASSIGN_OR_RETURN(Rank rank, make());
        store::testing::PlannedStore store(std::move(rank.store));
        DataStage stage(source_of(rank, run.schedule(0)), BatchWindow(ahead), store,
                        rank.trainer.get(), queue);
        std::vector<Seen> handed_out;
        while (true) {
          RECMILL_ASSIGN_OR_RETURN(auto batch, stage.next());
          if (batch == nullptr) break;
          EXPECT_NE(batch->prepared, nullptr);
          handed_out.push_back(seen(*batch));
          stage.recycle(std::move(batch));
        }
        EXPECT_TRUE(handed_out == all) << ahead << " ahead, queue of " << queue;
        EXPECT_EQ(store.steps(), static_cast<int64_t>(all.size()));
      }
    }
    return {};
  });
}

TEST(DataStage, neither_prepares_nor_sends_requests) {
  on_ranks(options_of(0, 1.0, false), 1,
           [](const ResolvedRun& run, Communicator&, const auto& make) -> Status {
             RECMILL_ASSIGN_OR_RETURN(Rank rank, make());
             BatchSchedule schedule = run.schedule(0);
             schedule.epochs = 0;
             schedule.serves = true;
             DataStage stage(source_of(rank, schedule, {1, 0, 0}), BatchWindow(0), *rank.store,
                             rank.trainer.get(), 1);
             for (const int64_t samples : {4, 4, 2}) {
               RECMILL_ASSIGN_OR_RETURN(const auto batch, stage.next());
               EXPECT_EQ(batch->purpose, Purpose::serve);
               EXPECT_EQ(batch->cut.samples, samples);
               EXPECT_EQ(batch->prepared, nullptr);
             }
             RECMILL_ASSIGN_OR_RETURN(const auto end, stage.next());
             EXPECT_EQ(end, nullptr);
             return {};
           });
}

/// Two batches of another source, then an error.
class FailingSource final : public BatchSource {
 public:
  explicit FailingSource(std::unique_ptr<BatchSource> inner) : inner_(std::move(inner)) {}
  Result<bool> next(RankBatch& batch) override {
    return given_++ < 2 ? inner_->next(batch) : Status::Failed("the data has gone");
  }

 private:
  const std::unique_ptr<BatchSource> inner_;
  int given_ = 0;
};

TEST(DataStage, tells_an_error_behind_the_batches_that_came_before_it) {
  on_ranks(options_of(0, 1.0, true), 1,
           [](const ResolvedRun& run, Communicator&, const auto& make) -> Status {
             for (const int64_t ahead : {0, 1, 7}) {
               RECMILL_ASSIGN_OR_RETURN(Rank rank, make());
               DataStage stage(std::make_unique<FailingSource>(source_of(rank, run.schedule(0))),
                               BatchWindow(ahead), *rank.store, nullptr, 1);
               for (const int64_t iteration : {0, 1}) {
                 RECMILL_ASSIGN_OR_RETURN(auto batch, stage.next());
                 EXPECT_EQ(batch->before.iteration, iteration);
                 stage.recycle(std::move(batch));
               }
               EXPECT_EQ(stage.next().status().message(), "the data has gone");
             }
             return {};
           });
}

TEST(DataStage, may_end_before_its_stream_does) {
  on_ranks(options_of(0, 1.0, true), 1,
           [](const ResolvedRun& run, Communicator&, const auto& make) -> Status {
             for (const int64_t ahead : {0, 2}) {
               RECMILL_ASSIGN_OR_RETURN(Rank rank, make());
               DataStage stage(source_of(rank, run.schedule(0)), BatchWindow(ahead), *rank.store,
                               nullptr, 1);
               RECMILL_RETURN_IF_ERROR(stage.next().status());
             }
             return {};
           });
}

}  // namespace
}  // namespace recmill::train
