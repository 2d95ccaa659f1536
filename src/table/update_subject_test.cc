// SPDX-License-Identifier: Apache-2.0
#include "table/update_subject.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "kernels/testing/random_bags.h"

namespace recmill::table {
namespace {

using kernels::RowUpdateTemplate;
using kernels::Schedule;
using kernels::tune::FamilyTimes;
using kernels::tune::FusedParameters;
using kernels::tune::TunerOptions;

constexpr int kSlices = 4;

/// Nine tables, of which one is frozen, one is looked up by nobody and two are alike.
struct World {
  ModelSpec model;
  std::vector<EmbeddingTable> tables;
  std::vector<SparseBatch> batches;

  World() {
    using enum OptimizerKind;
    for (const OptimizerKind kind : {sgd, adagrad, rowwise_adagrad, adam, ftrl, adagrad, adagrad})
      add_table(kind, 300, 8);
    add_table(rowwise_adagrad, 2000, 16);
    add_table(adagrad, 300, 8);
    model.tables[5].frozen = true;
    model.tables[0].optimizer.learning_rate = 1e-6;
    for (int t : {0, 1, 2, 3, 4, 5, 7, 8}) add_feature(t, Pooling::sum);
    add_feature(7, Pooling::none);
    ThreadPool pool(1);
    for (const TableSpec& spec : model.tables)
      tables.push_back(*EmbeddingTable::create(spec, 42, RowShare(spec.rows, 0, 1), pool));
    for (const int64_t samples : {40, 3, 0, 64}) {
      batches.emplace_back();
      batches.back().samples = samples;
      for (size_t f = 0; f < model.features.size(); ++f) {
        const uint64_t seed = f == 7 ? 1 : f;  // tables 1 and 8 have the same lookups
        batches.back().features.push_back(
            kernels::random_bags({samples, 20, tables[model.features[f].table].spec().rows}, seed));
      }
    }
  }
  void add_table(OptimizerKind kind, int64_t rows, int64_t dim) {
    TableSpec spec;
    spec.name = "t" + std::to_string(model.tables.size());
    spec.rows = rows;
    spec.dim = dim;
    spec.optimizer.kind = kind;
    model.tables.push_back(spec);
  }
  void add_feature(int table, Pooling pooling) {
    model.features.emplace_back();
    model.features.back().table = table;
    model.features.back().pooling = pooling;
  }
  std::unique_ptr<UpdateSubject> subject(
      std::span<const RowUpdateTemplate> templates = kernels::row_update_templates()) {
    UpdateSubjectOptions options;
    options.threads = 2;
    options.slices = kSlices;
    options.templates = templates;
    auto made = UpdateSubject::make(model, tables, batches, options);
    EXPECT_TRUE(made.ok());
    return *std::move(made);
  }
  /// Weights and state of everything.
  std::vector<float> contents() const {
    std::vector<float> all;
    for (const EmbeddingTable& table : tables) {
      const auto slots = table.share().slots();
      std::vector<float> weights(slots * table.spec().dim);
      std::vector<std::vector<float>> columns;
      columns.reserve(table.state().size());
      std::vector<std::span<float>> views;
      for (const StateColumn& column : table.state()) columns.emplace_back(slots * column.width);
      views.reserve(columns.size());
      for (auto& column : columns) views.emplace_back(column);
      table.read(0, slots, weights, views);
      all.insert(all.end(), weights.begin(), weights.end());
      for (const auto& column : columns) all.insert(all.end(), column.begin(), column.end());
    }
    return all;
  }
};

constexpr FusedParameters kValue{1 << 12, 1 << 20};

TEST(UpdateSubject, has_a_class_for_tables_that_are_alike_and_none_for_frozen_or_unused_ones) {
  World world;
  const auto subject = world.subject();
  std::vector<std::pair<std::string, std::vector<int64_t>>> classes;
  for (const auto& of : subject->work().classes) classes.emplace_back(of.kind, of.features);
  const decltype(classes) expected{
      {"sgd", {0}},  {"adagrad", {1, 8}}, {"rowwise_adagrad", {2}},
      {"adam", {3}}, {"ftrl", {4}},       {"rowwise_adagrad sum+none", {7}}};
  EXPECT_EQ(classes, expected);
  EXPECT_EQ(subject->work().classes[5].shape.rows, 2000);
  // Lookups of a sample by both features.
  const auto& two = world.batches[3].features;
  EXPECT_EQ(subject->work().lookups[3][7], double(two[6].rows.size() + two[8].rows.size()));
}

TEST(UpdateSubject, keeps_the_batches_that_it_is_told_and_its_classes) {
  World world;
  const auto all = world.subject(), subject = world.subject();
  ASSERT_GE(all->work().batches(), 4);
  const std::vector<int64_t> kept{3, 1};
  subject->keep_batches(kept);
  ASSERT_EQ(subject->work().batches(), 2);
  EXPECT_EQ(subject->work().classes, all->work().classes);
  for (int64_t batch = 0; batch < 2; ++batch) {
    EXPECT_EQ(subject->work().samples[batch], all->work().samples[kept[batch]]);
    for (const auto& of : subject->work().classes)
      EXPECT_EQ(subject->work().lookups[batch][of.features[0]],
                all->work().lookups[kept[batch]][of.features[0]]);
  }
  for (size_t c = 0; c < subject->work().classes.size(); ++c) {
    for (const auto& [schedule, order] : subject->candidates(c, kValue))
      EXPECT_TRUE(subject->check(c, schedule, kValue).ok()) << schedule.name();
  }
}

TEST(UpdateSubject, finds_every_template_right_for_every_optimizer_and_leaves_tables_alone) {
  World world;
  const auto before = world.contents();
  const auto subject = world.subject();
  size_t checked = 0;
  for (size_t c = 0; c < subject->work().classes.size(); ++c) {
    for (const auto& [schedule, order] : subject->candidates(c, kValue)) {
      const Status status = subject->check(c, schedule, kValue);
      EXPECT_TRUE(status.ok()) << status.message();
      ++checked;
    }
  }
  EXPECT_EQ(checked, 6u * 21);
  EXPECT_EQ(world.contents(), before);
}

/// Sums as a right template does, but for one thing.
class WrongSums final : public kernels::RowSums {
 public:
  enum class Fault { moves_a_lookup, forgets_a_row, adds_a_row, last_bit };
  explicit WrongSums(Fault fault)
      : fault_(fault), right_(kernels::row_update_templates()[2].make_sums()) {}
  void fold(const kernels::TableBags& bags, kernels::ParameterValues) override {
    dim_ = bags.dim;
    features_.assign(bags.features.begin(), bags.features.end());
    if (fault_ == Fault::moves_a_lookup) {
      // The last of the first bag that has two, to the row of the first.
      kernels::BagGradients& of = features_[0];
      offsets_.assign(of.bags.offsets, of.bags.offsets + of.bags.samples + 1);
      for (size_t i = 0; i + 1 < offsets_.size(); ++i) {
        if (offsets_[i + 1] - offsets_[i] < 2) continue;
        rows_.assign(of.bags.rows, of.bags.rows + offsets_.back());
        rows_[offsets_[i + 1] - 1] = rows_[offsets_[i]];
        of.bags.rows = rows_.data();
        break;
      }
    }
    right_->fold({features_, bags.rows, bags.dim, bags.slices}, std::vector<int64_t>{0});
    listed_.assign(right_->rows().begin(), right_->rows().end());
    if (fault_ == Fault::forgets_a_row) listed_.pop_back();
    if (fault_ == Fault::adds_a_row) listed_.push_back(listed_[0]);
  }
  std::span<const int64_t> rows() const override { return listed_; }
  void take(int64_t first, int64_t count, float* out) override {
    const auto all = static_cast<int64_t>(right_->rows().size());
    const int64_t there = std::min(count, all - first);
    right_->take(first, there, out);
    std::fill(out + there * dim_, out + count * dim_, 1.0f);
    if (fault_ == Fault::last_bit && first == 0) out[dim_ - 1] *= 1.0f + 0x1p-23f;
  }

