// SPDX-License-Identifier: Apache-2.0
// Records of rows on a GPU, copied as the CPU copies them.
#include "kernels/row_copy/gpu_record_copier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <random>

#include "kernels/codegen/testing/test_code.h"

namespace recmill::kernels {
namespace {

using recmill::testing::TestArrays;
using Way = GpuRecordCopier::Way;

class GpuRecordCopierTest : public ::testing::TestWithParam<emulation::Turns> {
 protected:
  Gpu gpu_{recmill::testing::test_driver({.turns = GetParam()}), {}};
  GpuStream stream_ = *gpu_.open_stream();
  TestArrays arrays_{gpu_, stream_};
  GpuRecordCopier copier_ = *GpuRecordCopier::make(gpu_, &codegen::compile_for_tests);
};
INSTANTIATE_TEST_SUITE_P(Orders, GpuRecordCopierTest,
                         ::testing::ValuesIn(std::array<emulation::Turns, 3>{
                             {{emulation::Order::forward},
                              {emulation::Order::reverse},
                              {emulation::Order::random, 5}}}));

/// Slots of a table, and records, on the host.
struct Slots {
  int32_t stride;  // bytes
  bool has_state, has_names;
  int64_t slots, count;
  std::vector<uint8_t> rows = {}, records = {};
  std::vector<float> state = {};
  std::vector<int64_t> row_of_slot = {}, named = {};
  std::vector<int32_t> places = {};

  int32_t state_at() const { return (stride + 3) / 4 * 4; }
  int32_t record_bytes() const { return has_state ? state_at() + 4 : stride; }

  void fill(uint32_t seed) {
    std::mt19937 random(seed);
    rows.resize(static_cast<size_t>(slots * stride));
    records.resize(static_cast<size_t>(count * record_bytes()));
    for (auto* const bytes : {&rows, &records})
      for (uint8_t& byte : *bytes) byte = static_cast<uint8_t>(random());
    for (int64_t i = 0; i < count; ++i)  // bytes between parts
      for (int32_t at = stride; has_state && at < state_at(); ++at)
        records[static_cast<size_t>(i * record_bytes() + at)] = 0;
    state.resize(static_cast<size_t>(slots));
    std::iota(state.begin(), state.end(), 0.5f);
    row_of_slot.assign(static_cast<size_t>(slots), -1);
    std::vector<int32_t> all(static_cast<size_t>(slots));
    std::iota(all.begin(), all.end(), 0);
    std::ranges::shuffle(all, random);
    places.assign(all.begin(), all.begin() + count);
    for (int64_t i = 0; i < count; ++i) named.push_back((int64_t{1} << 40) + i);
  }

  /// The plain copy.
  void copy(Way way) {
    const auto apart = static_cast<size_t>(stride);
    for (size_t i = 0; i < places.size(); ++i) {
      uint8_t* const record = records.data() + i * static_cast<size_t>(record_bytes());
      uint8_t* const row = rows.data() + static_cast<size_t>(places[i]) * apart;
      float& of_row = state[static_cast<size_t>(places[i])];
      if (way == Way::to_slots) {
        std::memcpy(row, record, apart);
        if (has_state) std::memcpy(&of_row, record + state_at(), sizeof(float));
        if (has_names) row_of_slot[static_cast<size_t>(places[i])] = named[i];
      } else {
        std::memcpy(record, row, apart);
        if (has_state) std::memcpy(record + state_at(), &of_row, sizeof(float));
      }
    }
  }
};

TEST_P(GpuRecordCopierTest, CopiesWhatThePlainCopyDoes) {
  std::vector<Slots> of{{64, false, false, 300, 300}, {8, false, false, 9, 2},
                        {20, true, false, 50, 33},    {6, true, true, 70, 41},
                        {2, false, true, 5, 5},       {64, true, true, 40, 0},
                        {20000, true, true, 4, 3},    {256, false, true, 1000, 700}};
  // More lists than a launch has.
  for (int more = 0; more < gpu::kMostRecordLists; ++more) of.push_back({16, false, false, 3, 1});
  for (const Way way : {Way::to_slots, Way::from_slots}) {
    std::vector<gpu::RecordList> lists;
    for (size_t k = 0; k < of.size(); ++k) {
      of[k] = {of[k].stride, of[k].has_state, of[k].has_names, of[k].slots, of[k].count};
      of[k].fill(static_cast<uint32_t>(k));
      lists.push_back(
          {arrays_.put(of[k].rows), of[k].has_state ? arrays_.put(of[k].state) : nullptr,
           of[k].has_names ? arrays_.put(of[k].row_of_slot) : nullptr, arrays_.put(of[k].records),
           arrays_.put(of[k].places), of[k].has_names ? arrays_.put(of[k].named) : nullptr,
           of[k].count, of[k].stride, of[k].record_bytes(), of[k].state_at()});
    }
    ASSERT_TRUE(copier_.copy(lists, way, stream_).ok());
    for (size_t k = 0; k < of.size(); ++k) {
      of[k].copy(way);
      EXPECT_EQ(arrays_.get(lists[k].rows), of[k].rows) << k;
      EXPECT_EQ(arrays_.get(lists[k].records), of[k].records) << k;
      if (of[k].has_state) {
        EXPECT_EQ(std::memcmp(arrays_.get(lists[k].row_state).data(), of[k].state.data(),
                              of[k].state.size() * sizeof(float)),
                  0)
            << k;
      }
      if (of[k].has_names) {
        EXPECT_EQ(arrays_.get(lists[k].row_of_slot), of[k].row_of_slot) << k;
      }
    }
  }
}

}  // namespace
}  // namespace recmill::kernels
