// SPDX-License-Identifier: Apache-2.0
#include "run/sample_lookups.h"

#include <gtest/gtest.h>

namespace recmill::train {
namespace {

using preprocess::Mapping;
using preprocess::MissingId;
using preprocess::OutOfRange;
using reader::LengthLaw;

/// One feature of synthetic bags: half of them empty, the others of four ids on average, of ten at
/// most.
RunOptions one_feature() {
  RunOptions options;
  options.data.format = DataFormat::synthetic;
  options.data.synthetic.shape = reader::SyntheticShape::columns;
  options.data.synthetic.planted.crosses = 0;
  options.data.synthetic.ids = {
      {.name = "a", .mean_length = 4.0, .max_length = 10, .empty_share = 0.5}};
  options.embedding.rows = {1000};
  options.model.kind = model::ModelKind::wide_and_deep;
  options.model.deep = {4};
  options.model.deep_input = model::DeepInput::rows;
  return options;
}

struct Known {
  double lookups = 0.0;
  bool certain = false;
  bool operator==(const Known&) const = default;
};
Known known_of(const RunOptions& options) {
  const auto run = resolve_run(options, posix_files());
  EXPECT_TRUE(run.ok()) << run.status().message();
  return {sample_lookups(*run).at(0), lookups_are_certain(*run)};
}
void PrintTo(const Known& known, std::ostream* out) {
  *out << known.lookups << (known.certain ? "" : ", not certain");
}

TEST(SampleLookups, AMissingIdIsOne) {
  RunOptions options = one_feature();
  EXPECT_EQ(known_of(options), (Known{2.5, true}));
  options.embedding.missing = MissingId::empty;
  EXPECT_EQ(known_of(options), (Known{2.0, false}));
}

TEST(SampleLookups, AreThoseOfBagsAsTheyAreCut) {
  RunOptions options = one_feature();
  options.embedding.max_length = 3;
  EXPECT_EQ(known_of(options), (Known{2.0, false}));
  options.embedding.max_length = 5;  // some are cut
  EXPECT_EQ(known_of(options), (Known{2.5, false}));
  options.embedding.max_length = 10;
  EXPECT_EQ(known_of(options), (Known{2.5, true}));
  options.embedding.max_length = 3;
  options.data.synthetic.ids[0].lengths = LengthLaw::fixed;
  EXPECT_EQ(known_of(options), (Known{2.0, true}));
}

TEST(SampleLookups, AreNotCertainWhereIdsAreDropped) {
  RunOptions options = one_feature();
  for (const Mapping mapping : {Mapping::direct, Mapping::dictionary}) {
    options.embedding.mapping = mapping;
    options.embedding.out_of_range = OutOfRange::clamp;
    EXPECT_EQ(known_of(options), (Known{2.5, true}));
    options.embedding.out_of_range = OutOfRange::drop;
    EXPECT_EQ(known_of(options), (Known{2.5, false}));
  }
  options.embedding.mapping = Mapping::hash;
  EXPECT_EQ(known_of(options), (Known{2.5, true}));
}

}  // namespace
}  // namespace recmill::train
