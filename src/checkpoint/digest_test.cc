// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/digest.h"

#include <gtest/gtest.h>

#include "base/testing/faulty_files.h"
#include "checkpoint/testing/small_checkpoint.h"

namespace recmill::checkpoint {
TEST(Digest, does_not_depend_on_how_many_ranks_wrote) {
  FaultyFiles files;
  auto one = open_small(files, "a", 4, 1), three = open_small(files, "b", 4, 3);
  const auto digest = digests(*one);
  ASSERT_TRUE(digest.ok());
  EXPECT_EQ(*digest, *digests(*three));
  EXPECT_EQ(digest->size(), 7u);  // five entries, two properties
  EXPECT_EQ(digest->back().name, "property/seed");
  EXPECT_EQ(digest->front().shape, "float32 [4]");
  EXPECT_TRUE(compare(*one, *three)->empty());
}

TEST(Compare, names_the_first_difference_of_each_entry_with_row_element_and_both_values) {
  FaultyFiles files;
  auto one = open_small(files, "a", 4, 1), other = open_small(files, "b", 4, 1);
  // A changed value under a right checksum: written by another run.
  auto writer = *Writer::create(files, "c", 4);
  auto part = *PartWriter::create(files, writer->path(), 0);
  for (const EntrySpec& spec : {kState, kHalf, kLayer, kIds}) {
    ASSERT_TRUE(part->add(spec, small_rows(4, spec, 0, spec.rows())).ok());
  }
  auto bytes = small_rows(4, kWeight, 0, 40);
  const float changed = -1.5f;
  std::memcpy(bytes.data() + (17 * 3 + 2) * 4, &changed, 4);
  std::memcpy(bytes.data() + (30 * 3) * 4, &changed, 4);
  ASSERT_TRUE(part->add(kWeight, bytes).ok());
  ASSERT_TRUE(writer->finish({*part->finish()}, {{"iteration", 4}, {"seed", 8}}).ok());
  auto third = *Reader::open(files, "c/" + folder_name(4));
  EXPECT_TRUE(compare(*one, *other)->empty());
  const auto differences = *compare(*one, *third);
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].row, 17);
  EXPECT_EQ(differences[0].element, 2);
  EXPECT_EQ(differences[0].text, "table/C1/weight: row 17, element 2: 5517.5 and -1.5");
  EXPECT_EQ(differences[1].text, "property/seed: 7 and 8");
  EXPECT_EQ(compare(*one, *third, {"seed"})->size(), 1u);
}

TEST(Compare, names_what_only_one_has_and_what_has_another_shape) {
  FaultyFiles files;
  auto one = open_small(files, "a", 4, 1);
  auto writer = *Writer::create(files, "c", 4);
  auto part = *PartWriter::create(files, writer->path(), 0);
  for (EntrySpec spec : {kState, kHalf, kLayer, kWeight}) {
    if (spec.name == kHalf.name) spec.shape[0] = 6;
    ASSERT_TRUE(part->add(spec, small_rows(4, spec, 0, spec.rows())).ok());
  }
  ASSERT_TRUE(writer->finish({*part->finish()}, {{"iteration", 4}, {"seed", 7}}).ok());
  auto other = *Reader::open(files, "c/" + folder_name(4));
  const auto differences = *compare(*one, *other);
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].text, "dictionary/C1: is not in c/step-000000000004");
  EXPECT_EQ(differences[1].text, "table/C2/weight: bfloat16 [5, 2] and bfloat16 [6, 2]");
}

}  // namespace recmill::checkpoint
