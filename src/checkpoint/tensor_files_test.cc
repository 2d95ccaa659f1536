// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"
#include "base/temporary_folder.h"
#include "checkpoint/npy.h"
#include "checkpoint/safetensors.h"

namespace recmill::checkpoint {
namespace {

using ::testing::HasSubstr;

std::string random_bytes(int64_t size, uint64_t seed) {
  const Random random(seed, Purpose::test);
  std::string bytes(static_cast<size_t>(size), '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(random.bits(i));
  return bytes;
}

/// Writes `bytes` in pieces of uneven size.
Status write_pieces(TensorWriter& writer, std::string_view bytes) {
  for (size_t piece = 1; !bytes.empty(); piece = piece * 3 + 1) {
    const size_t size = std::min(piece, bytes.size());
    RECMILL_RETURN_IF_ERROR(writer.append(std::as_bytes(std::span(bytes.substr(0, size)))));
    bytes.remove_prefix(size);
  }
  return writer.close();
}

std::string all_of(const TensorReader& reader, size_t tensor) {
  std::string bytes(static_cast<size_t>(tensor_bytes(reader.tensors()[tensor].spec)), '\0');
  const Status status = reader.read(tensor, 0, std::as_writable_bytes(std::span(bytes)));
  EXPECT_TRUE(status.ok()) << status.message();
  return bytes;
}

Status write_bytes(const std::string& path, std::string_view bytes) {
  RECMILL_ASSIGN_OR_RETURN(auto file, posix_files().create(path));
  RECMILL_RETURN_IF_ERROR(file->append(std::as_bytes(std::span(bytes))));
  return file->close();
}

const std::vector<EntrySpec>& tensors() {
  static const std::vector<EntrySpec> tensors{{"top.0.weight", ElementType::float32, {5, 3}},
                                              {"emb/C1", ElementType::bfloat16, {7, 16}},
                                              {"none", ElementType::float16, {0, 4}},
                                              {"steps", ElementType::int64, {2}},
                                              {"scale", ElementType::float32, {}}};
  return tensors;
}

TEST(Npy, a_file_is_the_bytes_of_the_format) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/a.npy";
  auto writer = create_npy(posix_files(), path, {"a", ElementType::float32, {2, 3}});
  ASSERT_TRUE(writer.ok());
  const float values[6] = {1, 2, 3, 4, 5, 6};
  ASSERT_TRUE((*writer)->append(std::as_bytes(std::span(values))).ok());
  ASSERT_TRUE((*writer)->close().ok());
  std::string expected("\x93NUMPY\x01\x00\x76\x00", 10);
  expected += "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  expected.resize(127, ' ');
  expected += '\n';
  expected.append(reinterpret_cast<const char*>(values), sizeof values);
  EXPECT_EQ(*read_text(posix_files(), path), expected);
}

TEST(Npy, every_type_and_shape_comes_back) {
  TemporaryFolder folder;
  for (const EntrySpec& tensor : tensors()) {
    const std::string path = folder.path() + "/a.npy";
    const std::string bytes = random_bytes(tensor_bytes(tensor), 3);
    auto writer = create_npy(posix_files(), path, tensor);
    ASSERT_TRUE(writer.ok() && write_pieces(**writer, bytes).ok());
    const auto reader = open_npy(posix_files(), path, tensor.name);
    ASSERT_TRUE(reader.ok()) << reader.status().message();
    EXPECT_EQ((*reader)->tensors()[0].spec, tensor);
    EXPECT_EQ(all_of(**reader, 0), bytes);
  }
}

TEST(Npy, reads_what_numpy_writes_and_says_what_it_cannot_read) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/a.npy";
  const auto outcome = [&](const std::string& header, size_t bytes) {
    std::string text("\x93NUMPY\x02\x00", 8);
    const auto size = static_cast<uint32_t>(header.size());
    text.append(reinterpret_cast<const char*>(&size), 4);
    EXPECT_TRUE(write_bytes(path, text + header + std::string(bytes, 'x')).ok());
    const auto reader = open_npy(posix_files(), path, "a");
    return reader.ok() ? (*reader)->tensors()[0].spec.text() : reader.status().message();
  };
  EXPECT_EQ(outcome("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n", 12),
            "float32 [3]");
  EXPECT_EQ(outcome("{'shape':(2,2),'fortran_order':False,'descr':'|V2'}", 8), "bfloat16 [2, 2]");
  EXPECT_THAT(outcome("{'descr': '<f4', 'fortran_order': True, 'shape': (3,), }", 12),
              HasSubstr(path + ": is in Fortran order"));
  EXPECT_THAT(outcome("{'descr': '>f4', 'fortran_order': False, 'shape': (3,), }", 12),
              HasSubstr(path + ": its header is not understood: {'descr': '>f4'"));
  EXPECT_THAT(outcome("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 11),
              HasSubstr("11 bytes of elements where its shape needs 12"));
  EXPECT_THAT(outcome("{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }", 11),
              HasSubstr("not understood"));
  EXPECT_THAT(
      outcome("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,2), }", 0),
      HasSubstr("needs -1"));
}

std::string write_tensors(const std::string& path) {
  std::string all;
  for (const EntrySpec& tensor : tensors()) all += random_bytes(tensor_bytes(tensor), all.size());
  auto writer = create_safetensors(posix_files(), path, tensors(), {{"format", "pt"}});
  EXPECT_TRUE(writer.ok() && write_pieces(**writer, all).ok());
  return all;
}

TEST(Safetensors, a_file_is_the_bytes_of_the_format) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/a.safetensors";
  auto writer = create_safetensors(posix_files(), path, {{"w", ElementType::float32, {1, 2}}},
                                   {{"format", "pt"}});
  ASSERT_TRUE(writer.ok() && write_pieces(**writer, "abcdefgh").ok());
  std::string header =
      R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})";
  header.resize(88, ' ');
  EXPECT_EQ(*read_text(posix_files(), path),
            std::string("\x58\0\0\0\0\0\0\0", 8) + header + "abcdefgh");
}

