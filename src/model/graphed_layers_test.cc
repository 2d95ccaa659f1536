// SPDX-License-Identifier: Apache-2.0
// Which batches are launched as graphs, and that these do what enqueuing does: of layers that are
// copies.
#include "model/graphed_layers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "device/gpu/testing/test_gpu.h"

namespace recmill::model {
namespace {

constexpr int64_t kMost = 64;  // samples

/// Of batches; there are two places for their gradients.
struct Memory {
  GpuBuffer pooled, logits, totals, logit_gradient, gradient, other_gradient;

  std::vector<GpuBuffer*> all() {
    return {&pooled, &logits, &totals, &logit_gradient, &gradient, &other_gradient};
  }
  GpuBuffer& of(const float* address) {
    const auto buffers = all();
    return **std::ranges::find(buffers, address, &GpuBuffer::address<const float>);
  }
};

/// Logits are what is pooled, its gradients those of the logits.
struct Copies final : GpuLayers {
  explicit Copies(Memory& of) : memory(of) {}

  const Model& model() const override { RECMILL_CHECK(false); }
  const EmbeddingLayout& layout() const override { RECMILL_CHECK(false); }
  int64_t totals_size() const override { return totals; }
  bool is_repeatable(bool training) const override { return !training || repeatable; }
  int64_t memory_version() const override { return version; }
  Status forward(const GpuLayersInput& input, float* logits, float*, GpuStream& stream) override {
    if (fails) return Status::Failed("it fails");
    ++enqueued;
    samples = input.samples;
    return stream.copy(memory.of(logits), memory.of(input.pooled), samples * sizeof(float));
  }
  Status backward(const float* logit_gradient, const GpuLayersGradient& gradient,
                  GpuStream& stream) override {
    return stream.copy(memory.of(gradient.pooled), memory.of(logit_gradient),
                       samples * sizeof(float));
  }

  Memory& memory;
  int64_t samples = 0, totals = 0, version = 0;
  int64_t enqueued = 0;  // batches, also to be captured
  bool repeatable = true, fails = false;
};

class GraphedLayersTest : public ::testing::Test {
 protected:
  GraphedLayersTest() {
    for (GpuBuffer* const buffer : memory_.all())
      *buffer = *gpu_.allocate(kMost * sizeof(float), "of a test");
    auto copies = std::make_unique<Copies>(memory_);
    copies_ = copies.get();
    graphs_ = std::make_unique<GraphedLayers>(std::move(copies));
  }

  void write(GpuBuffer& to, float value) {
    std::ranges::fill(host_.as<float>(), value);
    ASSERT_TRUE(stream_.to_device(to, host_, to.size()).ok());
    ASSERT_TRUE(stream_.synchronize().ok());
  }
  void expect(const GpuBuffer& of, float value, int64_t samples) {
    ASSERT_TRUE(stream_.to_host(host_, of, of.size()).ok());
    ASSERT_TRUE(stream_.synchronize().ok());
    for (int64_t i = 0; i < kMost; ++i) ASSERT_EQ(host_.as<float>()[i], i < samples ? value : 0.0f);
  }
  GpuLayersInput input(int64_t samples, bool training) const {
    return {.samples = samples, .training = training, .pooled = memory_.pooled.address<float>()};
  }
  Status forward(const GpuLayersInput& of) {
    return graphs_->forward(of, memory_.logits.address<float>(), memory_.totals.address<float>(),
                            stream_);
  }

