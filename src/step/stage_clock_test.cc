// SPDX-License-Identifier: Apache-2.0
#include "step/stage_clock.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "device/thread_pool.h"
#include "step/stage_gate.h"

namespace recmill::train {
namespace {

/// Says what its owner wants to have been sent, received and waited for.
class Counted final : public Communicator {
 public:
  int rank() const override { return 0; }
  int ranks() const override { return 2; }
  Result<Received> all_to_all(std::span<const std::span<const std::byte>>) override {
    return Received();
  }
  Result<Received> all_gather(std::span<const std::byte>) override { return Received(); }
  Status broadcast(std::span<std::byte>, int) override { return {}; }
  Status barrier() override { return {}; }
  Result<std::unique_ptr<Exchange>> exchange(size_t) override { return Status::Failed("none"); }
  bool shares_memory() const override { return false; }
  Result<std::unique_ptr<Window>> window(size_t) override { return Status::Failed("none"); }
  Result<std::unique_ptr<Communicator>> duplicate() override { return Status::Failed("none"); }
  void abort(const Status&) override {}
  Status failure() override { return {}; }
  Traffic traffic() const override { return now; }

  Traffic now;
};

void step(StageClock& clock) {
  for (const Stage stage : {Stage::lookup, Stage::dense_layers, Stage::data}) clock.enter(stage);
}

TEST(StageClock, gives_each_stage_its_own_traffic_and_all_of_the_time) {
  Counted communicator;
  communicator.now = {1.0, 10, 20};
  StageClock clock(communicator);
  step(clock);  // the first, which is no steady one
  EXPECT_EQ(clock.report()["steps"], 0);
  clock.enter(Stage::lookup);
  communicator.now = {1.5, 110, 220};
  clock.enter(Stage::dense_layers);
  clock.enter(Stage::lookup);
  communicator.now = {1.75, 111, 222};
  clock.enter(Stage::data);
  const Traffic lookup = clock.figures(Stage::lookup).traffic;
  EXPECT_EQ(lookup.seconds, 0.75);
  EXPECT_EQ(lookup.sent, 101u);
  EXPECT_EQ(lookup.received, 202u);
  EXPECT_EQ(clock.figures(Stage::dense_layers).traffic.sent, 0u);
  const Json report = clock.report();
  double seconds = 0.0;
  for (const Json& stage : report["stages"]) seconds += stage["seconds"].get<double>();
  EXPECT_NEAR(seconds, report["seconds"].get<double>(), 1e-9);
  EXPECT_EQ(report["steps"], 1);
  EXPECT_EQ(report["spans"].size(), 4u);
  EXPECT_EQ(report["spans"][1][0], "lookup");
  EXPECT_EQ(report["spans"][1][2], report["spans"][2][1]);
}

TEST(StageClock, counts_what_went_on_beside_for_the_stage_that_waits_for_it) {
  Counted communicator;
  StageClock clock(communicator);
  clock.enter(Stage::row_update);
  clock.enter(Stage::dense_gradients);
  clock.add({0.25, 100, 200}, 1.0);
  clock.enter(Stage::dense_update);
  clock.enter(Stage::data);
  const StageClock::Figures& figures = clock.figures(Stage::dense_gradients);
  EXPECT_EQ(figures.traffic.seconds, 0.25);
  EXPECT_EQ(figures.traffic.sent, 100u);
  EXPECT_EQ(figures.traffic.received, 200u);
  EXPECT_EQ(figures.hidden, 0.75);
  EXPECT_EQ(clock.figures(Stage::dense_update).traffic.sent, 0u);
  EXPECT_EQ(clock.report()["stages"]["dense gradients"]["hidden"], 0.75);
}

TEST(StageGate, what_is_held_takes_all_until_it_is_released) {
  Counted communicator;
  StageGate gate(communicator);
  StageClock& clock = gate.clock();
  gate.hold(Stage::evaluation);
  gate.enter(Stage::lookup);
  communicator.now.sent = 5;
  gate.release(Stage::data);
  EXPECT_EQ(clock.figures(Stage::lookup).traffic.sent, 0u);
  EXPECT_EQ(clock.figures(Stage::evaluation).traffic.sent, 5u);
  clock.restart();
  EXPECT_EQ(clock.figures(Stage::evaluation).traffic.sent, 0u);
  EXPECT_TRUE(clock.report()["spans"].empty());
}

/// Notes what it hears.
class Listener final : public StageListener {
 public:
  void enter(Stage stage) override { heard.push_back(stage); }
  std::vector<Stage> heard;
};

TEST(StageGate, tells_every_listener_each_stage_once_in_order) {
  Counted communicator;
  StageGate gate(communicator);
  const auto first = std::make_shared<Listener>(), second = std::make_shared<Listener>();
  gate.add(first);
  gate.enter(Stage::lookup);
  gate.add(second);
  gate.enter(Stage::dense_layers);
  gate.hold(Stage::evaluation);
  gate.enter(Stage::lookup);
  gate.release(Stage::data);
  EXPECT_EQ(first->heard,
            (std::vector{Stage::lookup, Stage::dense_layers, Stage::evaluation, Stage::data}));
  EXPECT_EQ(second->heard, (std::vector{Stage::dense_layers, Stage::evaluation, Stage::data}));
}

// The caller of low rank is held in its first task, so that workers alone begin others.
TEST(StageGate, lets_workers_begin_tasks_of_low_rank_in_waits_of_training_alone) {
  constexpr Stage kStep[] = {Stage::lookup,          Stage::dense_layers, Stage::dense_update,
                             Stage::dense_gradients, Stage::row_update,   Stage::scores,
                             Stage::checkpoint,      Stage::evaluation,   Stage::data};
  for (const int ranks : {1, 2}) {
    Counted communicator;
    StageGate gate(communicator);
    const auto waits = std::make_shared<WaitGate>();
    gate.add(std::make_shared<GateInWaits>(waits, ranks));
    gate.enter(Stage::lookup);
    ThreadPool pool(2);
    std::promise<void> begun, finish;
    std::counting_semaphore<> let_go{0};
    std::thread low([&] {
      const WaitGate::LowRank rank(*waits);
      const auto caller = std::this_thread::get_id();
      pool.run(100, [&, held = std::make_shared<bool>()](int64_t) {
        if (std::this_thread::get_id() != caller) {
          let_go.acquire();
        } else if (!std::exchange(*held, true)) {
          begun.set_value();
          finish.get_future().wait();
        }
      });
    });
    begun.get_future().wait();
    for (int step = 0; step < 3; ++step) {
      for (const Stage stage : kStep) {
        const int64_t before = waits->helped();
        gate.enter(stage);
        if (is_wait(stage, ranks)) {
          while (waits->helped() == before) std::this_thread::yield();
          waits->close();  // as the next stage does
          let_go.release(waits->helped() - before);
        }
        const int64_t after = waits->helped();
        for (int i = 0; i < 50; ++i) pool.run(4, [](int64_t) {});
        EXPECT_EQ(waits->helped(), after);
        EXPECT_EQ(after > before, is_wait(stage, ranks)) << static_cast<int>(stage);
      }
    }
    finish.set_value();
    low.join();
  }
}

TEST(StageClock, keeps_the_last_steps_that_nothing_disturbed) {
  Counted communicator;
  StageClock clock(communicator);
  for (int i = 0; i < 100; ++i) step(clock);
  EXPECT_EQ(clock.report()["steps"], 12);
  EXPECT_EQ(clock.report()["spans"].size(), 36u);
  const Json before = clock.report()["spans"];
  clock.enter(Stage::lookup);
  clock.enter(Stage::dense_layers);
  clock.disturb();
  clock.enter(Stage::data);
  clock.enter(Stage::evaluation);
  clock.enter(Stage::data);
  for (int i = 0; i < 11; ++i) step(clock);  // fewer than are kept
  EXPECT_EQ(clock.report()["spans"], before);
  step(clock);
  EXPECT_EQ(clock.report()["steps"], 12);
  EXPECT_GT(clock.report()["spans"][0][1], before[35][2]);
  EXPECT_EQ(clock.report()["spans"][35][2], clock.report()["seconds"]);
}

}  // namespace
}  // namespace recmill::train
