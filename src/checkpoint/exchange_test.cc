// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/exchange.h"

#include <gtest/gtest.h>

#include "base/testing/faulty_files.h"
#include "checkpoint/digest.h"
#include "checkpoint/npy.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/testing/small_checkpoint.h"

namespace recmill::checkpoint {
namespace {

std::unique_ptr<Reader> open_small(FaultyFiles& files, const std::string& folder, int64_t step,
                                   int parts) {
  EXPECT_TRUE(write_small(files, folder, step, parts).ok());
  return *Reader::open(files, folder + "/" + folder_name(step));
}

}  // namespace

TEST(TensorName, is_that_of_the_state_dict_and_empty_for_what_is_no_weight) {
  EXPECT_EQ(tensor_name("dense/top.0.weight"), "top.0.weight");
  EXPECT_EQ(tensor_name("table/C1/weight"), "embeddings.C1.weight");
  EXPECT_EQ(tensor_name("dictionary/C1"), "dictionaries.C1");
  EXPECT_EQ(tensor_name("table/C1/state/sum"), "");
  EXPECT_EQ(tensor_name("dense_state/top.0.weight/sum"), "");
}

TEST(Export, safetensors_hold_the_weights_by_state_dict_name_whatever_ranks_wrote_them) {
  FaultyFiles files;
  auto reader = open_small(files, "ck", 3, 3);
  const Status status = export_safetensors(files, *reader, "model.safetensors");
  ASSERT_TRUE(status.ok()) << status.message();
  auto tensors = open_safetensors(files, "model.safetensors");
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  ASSERT_EQ((*tensors)->tensors().size(), 4u);
  for (const EntrySpec& spec : {kWeight, kHalf, kLayer}) {
    const int at = (*tensors)->find(tensor_name(spec.name));
    ASSERT_GE(at, 0) << spec.name;
    std::vector<std::byte> bytes(spec.rows() * spec.row_bytes());
    ASSERT_TRUE((*tensors)->read(at, 0, bytes).ok());
    EXPECT_EQ(bytes, small_rows(3, spec, 0, spec.rows())) << spec.name;
  }
}

TEST(Export, npy_files_hold_one_tensor_each) {
  FaultyFiles files;
  auto reader = open_small(files, "ck", 3, 1);
  const auto paths = export_npy(files, *reader, "out");
  ASSERT_TRUE(paths.ok()) << paths.status().message();
  EXPECT_EQ(paths->size(), 4u);
  auto tensors = open_npy(files, "out/embeddings.C1.weight.npy", "embeddings.C1.weight");
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  std::vector<std::byte> bytes(40 * kWeight.row_bytes());
  ASSERT_TRUE((*tensors)->read(0, 0, bytes).ok());
  EXPECT_EQ(bytes, small_rows(3, kWeight, 0, 40));
}

TEST(Import, replaces_the_named_tensors_and_leaves_the_rest) {
  FaultyFiles files;
  auto base = open_small(files, "ck", 3, 2), other = open_small(files, "other", 9, 1);
  ASSERT_TRUE(export_npy(files, *other, "out").ok());
  auto tensors = open_npy(files, "out/embeddings.C1.weight.npy", "embeddings.C1.weight");
  ASSERT_TRUE(tensors.ok());
  const Status status = import_tensors(files, *base, **tensors, "new");
  ASSERT_TRUE(status.ok()) << status.message();
  auto imported = *Reader::open(files, "new/" + folder_name(3));
  const auto differences = *compare(*base, *imported);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].name, kWeight.name);
  std::vector<std::byte> bytes(40 * kWeight.row_bytes());
  ASSERT_TRUE(imported->read(*imported->find(kWeight.name), 0, 40, bytes).ok());
  EXPECT_EQ(bytes, small_rows(9, kWeight, 0, 40));
}

TEST(Import, refuses_tensors_that_do_not_fit_and_writes_nothing) {
  FaultyFiles files;
  auto base = open_small(files, "ck", 3, 1);
  ASSERT_TRUE(export_npy(files, *base, "out").ok());
  auto layer = open_npy(files, "out/top.0.bias.npy", "embeddings.C1.weight");
  ASSERT_TRUE(layer.ok()) << layer.status().message();
  EXPECT_EQ(import_tensors(files, *base, **layer, "new").message(),
            "tensor 'embeddings.C1.weight' is float32 [4], and in ck/step-000000000003 "
            "float32 [40, 3]");
  auto unknown = open_npy(files, "out/top.0.bias.npy", "embeddings.C9.weight");
  EXPECT_EQ(import_tensors(files, *base, **unknown, "new").message(),
            "ck/step-000000000003: has no tensor 'embeddings.C9.weight' to replace");
  EXPECT_FALSE(files.exists("new"));
}

}  // namespace recmill::checkpoint
