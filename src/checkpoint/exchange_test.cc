// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/exchange.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/json/json.h"
#include "base/testing/faulty_files.h"
#include "checkpoint/digest.h"
#include "checkpoint/npy.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/testing/small_checkpoint.h"

namespace recmill::checkpoint {
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

TEST(Export, npy_files_hold_one_tensor_each_and_take_the_place_of_an_earlier_export) {
  FaultyFiles files;
  auto reader = open_small(files, "ck", 3, 1);
  ASSERT_TRUE(files.make_folder("out").ok());
  ASSERT_TRUE(write_atomically(files, "out/embeddings.OLD.weight.npy", "an earlier model's").ok());
  const auto written = export_npy(files, *reader, "out/");
  ASSERT_TRUE(written.ok()) << written.status().message();
  EXPECT_EQ(*written, 4);
  EXPECT_EQ(*files.list("out"),
            (std::vector<std::string>{"dictionaries.C1.npy", "embeddings.C1.weight.npy",
                                      "embeddings.C2.weight.npy", "top.0.bias.npy"}));
  auto tensors = open_npy(files, "out/embeddings.C1.weight.npy", "embeddings.C1.weight");
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  std::vector<std::byte> bytes(40 * kWeight.row_bytes());
  ASSERT_TRUE((*tensors)->read(0, 0, bytes).ok());
  EXPECT_EQ(bytes, small_rows(3, kWeight, 0, 40));
}

TEST(Export, deletes_nothing_that_no_export_wrote) {
  FaultyFiles files;
  auto reader = open_small(files, "ck", 3, 1);
  EXPECT_EQ(export_npy(files, *reader, "ck").status().message(),
            "ck: holds 'step-000000000003', which no export wrote; name a folder of its own");
  EXPECT_EQ(*files.list("ck"), std::vector<std::string>{"step-000000000003"});
}

TEST(Export, leaves_the_earlier_export_or_a_whole_new_one_when_the_disk_is_full) {
  int failed = 0;
  for (int64_t bytes = 0;; bytes += 50) {
    FaultyFiles files;
    auto reader = open_small(files, "ck", 3, 1);
    ASSERT_TRUE(files.make_folder("out").ok());
    ASSERT_TRUE(write_atomically(files, "out/old.npy", "old").ok());
    files.limit_bytes(bytes);
    if (export_npy(files, *reader, "out").ok()) break;
    ++failed;
    EXPECT_EQ(*files.list("out"), std::vector<std::string>{"old.npy"});
    EXPECT_FALSE(files.exists("out.tmp"));
    EXPECT_FALSE(export_safetensors(files, *reader, "model.safetensors").ok());
    EXPECT_FALSE(files.exists("model.safetensors"));
  }
  EXPECT_GT(failed, 5);
}

std::vector<std::unique_ptr<TensorReader>> one(std::unique_ptr<TensorReader> reader) {
  std::vector<std::unique_ptr<TensorReader>> readers;
  readers.push_back(std::move(reader));
  return readers;
}

TEST(Import, replaces_the_named_tensors_and_leaves_the_rest) {
  FaultyFiles files;
  auto base = open_small(files, "ck", 3, 2), other = open_small(files, "other", 9, 1);
  ASSERT_TRUE(export_npy(files, *other, "out").ok());
  auto tensors = open_npy(files, "out/embeddings.C1.weight.npy", "embeddings.C1.weight");
  ASSERT_TRUE(tensors.ok());
  const Status status = import_tensors(files, *base, one(*std::move(tensors)), "new");
  ASSERT_TRUE(status.ok()) << status.message();
  auto imported = *Reader::open(files, "new/" + folder_name(3));
  const auto differences = *compare(*base, *imported);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].name, kWeight.name);
  std::vector<std::byte> bytes(40 * kWeight.row_bytes());
  ASSERT_TRUE(imported->read(*imported->find(kWeight.name), 0, 40, bytes).ok());
  EXPECT_EQ(bytes, small_rows(9, kWeight, 0, 40));
}

TEST(Import, takes_a_whole_folder_of_exported_files) {
  FaultyFiles files;
  auto base = open_small(files, "ck", 3, 2), other = open_small(files, "other", 9, 3);
  ASSERT_TRUE(export_npy(files, *other, "out").ok());
  const auto readers = open_npy_folder(files, *base, "out");
  ASSERT_TRUE(readers.ok()) << readers.status().message();
  ASSERT_EQ(readers->size(), 4u);
  const Status status = import_tensors(files, *base, *readers, "new");
  ASSERT_TRUE(status.ok()) << status.message();
  auto imported = *Reader::open(files, "new/" + folder_name(3));
  ASSERT_TRUE(export_npy(files, *imported, "again").ok());
  const auto names = files.list("out");
  for (const std::string& name : *names) {
    EXPECT_EQ(files.content("again/" + name), files.content("out/" + name)) << name;
  }
  ASSERT_TRUE(write_atomically(files, "out/notes.txt", "x").ok());
  EXPECT_EQ(open_npy_folder(files, *base, "out").status().message(),
            "out/notes.txt: is not a .npy file");
  ASSERT_TRUE(files.make_folder("empty").ok());
  EXPECT_EQ(open_npy_folder(files, *base, "empty").status().message(), "empty: holds no .npy file");
}

