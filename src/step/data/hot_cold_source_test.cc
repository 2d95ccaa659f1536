// SPDX-License-Identifier: Apache-2.0
#include "step/data/hot_cold_source.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>
#include <set>
#include <string>
#include <tuple>

#include "base/json/json.h"
#include "base/random.h"
#include "step/data/schedule_keeper.h"
#include "step/data/testing/small_data.h"

namespace recmill::train {
namespace {

using hotset::BatchKind;
using store::Purpose;

constexpr int64_t kCold = 430, kHot = 1210, kEvaluationRows = 25;

BatchSchedule schedule_of(int64_t evaluate_every) {
  return {.batch_size = 16,
          .eval_batch_size = 10,
          .epochs = 3,
          .evaluate_every = evaluate_every,
          .seed = 7,
          .slices = 4,
          .dictionaries_grow = false};
}

/// What there is to see of a batch.
struct Seen {
  std::string kind;  // cold, hot, judges, evaluates
  StreamPosition before, after;
  int64_t samples = 0;
  bool last_of_pass = false, ends_training = false;
  std::vector<float> dense;
  std::vector<int64_t> rows;
  ScheduleProgress progress = {};  // of training, when it is through with the batch
  bool operator==(const Seen&) const = default;
};

/// One rank's data path with training behind it, whose losses follow from the schedule's number.
class Training {
 public:
  Training(const BatchSchedule& schedule, const HotColdRules& rules,
           const StreamPosition& start = {}, const std::optional<ScheduleProgress>& progress = {}) {
    rows_ = *HotColdRows::open(std::make_unique<SmallReader>(kCold),
                               std::make_unique<SmallReader>(kHot));
    const ScheduleProgress from = progress.value_or(ScheduleProgress{rules.policy.first(), {}});
    const auto losses = std::make_shared<ScheduleLosses>();
    keeper_.emplace(rows_->batches(schedule.batch_size), rules.policy,
                    place_of(start, from.state, *rows_, schedule.batch_size), from.begun, losses);
    source_.emplace(schedule, *rows_, &evaluation_, preprocessor_, rules, start, from.state,
                    losses);
  }

  /// `eager`: each batch is trained before the next is asked for; else when the source waits.
  std::vector<Seen> run(bool eager) {
    std::deque<Seen> handed_out;
    const auto train_all = [&] {
      for (; !handed_out.empty(); handed_out.pop_front()) train(handed_out.front());
    };
    while (true) {
      if (source_->waits()) ++waits_;
      if (eager || source_->waits()) train_all();
      RankBatch batch;
      const auto there = source_->next(batch);
      EXPECT_TRUE(there.ok()) << there.status().message();
      if (!there.ok() || !*there) break;
      handed_out.push_back(seen(batch));
    }
    train_all();
    return trained_;
  }
  int64_t waits() const { return waits_; }

 private:
  static Seen seen(const RankBatch& batch) {
    const char* const kind = batch.judges                      ? "judges"
                             : batch.purpose != Purpose::train ? "evaluates"
                             : *batch.kind == BatchKind::hot   ? "hot"
                                                               : "cold";
    return {kind,
            batch.before,
            batch.after,
            batch.cut.samples,
            batch.last_of_pass,
            batch.ends_training,
            batch.dense.values,
            batch.sparse.features[0].rows};
  }

  void train(Seen batch) {
    RankBatch as_trained;
    as_trained.before = batch.before;
    as_trained.after = batch.after;
    as_trained.last_of_pass = batch.last_of_pass;
    if (batch.kind == "hot") as_trained.kind = BatchKind::hot;
    if (batch.kind == "cold") as_trained.kind = BatchKind::cold;
    if (as_trained.kind) keeper_->trained(as_trained);
    if (batch.kind == "judges") {
      const int64_t schedule = keeper_->progress().state.schedule;
      const double loss =
          0.3 +
          0.1 * Random(1, recmill::Purpose::test, 0).uniform64(static_cast<uint64_t>(schedule));
      const double logit = -std::log(std::expm1(loss));
      const float label = 1.0f;
      const metrics::ScoredSamples one{std::span(&logit, 1), std::span(&label, 1), {}, {}};
      EXPECT_TRUE(keeper_->scored(as_trained, one).ok());
    }
    batch.progress = keeper_->progress();
    trained_.push_back(std::move(batch));
  }