 private:
  const Fault fault_;
  std::unique_ptr<kernels::RowSums> right_;
  std::vector<kernels::BagGradients> features_;
  std::vector<int64_t> offsets_, rows_, listed_;
  int64_t dim_ = 0;
};

std::vector<RowUpdateTemplate> with_wrong_ones() {
  std::vector<RowUpdateTemplate> all(kernels::row_update_templates().begin(),
                                     kernels::row_update_templates().end());
  const std::pair<const char*, WrongSums::Fault> faults[] = {
      {"moves_a_lookup", WrongSums::Fault::moves_a_lookup},
      {"forgets_a_row", WrongSums::Fault::forgets_a_row},
      {"adds_a_row", WrongSums::Fault::adds_a_row},
      {"last_bit", WrongSums::Fault::last_bit}};
  for (const auto& [name, fault] : faults) {
    RowUpdateTemplate wrong;
    wrong.spec.name = name;
    wrong.spec.valid = [](const auto&, auto, const auto&) { return true; };
    wrong.make_sums = [fault = fault] { return std::make_unique<WrongSums>(fault); };
    all.push_back(wrong);
  }
  return all;
}

TEST(UpdateSubject, refuses_a_wrong_template_by_name_and_puts_the_table_back) {
  World world;
  const auto before = world.contents();
  const auto templates = with_wrong_ones();
  const auto subject = world.subject(templates);
  for (size_t c = 0; c < subject->work().classes.size(); ++c) {
    SCOPED_TRACE(subject->work().classes[c].kind);
    for (const char* name : {"moves_a_lookup", "last_bit"}) {
      const std::string message = subject->check(c, {name, {}}, kValue).message();
      EXPECT_EQ(message.find("schedule '" + std::string(name) + "' is refused: its "), 0u)
          << message;
    }
    for (const char* name : {"forgets_a_row", "adds_a_row"})
      EXPECT_EQ(subject->check(c, {name, {}}, kValue).message(),
                "schedule '" + std::string(name) +
                    "' is refused: its rows are not those that lookups name");
  }
  EXPECT_EQ(world.contents(), before);
}

TEST(UpdateSubject, is_tuned_to_a_right_schedule_for_every_class) {
  World world;
  const auto templates = with_wrong_ones();
  const auto subject = world.subject(templates);
  const TunerOptions options{.values = {kValue, {1 << 16, 1 << 20}}, .rounds = 4};
  const SteadyClock clock;
  ThreadPool pool(2);
  const std::atomic<bool> stop{false};
  const auto times = kernels::tune::measure(
      *subject, options, {}, clock, pool, [](const FamilyTimes&) { return Status{}; },
      [](const kernels::tune::TunerProgress&) {}, stop);
  ASSERT_TRUE(times.ok()) << times.status().message();
  EXPECT_EQ(times->family, "row_update");
  const auto choice = choose(*times);
  ASSERT_TRUE(choice.ok());
  for (const auto& chosen : choice->schedules)
    EXPECT_TRUE(kernels::row_update_kernel(chosen.schedule).ok()) << chosen.schedule.name();
  EXPECT_GT(*measure_fused(*subject, *choice, 2, clock, pool), 0.0);
  EXPECT_GT(*measure_fused(*subject, {}, 2, clock, pool), 0.0);
}

// However it was tuned: what a batch does to the tables is the reference's doing.
TEST(UpdateSubject, updates_all_tables_fused_as_the_default_does) {
  std::vector<std::vector<float>> ends;
  for (const bool tuned : {false, true}) {
    World world;
    const auto subject = world.subject();
    kernels::tune::Choice choice;
    if (tuned) {
      choice.value = kValue;
      for (size_t c = 0; c < subject->work().classes.size(); ++c) {
        const auto all = subject->candidates(c, kValue);
        choice.schedules.push_back({all[c * 5 % all.size()].schedule, 0.0, 0.0});
      }
    }
    const auto fused = subject->fuse(choice);
    ASSERT_TRUE(fused.ok());
    ThreadPool pool(2);
    for (int64_t batch = 0; batch < subject->work().batches(); ++batch) (*fused)(batch, pool);
    ends.push_back(world.contents());
  }
  EXPECT_EQ(std::memcmp(ends[0].data(), ends[1].data(), ends[0].size() * sizeof(float)), 0);
}

}  // namespace
}  // namespace recmill::table