TEST(Safetensors, every_tensor_comes_back_whole_and_in_parts) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/a.safetensors";
  const std::string all = write_tensors(path);
  const auto reader = open_safetensors(posix_files(), path);
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  ASSERT_EQ((*reader)->tensors().size(), tensors().size());
  size_t at = 0;
  for (const EntrySpec& tensor : tensors()) {
    const int found = (*reader)->find(tensor.name);
    ASSERT_GE(found, 0) << tensor.name;
    EXPECT_EQ((*reader)->tensors()[static_cast<size_t>(found)].spec, tensor);
    const std::string bytes = all_of(**reader, static_cast<size_t>(found));
    EXPECT_EQ(bytes, all.substr(at, bytes.size())) << tensor.name;
    at += bytes.size();
  }
  EXPECT_EQ((*reader)->find("nowhere"), -1);
  std::string row(32, '\0');  // row 2 of emb/C1
  const auto table = static_cast<size_t>((*reader)->find("emb/C1"));
  ASSERT_TRUE((*reader)->read(table, 64, std::as_writable_bytes(std::span(row))).ok());
  EXPECT_EQ(row, all.substr(60 + 64, 32));
}

TEST(Safetensors, holes_overlaps_and_sizes_that_do_not_fit_are_refused_by_name) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/a.safetensors";
  const auto failure = [&](const std::string& header, size_t bytes) {
    const uint64_t size = header.size();
    std::string text(reinterpret_cast<const char*>(&size), 8);
    EXPECT_TRUE(write_bytes(path, text + header + std::string(bytes, 'x')).ok());
    const auto reader = open_safetensors(posix_files(), path);
    return reader.ok() ? "read" : reader.status().message();
  };
  const auto entry = [](const std::string& name, int begin, int end) {
    return "\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[" + std::to_string(end - begin) +
           "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
  };
  EXPECT_EQ(failure("{" + entry("b", 4, 6) + "," + entry("a", 0, 4) + "}", 6), "read");
  EXPECT_THAT(failure("{" + entry("a", 0, 4) + "," + entry("b", 5, 6) + "}", 6),
              HasSubstr(path + ": tensor 'b': begins at byte 5"));
  EXPECT_THAT(failure("{" + entry("a", 0, 4) + "," + entry("b", 3, 6) + "}", 6),
              HasSubstr("tensor 'b': begins at byte 3"));
  EXPECT_THAT(failure("{" + entry("a", 0, 4) + "}", 6), HasSubstr("6 bytes of tensors where"));
  EXPECT_THAT(failure(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
              HasSubstr("tensor 'a': 4 bytes where its shape needs 8"));
  EXPECT_THAT(failure(R"({"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}})", 4),
              HasSubstr("type \"F99\" is not known"));
  EXPECT_THAT(failure("[1]", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(failure("{", 0), HasSubstr("not a JSON object"));
}

TEST(Safetensors, cut_at_any_byte_is_an_error_and_a_flipped_bit_never_crashes) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/a.safetensors";
  write_tensors(path);
  const std::string bytes = *read_text(posix_files(), path);
  for (size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_TRUE(write_bytes(path, bytes.substr(0, size)).ok());
    const auto reader = open_safetensors(posix_files(), path);
    ASSERT_FALSE(reader.ok()) << size;
    EXPECT_THAT(reader.status().message(), HasSubstr(path));
  }
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  for (size_t bit = 0; bit < (header + 8) * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    ASSERT_TRUE(write_bytes(path, damaged).ok());
    const auto reader = open_safetensors(posix_files(), path);
    if (!reader.ok()) continue;
    for (size_t i = 0; i < (*reader)->tensors().size(); ++i) all_of(**reader, i);
  }
}

TEST(TensorFiles, nothing_is_there_before_close) {
  TemporaryFolder folder;
  {
    auto npy = create_npy(posix_files(), folder.path() + "/a.npy", tensors()[0]);
    auto safe = create_safetensors(posix_files(), folder.path() + "/a.safetensors", tensors());
    ASSERT_TRUE(npy.ok() && safe.ok());
    ASSERT_TRUE((*npy)->append(std::as_bytes(std::span("abcd", 4))).ok());
  }
  EXPECT_TRUE(posix_files().list(folder.path())->empty());
}

}  // namespace
}  // namespace recmill::checkpoint