  SmallReader evaluation_{kEvaluationRows};
  SmallPreprocessor preprocessor_{false};
  std::unique_ptr<HotColdRows> rows_;
  std::optional<ScheduleKeeper> keeper_;
  std::optional<HotColdSource> source_;
  std::vector<Seen> trained_;
  int64_t waits_ = 0;
};

HotColdRules adapting(bool hot_first = false) {
  HotColdRules rules;
  rules.policy.hot_first = hot_first;
  rules.judged_rows = 15;
  return rules;
}

TEST(HotColdSource, hands_out_the_same_whenever_training_follows) {
  for (const bool hot_first : {false, true}) {
    for (const int64_t every : {0, 7}) {
      Training eager(schedule_of(every), adapting(hot_first)),
          late(schedule_of(every), adapting(hot_first));
      const auto all = eager.run(true);
      EXPECT_TRUE(late.run(false) == all);
      EXPECT_GT(all.size(), 3 * (27 + 76));
      EXPECT_GT(late.waits(), 3);
    }
  }
}

TEST(HotColdSource, has_each_input_once_an_epoch_and_judges_behind_each_schedule) {
  Training training(schedule_of(0), adapting());
  const auto all = training.run(false);
  int64_t judged = 0;
  std::vector<std::multiset<std::tuple<std::string, float>>> epochs(3);
  for (size_t b = 0; b < all.size(); ++b) {
    if (all[b].kind == "judges") {
      EXPECT_EQ(all[b].samples, all[b].last_of_pass ? 5 : 10);
      judged += all[b].last_of_pass;
      EXPECT_EQ(all[b + 1].kind == "judges", !all[b].last_of_pass);
      continue;
    }
    if (all[b].kind == "evaluates") continue;
    for (const float value : all[b].dense)
      epochs[static_cast<size_t>(all[b].before.epoch)].emplace(all[b].kind, value);
  }
  for (const auto& epoch : epochs) {
    EXPECT_EQ(epoch.size(), static_cast<size_t>(kCold + kHot));
    EXPECT_EQ(std::set(epoch.begin(), epoch.end()).size(), epoch.size());
  }
  std::set<int64_t> schedules;  // with batches
  for (const Seen& batch : all) schedules.insert(batch.progress.state.schedule);
  EXPECT_EQ(judged, std::ssize(schedules));
  EXPECT_TRUE(all.back().ends_training);
  EXPECT_EQ(all.back().kind, "evaluates");  // behind the judgement
}

TEST(HotColdSource, goes_on_from_each_of_its_batches) {
  const auto all = Training(schedule_of(7), adapting()).run(true);
  for (size_t b = 0; b < all.size(); ++b) {
    const bool trains = all[b].kind == "hot" || all[b].kind == "cold";
    const bool has_judged = all[b].kind == "judges" && all[b].last_of_pass;
    if (!trains && !has_judged) continue;
    Json properties{{"iteration", all[b].after.iteration},
                    {"reader", reader_property(all[b].after)}};
    const auto start = read_position(properties);
    ASSERT_TRUE(start.ok()) << start.status().message();
    EXPECT_EQ(*start, all[b].after);
    const auto progress = schedule_progress_from(Json::parse(to_json(all[b].progress).dump()));
    ASSERT_TRUE(progress.ok()) << progress.status().message();
    EXPECT_EQ(*progress, all[b].progress);
    const auto rest = Training(schedule_of(7), adapting(), *start, *progress).run(b % 2 == 0);
    ASSERT_TRUE(
        std::equal(all.begin() + static_cast<int64_t>(b) + 1, all.end(), rest.begin(), rest.end()))
        << "after batch " << b << " of " << all.size();
  }
}

TEST(HotColdSource, hands_ranks_their_own_samples) {
  const auto all = Training(schedule_of(7), adapting()).run(true);
  BatchSchedule schedule = schedule_of(7);
  schedule.ranks = 2;
  std::vector<Seen> of_rank[2];
  for (schedule.rank = 0; schedule.rank < 2; ++schedule.rank)
    of_rank[schedule.rank] = Training(schedule, adapting()).run(false);
  for (size_t b = 0; b < all.size(); ++b) {
    auto rows = of_rank[0].at(b).rows;
    rows.insert(rows.end(), of_rank[1].at(b).rows.begin(), of_rank[1].at(b).rows.end());
    EXPECT_EQ(rows, all[b].rows) << b;
    EXPECT_EQ(of_rank[1][b].progress, all[b].progress) << b;
  }
}

TEST(HotColdSource, ends_with_an_error_where_repeated_schedules_end_before) {
  HotColdRules rules = adapting();
  rules.policy.repeated = {{0, *hotset::Percent::of(30)}, {1, *hotset::Percent::of(20)}};
  rules.repeats_from = "runs/a/schedule.jsonl";
  auto rows =
      *HotColdRows::open(std::make_unique<SmallReader>(kCold), std::make_unique<SmallReader>(kHot));
  SmallPreprocessor preprocessor(false);
  HotColdSource source(schedule_of(0), *rows, nullptr, preprocessor, rules, {},
                       rules.policy.first(), std::make_shared<ScheduleLosses>());
  RankBatch batch;
  Result<bool> there = true;
  int64_t batches = 0;
  for (; there.ok() && *there; there = source.next(batch)) ++batches;
  EXPECT_EQ(batches - 1, 14 + 38);  // half of 27 and of 76
  EXPECT_EQ(there.status().message(),
            "hotset.replay: runs/a/schedule.jsonl ends with schedule 1, and training goes on");
}

TEST(ScheduleKeeper, refuses_a_loss_that_is_no_number) {
  const HotColdRules rules = adapting();
  ScheduleKeeper keeper({10, 10}, rules.policy, {rules.policy.first(), {}}, {},
                        std::make_shared<ScheduleLosses>());
  RankBatch batch;
  batch.last_of_pass = true;
  const double logit = -std::numeric_limits<double>::infinity();
  const float label = 1.0f;
  const auto scored = keeper.scored(batch, {std::span(&logit, 1), std::span(&label, 1), {}, {}});
  EXPECT_EQ(
      scored.status().message(),
      "hotset.rate: the evaluation after schedule 0 has no loss that is a number, and the rate "
      "follows it; fix the rate, or lower the learning rate");
}

}  // namespace
}  // namespace recmill::train