TEST(Import, finds_a_tensor_whose_name_is_no_file_name) {
  FaultyFiles files;
  auto writer = *Writer::create(files, "ck", 1);
  auto part = *PartWriter::create(files, writer->path(), 0);
  const EntrySpec spec{"table/user/home/weight", ElementType::float32, {2, 2}};
  ASSERT_TRUE(part->add(spec, small_rows(1, spec, 0, 2)).ok());
  ASSERT_TRUE(writer->finish({*part->finish()}, Json::object()).ok());
  auto base = *Reader::open(files, "ck/" + folder_name(1));
  EXPECT_EQ(tensor_of_npy(*base, "embeddings.user_home.weight"), "embeddings.user/home.weight");
  EXPECT_EQ(tensor_of_npy(*base, "embeddings.other.weight"), "embeddings.other.weight");
}

TEST(Import, replaces_a_checkpoint_that_stands_there_only_when_asked) {
  FaultyFiles files;
  auto base = open_small(files, "ck", 3, 2), other = open_small(files, "other", 9, 1);
  ASSERT_TRUE(export_npy(files, *base, "same").ok() && export_npy(files, *other, "out").ok());
  const auto same = *open_npy_folder(files, *base, "same");
  const auto changed = *open_npy_folder(files, *base, "out");
  ASSERT_TRUE(import_tensors(files, *base, same, "new").ok());
  EXPECT_EQ(import_tensors(files, *base, changed, "new").message(),
            "new/step-000000000003: is there already");
  EXPECT_TRUE(compare(*base, **Reader::open(files, "new/" + folder_name(3)))->empty());
  ASSERT_TRUE(import_tensors(files, *base, changed, "new", ExistingCheckpoint::replace).ok());
  EXPECT_FALSE(compare(*base, **Reader::open(files, "new/" + folder_name(3)))->empty());
}

TEST(Import, refuses_tensors_that_do_not_fit_and_writes_nothing) {
  FaultyFiles files;
  auto base = open_small(files, "ck", 3, 1);
  ASSERT_TRUE(export_npy(files, *base, "out").ok());
  const auto failure = [&](const std::string& file, const std::string& name) {
    return import_tensors(files, *base, one(*open_npy(files, file, name)), "new").message();
  };
  EXPECT_EQ(failure("out/top.0.bias.npy", "embeddings.C1.weight"),
            "out/top.0.bias.npy: tensor 'embeddings.C1.weight' is float32 [4], and in "
            "ck/step-000000000003 float32 [40, 3]");
  EXPECT_EQ(failure("out/embeddings.C1.weight.npy", "embeddings.C2.weight"),
            "out/embeddings.C1.weight.npy: tensor 'embeddings.C2.weight' is float32 [40, 3], and "
            "in ck/step-000000000003 bfloat16 [5, 2]");
  EXPECT_EQ(failure("out/top.0.bias.npy", "embeddings.C9.weight"),
            "out/top.0.bias.npy: ck/step-000000000003 has no tensor 'embeddings.C9.weight' to "
            "replace");
  EXPECT_EQ(failure("out/top.0.bias.npy", ""),
            "out/top.0.bias.npy: ck/step-000000000003 has no tensor '' to replace");
  std::vector<std::unique_ptr<TensorReader>> twice;
  for (int i = 0; i < 2; ++i) {
    twice.push_back(*open_npy(files, "out/top.0.bias.npy", "top.0.bias"));
  }
  EXPECT_EQ(import_tensors(files, *base, twice, "new").message(),
            "out/top.0.bias.npy: tensor 'top.0.bias' is also in out/top.0.bias.npy");
  EXPECT_FALSE(files.exists("new"));
}

TEST(Import, refuses_values_that_are_not_finite_and_names_file_and_layer) {
  FaultyFiles files;
  auto base = open_small(files, "ck", 3, 1);
  const std::vector<float> values{1.0f, 2.0f, std::numeric_limits<float>::infinity(), 3.0f};
  {
    auto writer = *create_npy(files, "bias.npy", kLayer);
    ASSERT_TRUE(writer->append(std::as_bytes(std::span(values))).ok());
    ASSERT_TRUE(writer->close().ok());
  }
  const auto status =
      import_tensors(files, *base, one(*open_npy(files, "bias.npy", "top.0.bias")), "new");
  EXPECT_EQ(status.code(), Status::Code::failed);
  EXPECT_EQ(status.message(),
            "bias.npy: not finite: layer top.0.bias; a checkpoint holds finite values alone");
  EXPECT_FALSE(files.exists("new"));
}

}  // namespace recmill::checkpoint
