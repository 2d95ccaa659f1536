// SPDX-License-Identifier: Apache-2.0
// What every op promises: run() equals plain() bit for bit, in place or not, in any pieces, at
// sizes around those of vectors, on every instruction set. A new op adds one line to fixtures().
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <bit>
#include <limits>
#include <set>

#include "base/json/json.h"
#include "base/random.h"
#include "preprocess/ops/registry.h"

namespace recmill::preprocess {
namespace {

const std::vector<OpSpec>& fixtures() {
  static const std::vector<OpSpec> list = {
      {"bucketize", Json{{"borders", {0.5, 1.0, 1.0, 1.5}}}},
      {"bucketize", Json{{"borders", Json::array()}}},
      {"clamp", Json{{"low", -1.5}, {"high", 2.0}}},
      {"direct", Json{{"rows", 1000}, {"out_of_range", "error"}}},
      {"direct", Json{{"rows", 1000}, {"out_of_range", "clamp"}}},
      {"direct", Json{{"rows", 1000}, {"out_of_range", "drop"}}},
      {"fill_missing_id", Json{{"id", 7}}},
      {"fill_null", Json{{"value", -2.5}}},
      {"first_x", Json{{"x", 2}}},
      {"log", Json::object()},
      {"modulo", Json{{"rows", 97}}},
      {"sigrid_hash", Json{{"rows", 1}, {"salt", 0}}},
      {"sigrid_hash", Json{{"rows", 4294967295u}, {"salt", 5}}},
      {"sigrid_hash", Json{{"rows", 4294967297u}, {"salt", ~0ull}}},
      {"standardize", Json{{"mean", 0.0}, {"deviation", 1.0}}},
      {"standardize", Json{{"mean", -3.3}, {"deviation", 1e-3}}},
  };
  return list;
}

constexpr uint64_t kSeed = 20;
const size_t kSizes[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 1000};

float dense_value(uint64_t i) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kSpecial[] = {std::numeric_limits<float>::quiet_NaN(),
                                0.0f,
                                -0.0f,
                                kInfinity,
                                -kInfinity,
                                1e-40f,
                                -1e-40f,
                                1.0f,
                                -2.0f,
                                0.5f,
                                1.5f,
                                3.4e38f};
  const uint32_t bits = Random(kSeed, Purpose::test).bits(i);
  if (bits % 3 == 0) return kSpecial[(bits >> 8) % std::size(kSpecial)];
  return bits % 3 == 1 ? std::bit_cast<float>(bits) : static_cast<float>(bits % 2000) * 0.01f;
}

uint64_t raw_id(uint64_t i) {
  const uint64_t bits = Random(kSeed, Purpose::test, 1).bits64(i);
  return bits % 4 == 0 ? bits : bits % 1200;
}

void expect_same_bits(std::span<const float> got, std::span<const float> want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i])) << "element " << i;
  }
}

void check_dense(const DenseOp& op, size_t size) {
  std::vector<float> in(size), want(size), out(size);
  for (size_t i = 0; i < size; ++i) want[i] = op.plain(in[i] = dense_value(i));
  op.run(in, out);
  expect_same_bits(out, want);
  for (size_t cut : {size / 3, size / 2}) {
    std::vector<float> pieces(size);
    op.run(std::span(in).first(cut), std::span(pieces).first(cut));
    op.run(std::span(in).subspan(cut), std::span(pieces).subspan(cut));
    expect_same_bits(pieces, want);
  }
  op.run(in, in);
  expect_same_bits(in, want);
}

void check_ids(const IdOp& op, size_t size) {
  std::vector<uint64_t> in(size), want(size), out(size), pieces(size);
  IdCounts plain_counts, counts, piece_counts;
  for (size_t i = 0; i < size; ++i) want[i] = op.plain(in[i] = raw_id(i), plain_counts);
  op.run(in, out, counts);
  EXPECT_EQ(out, want);
  EXPECT_EQ(counts, plain_counts);
  const size_t cut = size / 3;
  op.run(std::span(in).first(cut), std::span(pieces).first(cut), piece_counts);
  op.run(std::span(in).subspan(cut), std::span(pieces).subspan(cut), piece_counts);
  EXPECT_EQ(pieces, want);
  EXPECT_EQ(piece_counts, plain_counts);
  op.run(in, in, counts);
  EXPECT_EQ(in, want);
}

void check_bucket(const BucketOp& op, size_t size) {
  std::vector<float> in(size);
  std::vector<uint64_t> want(size), out(size);
  for (size_t i = 0; i < size; ++i) want[i] = op.plain(in[i] = dense_value(i));
  op.run(in, out);
  EXPECT_EQ(out, want);
}

struct Bags {
  std::vector<int64_t> offsets;
  std::vector<uint64_t> ids;
  std::vector<float> weights;
};

// Bags of 0 to `longest` ids, which start at an offset that is not 0.
Bags make_bags(size_t samples, uint64_t longest) {
  Bags bags{{3}, {1, 2, 3}, {0, 0, 0}};
  for (size_t s = 0; s < samples; ++s) {
    const uint64_t length = Random(kSeed, Purpose::test, 2).below(longest + 1, s);
    for (uint64_t j = 0; j < length; ++j) {
      bags.ids.push_back(raw_id(bags.ids.size()));
      bags.weights.push_back(static_cast<float>(bags.ids.size()));
    }
    bags.offsets.push_back(static_cast<int64_t>(bags.ids.size()));
  }
  return bags;
}