  /// Trains a batch, each with values of its own. Whether it was launched as graphs.
  bool train(int64_t samples, GpuBuffer Memory::*to = &Memory::gradient) {
    for (GpuBuffer* const buffer : memory_.all()) write(*buffer, 0.0f);
    const float value = ++value_;
    write(memory_.pooled, value);
    write(memory_.logit_gradient, -value);
    const int64_t before = graphs_->launched();
    EXPECT_TRUE(forward(input(samples, true)).ok());
    EXPECT_TRUE(graphs_
                    ->backward(memory_.logit_gradient.address<float>(),
                               {.pooled = (memory_.*to).template address<float>()}, stream_)
                    .ok());
    expect(memory_.logits, value, samples);
    for (GpuBuffer* const place : {&memory_.gradient, &memory_.other_gradient})
      expect(*place, -value, place == &(memory_.*to) ? samples : 0);
    return graphs_->launched() > before;
  }
  bool evaluate(int64_t samples) {
    write(memory_.logits, 0.0f);
    write(memory_.pooled, ++value_);
    const int64_t before = graphs_->launched();
    EXPECT_TRUE(forward(input(samples, false)).ok());
    expect(memory_.logits, value_, samples);
    return graphs_->launched() > before;
  }

  Gpu gpu_{recmill::testing::test_driver(), {}};
  GpuStream stream_ = *gpu_.open_stream();
  PinnedBuffer host_ = *gpu_.allocate_pinned(kMost * sizeof(float), "of a test");
  Memory memory_;
  Copies* copies_;
  std::unique_ptr<GraphedLayers> graphs_;
  float value_ = 0.0f;
};

TEST_F(GraphedLayersTest, LaunchesWhatWasThereTwiceBefore) {
  for (const bool launched : {false, false, true, true, true}) EXPECT_EQ(train(40), launched);
  EXPECT_EQ(copies_->enqueued, 3) << "captured once";
  for (const bool launched : {false, false, true}) EXPECT_EQ(train(30), launched);
  for (const bool launched : {false, false, true}) EXPECT_EQ(evaluate(40), launched);
  EXPECT_TRUE(train(40));
  EXPECT_TRUE(train(30));
  EXPECT_EQ(copies_->enqueued, 9);
  EXPECT_EQ(graphs_->launched(), 7);
}

TEST_F(GraphedLayersTest, EnqueuesAgainWhereGradientsHaveMoved) {
  for (const bool launched : {false, false, true, true}) EXPECT_EQ(train(40), launched);
  EXPECT_EQ(copies_->enqueued, 3);
  EXPECT_TRUE(train(40, &Memory::other_gradient)) << "its forward pass";
  EXPECT_EQ(copies_->enqueued, 4);
  for (const bool launched : {false, false, true, true})
    EXPECT_EQ(train(40, &Memory::other_gradient), launched);
  EXPECT_EQ(copies_->enqueued, 7);
}

TEST_F(GraphedLayersTest, ForgetsWhereMemoryIsNoMore) {
  for (const bool launched : {false, false, true}) EXPECT_EQ(train(40), launched);
  ++copies_->version;
  for (const bool launched : {false, false, true}) EXPECT_EQ(train(40), launched);
}

TEST_F(GraphedLayersTest, KeepsTheLastSixteen) {
  for (int64_t samples = 1; samples <= 17; ++samples)
    for (const bool launched : {false, false, true}) EXPECT_EQ(train(samples), launched);
  EXPECT_TRUE(train(2));  // the last, so that the next to go is 3
  for (const bool launched : {false, false, true}) EXPECT_EQ(train(1), launched);
  EXPECT_TRUE(train(2));
  EXPECT_FALSE(train(3));
}

TEST_F(GraphedLayersTest, EnqueuesWhatNoGraphCanHave) {
  copies_->repeatable = false;
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(train(40)) << "other each time";
  for (const bool launched : {false, false, true}) EXPECT_EQ(evaluate(40), launched);
  copies_->repeatable = true;
  copies_->totals = 3;
  GpuLayersInput of = input(40, true);
  of.add_over_ranks = [](float*, int64_t, GpuStream&) { return Status(); };
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(forward(of).ok());
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(train(0));
  EXPECT_EQ(graphs_->launched(), 1);
}

TEST_F(GraphedLayersTest, FailsAsTheLayersAndCapturesLater) {
  for (const bool launched : {false, false}) EXPECT_EQ(train(40), launched);
  copies_->fails = true;
  EXPECT_EQ(forward(input(40, true)).message(), "it fails");
  copies_->fails = false;
  EXPECT_TRUE(train(40));
}

}  // namespace
}  // namespace recmill::model
