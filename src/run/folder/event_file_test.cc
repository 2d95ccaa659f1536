// SPDX-License-Identifier: Apache-2.0
#include "run/folder/event_file.h"

#include <gtest/gtest.h>

#include "base/temporary_folder.h"

namespace recmill::train {
namespace {

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

std::string to_hex(std::string_view bytes) {
  std::string hex;
  for (unsigned char c : bytes) {
    hex.push_back("0123456789abcdef"[c >> 4]);
    hex.push_back("0123456789abcdef"[c & 15]);
  }
  return hex;
}

// Event at 1.5 s: key 09, 1.5 as a double; then the rest of the event.
const std::string at_1_5 = "09000000000000f83f";

}  // namespace

TEST(EventFile, holds_the_bytes_that_tensorboard_reads) {
  TemporaryFolder folder;
  auto file = EventFile::create_in(posix_files(), folder.path() + "/run", [] { return 1.5; });
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_TRUE(file->scalar("auc", 300, 0.75).ok());
  ASSERT_TRUE(file->close().ok());
  const auto text = read_text(posix_files(), folder.path() + "/run/events.out.tfevents.1.recmill");
  ASSERT_TRUE(text.ok()) << text.status().message();
  // file_version: key 1a, 13 characters, "brain.Event:2".
  const std::string version = at_1_5 + "1a0d" + to_hex("brain.Event:2");
  // step 300: key 10, varint ac 02; summary: key 2a, 12 bytes: value: key 0a, 10 bytes: tag: key
  // 0a, 3 characters, "auc"; simple_value: key 15, 0.75 as a float.
  const std::string scalar = at_1_5 + "10ac02" + "2a0c" + "0a0a" + "0a03617563" + "150000403f";
  EXPECT_EQ(to_hex(*text),
            to_hex(framed_record(from_hex(version)) + framed_record(from_hex(scalar))));
}

TEST(EventFile, frames_a_record_with_masked_checksums) {
  // Length 9; the masked CRC-32C of its eight bytes; "123456789", whose CRC-32C is e3069283:
  // rotated right by 15 bits 2507c60d, plus a282ead8.
  const std::string record = framed_record("123456789");
  EXPECT_EQ(to_hex(record.substr(0, 8)), "0900000000000000");
  EXPECT_EQ(record.substr(12, 9), "123456789");
  EXPECT_EQ(to_hex(record.substr(21)), "e5b08ac7");
  EXPECT_EQ(record.size(), 25u);
}

TEST(KeepEvents, takes_out_what_is_not_kept_and_half_a_record_and_leaves_the_rest_as_it_is) {
  TemporaryFolder folder;
  const auto written = [&](double clock, const std::vector<int64_t>& steps) {
    auto file = EventFile::create_in(posix_files(), folder.path(), [=] { return clock; });
    EXPECT_TRUE(file.ok());
    for (const int64_t step : steps) {
      EXPECT_TRUE(file->scalar("train/auc", step, 0.5).ok());
      EXPECT_TRUE(file->scalar("eval/log_loss", step, 0.25).ok());
    }
    EXPECT_TRUE(file->close().ok());
    const std::string path = folder.path() + "/events.out.tfevents." +
                             std::to_string(static_cast<int64_t>(clock)) + ".recmill";
    return *read_text(posix_files(), path);
  };
  const auto content = [&](const std::string& name) {
    return *read_text(posix_files(), folder.path() + "/events.out.tfevents." + name + ".recmill");
  };
  const std::string first = written(1, {1, 2, 128});
  const std::string second = written(2, {300, 70000});
  ASSERT_TRUE(write_atomically(posix_files(), folder.path() + "/events.out.tfevents.2.recmill",
                               second + second.substr(0, 20))
                  .ok());
  std::vector<std::pair<std::string, int64_t>> seen;
  Status status = keep_events(posix_files(), folder.path(), [&](std::string_view tag, int64_t at) {
    seen.emplace_back(tag, at);
    return true;
  });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_EQ(seen[4], std::pair(std::string("train/auc"), int64_t{128}));
  EXPECT_EQ(seen[9], std::pair(std::string("eval/log_loss"), int64_t{70000}));
  EXPECT_EQ(content("1"), first);
  EXPECT_EQ(content("2"), second) << "half a record stays";
  status = keep_events(posix_files(), folder.path(), [](std::string_view tag, int64_t at) {
    return at < 300 || (at == 300 && tag == "train/auc");
  });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(content("1"), first);
  const size_t version = framed_record(from_hex(at_1_5 + "1a0d") + "brain.Event:2").size();
  const std::string left = content("2");
  EXPECT_EQ(left, second.substr(0, left.size()));
  EXPECT_GT(left.size(), version);
  EXPECT_LT(left.size(), version + (second.size() - version) / 2);
  EXPECT_TRUE(keep_events(posix_files(), folder.path() + "/nowhere", nullptr).ok());
}

TEST(EventFile, a_second_file_in_the_same_second_gets_a_name_of_its_own) {
  TemporaryFolder folder;
  for (int i = 0; i < 3; ++i) {
    auto file = EventFile::create_in(posix_files(), folder.path(), [] { return 7.0; });
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->close().ok());
  }
  EXPECT_EQ(posix_files().list(folder.path())->size(), 3u);
}

}  // namespace recmill::train