// Runs samples [begin, end) and appends to `out`, whose offsets are there already.
void run_piece(const BagOp& op, const Bags& in, int64_t begin, int64_t end, bool weighted,
               Bags& out) {
  const BagView view{in.offsets.data() + begin, in.ids.data(),
                     weighted ? in.weights.data() : nullptr, end - begin};
  const int64_t to = out.offsets[begin];
  op.run(view, out.offsets.data() + begin, out.ids.data() + to, out.weights.data() + to);
}

void check_bags(const BagOp& op, size_t samples, uint64_t longest, bool weighted) {
  const Bags in = make_bags(samples, longest);
  Bags want{{0}, {}, {}};
  for (size_t s = 0; s < samples; ++s) {
    Bag bag;
    for (int64_t j = in.offsets[s]; j < in.offsets[s + 1]; ++j) {
      bag.ids.push_back(in.ids[j]);
      bag.weights.push_back(weighted ? in.weights[j] : 1.0f);
    }
    const Bag after = op.plain(bag);
    ASSERT_EQ(static_cast<int64_t>(after.ids.size()), op.length(bag.ids.size()));
    want.ids.insert(want.ids.end(), after.ids.begin(), after.ids.end());
    want.weights.insert(want.weights.end(), after.weights.begin(), after.weights.end());
    want.offsets.push_back(static_cast<int64_t>(want.ids.size()));
  }
  const Bag single{{7}, {2.0f}};
  if (op.keeps_single()) {
    EXPECT_EQ(op.plain(single).ids, single.ids);
    EXPECT_EQ(op.plain(single).weights, single.weights);
  }
  const auto count = static_cast<int64_t>(samples);
  for (int64_t cut : {int64_t{0}, count / 3, count}) {
    Bags out{want.offsets, std::vector<uint64_t>(want.ids.size()),
             std::vector<float>(want.ids.size())};
    run_piece(op, in, 0, cut, weighted, out);
    run_piece(op, in, cut, count, weighted, out);
    EXPECT_EQ(out.ids, want.ids);
    expect_same_bits(out.weights, want.weights);
    if (weighted) continue;
    std::fill(out.ids.begin(), out.ids.end(), ~uint64_t{0});
    op.run({in.offsets.data(), in.ids.data(), nullptr, count}, out.offsets.data(), out.ids.data(),
           nullptr);
    EXPECT_EQ(out.ids, want.ids) << "without weights";
  }
}

void check(const Op& op, size_t size) {
  switch (op.kind()) {
    case Op::Kind::dense:
      return check_dense(static_cast<const DenseOp&>(op), size);
    case Op::Kind::id:
      return check_ids(static_cast<const IdOp&>(op), size);
    case Op::Kind::bucket:
      return check_bucket(static_cast<const BucketOp&>(op), size);
    case Op::Kind::bag:
      for (bool weighted : {false, true}) {
        for (uint64_t longest : {0, 1, 4}) {
          check_bags(static_cast<const BagOp&>(op), size, longest, weighted);
        }
      }
  }
}

}  // namespace

TEST(OpContract, every_op_has_a_fixture) {
  std::set<std::string> covered;
  for (const auto& spec : fixtures()) covered.insert(spec.op);
  for (const auto& name : op_names()) EXPECT_TRUE(covered.count(name)) << name;
}

TEST(OpContract, run_equals_plain_in_place_and_in_pieces_on_every_instruction_set) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    for (const auto& spec : fixtures()) {
      const auto op = make_op(spec);
      ASSERT_TRUE(op.ok()) << op.status().message();
      for (size_t size : kSizes) {
        SCOPED_TRACE(std::string(hwy::TargetName(target)) + ' ' + spec.op +
                     spec.parameters->dump() + " size " + std::to_string(size) + " seed " +
                     std::to_string(kSeed));
        check(**op, size);
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

TEST(OpContract, wrong_parameters_are_errors_that_name_op_and_parameter) {
  const auto error = [](const OpSpec& spec) { return make_op(spec).status().message(); };
  EXPECT_EQ(error({"first_x", Json{{"x", 0}}}), "op 'first_x': parameter 'x' must be at least 1");
  EXPECT_EQ(error({"sigrid_hash", Json{{"rows", 5}}}),
            "op 'sigrid_hash': parameter 'salt' must be an integer");
  EXPECT_EQ(error({"direct", Json{{"rows", 5}, {"out_of_range", "wrap"}}}),
            "op 'direct': parameter 'out_of_range' must be error, clamp or drop");
  EXPECT_EQ(error({"bucketize", Json{{"borders", {2, 1}}}}),
            "op 'bucketize': parameter 'borders' must be ascending");
  EXPECT_EQ(error({"standardize", Json{{"mean", 1.5}, {"deviation", 0}}}),
            "op 'standardize': parameter 'deviation' must be above 0");
  EXPECT_EQ(error({"nothing", {}}), "there is no op 'nothing'");
}

TEST(OpContract, values_that_an_op_makes_one_of_are_counted) {
  const auto counts = [](const OpSpec& spec, std::vector<float> values) {
    const auto op = make_op(spec);
    FlattenedCounts counts;
    count_flattened(static_cast<const DenseOp&>(**op), values, counts);
    return counts;
  };
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> values{-1.5f, -0.2f, -0.0f,    0.0f,     2.0f,
                                  3.0f,  kNone, INFINITY, -INFINITY};
  EXPECT_EQ(counts({"log", Json::object()}, values), (FlattenedCounts{8, 3, 0}));
  EXPECT_EQ(counts({"clamp", Json{{"low", -0.2}, {"high", 2}}}, values),
            (FlattenedCounts{8, 2, 2}));
  EXPECT_EQ(counts({"fill_null", Json{{"value", 1}}}, values), (FlattenedCounts{8, 0, 0}));
}

}  // namespace recmill::preprocess
