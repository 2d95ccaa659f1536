// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/json/json.h"
#include "base/random.h"
#include "base/temporary_folder.h"
#include "base/testing/faulty_files.h"
#include "checkpoint/folder.h"
#include "checkpoint/testing/small_checkpoint.h"

namespace recmill::checkpoint {
namespace {

constexpr uint64_t kSeed = 17;

std::string why(const Status& status) {
  return status.message();
}

}  // namespace

TEST(Checkpoint, holds_what_was_written_whatever_the_pieces_and_ranks) {
  for (const int parts : {1, 2, 3, 8}) {
    for (const int64_t piece : {1, 7, 40}) {
      TemporaryFolder folder;
      const std::string path = folder.path() + "/run/checkpoints";
      const Status written = write_small(posix_files(), path, 12, parts, piece);
      ASSERT_TRUE(written.ok()) << why(written);
      auto newest = open_newest(posix_files(), path);
      ASSERT_TRUE(newest.ok() && newest->reader != nullptr);
      EXPECT_EQ(newest->reader->path(), path + "/step-000000000012");
      const Status checked = check_small(*newest->reader);
      EXPECT_TRUE(checked.ok()) << why(checked) << " parts " << parts;
      // Any range, over block boundaries and lists of rows.
      const Entry& entry = *newest->reader->find(kWeight.name);
      for (uint64_t round = 0; round < 50; ++round) {
        const Random random(kSeed, Purpose::test);
        const auto first = static_cast<int64_t>(random.below(41, round));
        const auto count = static_cast<int64_t>(random.below(41 - first, round, 1));
        std::vector<std::byte> bytes(count * kWeight.row_bytes());
        ASSERT_TRUE(newest->reader->read(entry, first, count, bytes).ok());
        EXPECT_EQ(bytes, small_rows(12, kWeight, first, count)) << "seed " << kSeed;
      }
    }
  }
}

TEST(Checkpoint, large_entries_are_cut_into_blocks_and_scattered_rows_listed) {
  FaultyFiles files;
  const EntrySpec wide{"table/wide/weight", ElementType::float32, {300000, 8}};  // 9.6 MB
  auto writer = Writer::create(files, "ck", 1);
  ASSERT_TRUE(writer.ok());
  std::vector<PartContents> contents;
  for (int number = 0; number < 2; ++number) {
    auto part = *PartWriter::create(files, (*writer)->path(), number);
    // Part 0: the first 200,000 rows in pieces of 1,000; part 1: the rest, odd rows after even.
    if (number == 0) {
      for (int64_t row = 0; row < 200000; row += 1000) {
        ASSERT_TRUE(part->add(wide, row, small_rows(1, wide, row, 1000)).ok());
      }
    } else {
      for (const int64_t start : {200000, 200001}) {
        std::vector<int64_t> rows;
        std::vector<std::byte> bytes;
        for (int64_t row = start; row < 300000; row += 2) {
          const auto more = small_rows(1, wide, row, 1);
          rows.push_back(row);
          bytes.insert(bytes.end(), more.begin(), more.end());
          if (row % 1000 < 998) continue;
          ASSERT_TRUE(part->add(wide, rows, bytes).ok());
          rows.clear();
          bytes.clear();
        }
      }
    }
    contents.push_back(*part->finish());
  }
  ASSERT_LE(contents[0].entries[0].blocks.size(), 110u);
  ASSERT_LE(contents[1].entries[0].blocks.size(), 60u);
  ASSERT_TRUE((*writer)->finish(contents, Json::object()).ok());
  auto reader = *Reader::open(files, "ck/" + folder_name(1));
  ASSERT_TRUE(reader->verify().ok());
  const auto values = reader->read_all<float>(*reader->find(wide.name));
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(std::memcmp(values->data(), small_rows(1, wide, 0, 300000).data(), 9600000), 0);
}

TEST(Checkpoint, missing_double_and_disagreeing_rows_are_refused_before_it_is_published) {
  const auto finish = [](auto add) {
    FaultyFiles files;
    auto writer = *Writer::create(files, "ck", 1);
    std::vector<PartContents> contents;
    for (int number = 0; number < 2; ++number) {
      auto part = *PartWriter::create(files, writer->path(), number);
      add(*part, number);
      contents.push_back(*part->finish());
    }
    const Status status = writer->finish(contents, Json::object());
    writer.reset();
    EXPECT_FALSE(files.exists("ck")) << "something half-written stays";
    return status.message();
  };
  const auto rows = [](PartWriter& part, int64_t first, int64_t count) {
    ASSERT_TRUE(part.add(kWeight, first, small_rows(1, kWeight, first, count)).ok());
  };
  const std::string where = "ck/step-000000000001.tmp: entry 'table/C1/weight'";
  EXPECT_EQ(finish([&](PartWriter& part, int number) { rows(part, number * 21, 19); }),
            where + ": row 19 is missing");
  EXPECT_EQ(finish([&](PartWriter& part, int number) { rows(part, number * 10, 30); }),
            where + ": row 10 is there twice");
  const auto columns = [](PartWriter& part, ColumnRange range) {
    const std::vector<std::byte> bytes(kWeight.rows() * range.count * 4);
    ASSERT_TRUE(part.add(kWeight, 0, bytes, range).ok());
  };
  EXPECT_EQ(finish([&](PartWriter& part, int number) {
              columns(part, {2 * number, 1});
            }),
            where + ": column 1 is missing");
  EXPECT_EQ(finish([&](PartWriter& part, int number) {
              columns(part, {number, 2});
            }),
            where + ": column 1 is there twice");
  EXPECT_EQ(finish([&](PartWriter& part, int number) {
              columns(part, {number, 1});
            }),
            where + ": column 2 is missing");
  EXPECT_EQ(finish([&](PartWriter& part, int number) {
              EntrySpec spec = kWeight;
              spec.shape[1] = 3 + number;
              ASSERT_TRUE(part.add(spec, 0, small_rows(1, spec, 0, 40)).ok());
            }),
            where + " has two types or shapes");
}

TEST(Checkpoint, columns_in_pieces_make_up_rows_and_those_that_are_not_asked_for_are_not_read) {
  FaultyFiles files;
  const EntrySpec wide{"table/wide/weight", ElementType::float32, {500, 40}};
  const std::vector<ColumnRange> pieces{{0, 16}, {16, 16}, {32, 8}};
  const auto cut = [&](int64_t first, int64_t count, ColumnRange columns) {
    const auto rows = small_rows(1, wide, first, count);
    std::vector<std::byte> bytes;
    for (int64_t i = 0; i < count; ++i) {
      const auto from = rows.begin() + i * wide.row_bytes() + columns.first * 4;
      bytes.insert(bytes.end(), from, from + columns.count * 4);
    }
    return bytes;
  };
  auto writer = *Writer::create(files, "ck", 1);
  std::vector<PartContents> contents;
  for (size_t number = 0; number < pieces.size(); ++number) {
    auto part = *PartWriter::create(files, writer->path(), static_cast<int>(number));
    for (int64_t row = 0; row < 500; row += 100)
      ASSERT_TRUE(part->add(wide, row, cut(row, 100, pieces[number]), pieces[number]).ok());
    contents.push_back(*part->finish());
  }
  ASSERT_TRUE(writer->finish(contents, Json::object()).ok());
  const std::string path = "ck/" + folder_name(1);
  auto reader = *Reader::open(files, path);
  ASSERT_TRUE(reader->verify().ok());
  files.content(path + "/part-2")[5] ^= 1;
  reader = *Reader::open(files, path);
  for (const ColumnRange columns : {ColumnRange{0, 16}, {16, 16}, {0, 32}, {5, 20}, {20, 1}}) {
    std::vector<std::byte> bytes(333 * columns.count * 4);
    const Status status = reader->read(*reader->find(wide.name), 77, 333, columns, bytes);
    EXPECT_TRUE(status.ok()) << why(status);
    EXPECT_EQ(bytes, cut(77, 333, columns)) << columns.first << " " << columns.count;
  }
  std::vector<std::byte> bytes(wide.row_bytes());
  EXPECT_NE(why(reader->read(*reader->find(wide.name), 9, 1, bytes)).find(path + "/part-2"),
            std::string::npos);
}

TEST(Checkpoint, expect_says_what_is_there_instead) {
  FaultyFiles files;
  ASSERT_TRUE(write_small(files, "ck", 3).ok());
  auto reader = *Reader::open(files, "ck/" + folder_name(3));
  EntrySpec other = kWeight;
  other.shape = {41, 3};
  EXPECT_EQ(
      reader->expect(other).status().message(),
      "ck/step-000000000003: 'table/C1/weight' is float32 [40, 3] instead of float32 [41, 3]");
  other.name = "table/C9/weight";
  EXPECT_EQ(reader->expect(other).status().message(),
            "ck/step-000000000003: has no 'table/C9/weight'");
}

TEST(Checkpoint, cut_at_any_byte_it_does_not_open_and_the_file_is_named) {
  for (const char* name : {"manifest", "part-0", "part-1"}) {
    FaultyFiles files;
    ASSERT_TRUE(write_small(files, "ck", 1, 2).ok());
    const std::string path = "ck/" + folder_name(1) + "/" + name;
    const std::string whole = files.content(path);
    for (size_t size = 0; size < whole.size(); ++size) {
      files.content(path) = whole.substr(0, size);
      const auto reader = Reader::open(files, "ck/" + folder_name(1));
      ASSERT_FALSE(reader.ok()) << name << " cut at " << size;
      ASSERT_NE(reader.status().message().find(path), std::string::npos);
    }
    files.content(path) = whole + "x";
    EXPECT_FALSE(Reader::open(files, "ck/" + folder_name(1)).ok()) << "a byte too many";
  }
}

TEST(Checkpoint, any_bit_flipped_is_found_and_the_file_named) {
  for (const char* name : {"manifest", "part-0", "part-1"}) {
    FaultyFiles files;
    ASSERT_TRUE(write_small(files, "ck", 1, 2).ok());
    const std::string path = "ck/" + folder_name(1) + "/" + name;
    std::string& content = files.content(path);
    for (size_t bit = 0; bit < content.size() * 8; ++bit) {
      content[bit / 8] = static_cast<char>(content[bit / 8] ^ (1 << bit % 8));
      auto reader = Reader::open(files, "ck/" + folder_name(1));
      const Status status = reader.ok() ? (*reader)->verify() : reader.status();
      ASSERT_FALSE(status.ok()) << name << " bit " << bit;
      ASSERT_NE(status.message().find(path), std::string::npos) << status.message();
      content[bit / 8] = static_cast<char>(content[bit / 8] ^ (1 << bit % 8));
    }
  }
}

TEST(Checkpoint, damage_names_entry_and_rows) {
  FaultyFiles files;
  ASSERT_TRUE(write_small(files, "ck", 1).ok());
  auto reader = *Reader::open(files, "ck/" + folder_name(1));
  const Block& block = reader->find(kWeight.name)->blocks[0];
  files.content("ck/" + folder_name(1) + "/part-0")[block.offset] ^= 4;
  EXPECT_EQ(reader->verify().message(),
            "ck/step-000000000001/part-0: the block at byte " + std::to_string(block.offset) +
                " (table/C1/weight, rows 0 to 39) is damaged: its checksum is wrong");
}

TEST(CheckpointFolder, the_newest_whole_one_is_found_and_damaged_newer_ones_are_named) {
  FaultyFiles files;
  EXPECT_EQ(open_newest(files, "ck")->reader, nullptr);
  for (const int64_t step : {9, 10, 100}) ASSERT_TRUE(write_small(files, "ck", step).ok());
  files.content("ck/" + folder_name(100) + "/manifest")[60] ^= 1;
  const auto newest = open_newest(files, "ck");
  ASSERT_NE(newest->reader, nullptr);
  EXPECT_EQ(newest->reader->step(), 10);
  EXPECT_EQ(newest->damaged,
            std::vector<std::string>{"ck/step-000000000100/manifest: is damaged: its checksum or "
                                     "length is wrong"});
}

TEST(CheckpointFolder, the_one_marked_as_the_best_stays_and_is_taken_unless_the_newest_is_wanted) {
  FaultyFiles files;
  for (int64_t step = 1; step <= 5; ++step) ASSERT_TRUE(write_small(files, "ck", step).ok());
  EXPECT_EQ(*best_step(files, "ck"), std::nullopt);
  EXPECT_EQ(open_wanted(files, "ck", Which::best_or_newest)->which, "newest");
  ASSERT_TRUE(mark_best(files, "ck", 2).ok());
  ASSERT_TRUE(keep_last(files, "ck", 1).ok());
  EXPECT_EQ(*list_steps(files, "ck"), (std::vector<int64_t>{2, 5}));
  for (const Which which : {Which::best_or_newest, Which::best}) {
    const auto chosen = open_wanted(files, "ck", which);
    ASSERT_TRUE(chosen.ok()) << chosen.status().message();
    EXPECT_EQ(chosen->reader->step(), 2);
    EXPECT_EQ(chosen->which, "best");
  }
  EXPECT_EQ(open_wanted(files, "ck", Which::newest)->reader->step(), 5);
  ASSERT_TRUE(mark_best(files, "ck", 5).ok());
  ASSERT_TRUE(keep_last(files, "ck", 1).ok());
  EXPECT_EQ(*list_steps(files, "ck"), (std::vector<int64_t>{5}));
  ASSERT_TRUE(unmark_best(files, "ck").ok());
  const Status none = open_wanted(files, "ck", Which::best).status();
  EXPECT_NE(none.message().find("/ck: no checkpoint is marked as the best; "), std::string::npos)
      << none.message();
}

TEST(CheckpointFolder, a_best_one_that_is_gone_is_an_error_that_names_it_and_nothing_in_its_place) {
  FaultyFiles files;
  ASSERT_TRUE(write_small(files, "ck", 5).ok());
  ASSERT_TRUE(mark_best(files, "ck", 4).ok());
  const Status gone = open_wanted(files, "ck", Which::best_or_newest).status();
  EXPECT_EQ(gone.code(), Status::Code::bad_request);
  EXPECT_NE(gone.message().find("the best checkpoint cannot be taken, the newest may be: ck/step-"),
            std::string::npos)
      << gone.message();
  EXPECT_EQ(open_wanted(files, "ck", Which::newest)->reader->step(), 5);
  for (const char* text : {"", "step-4\n", "ste", "../other\n"}) {
    ASSERT_TRUE(write_atomically(files, "ck/best", text).ok());
    EXPECT_EQ(best_step(files, "ck").status().message(), "ck/best: names no checkpoint") << text;
  }
}

TEST(CheckpointFolder, keep_last_leaves_the_newest_whole_ones_and_never_the_last_whole_one) {
  FaultyFiles files;
  for (int64_t step = 1; step <= 6; ++step) ASSERT_TRUE(write_small(files, "ck", step).ok());
  files.content("ck/" + folder_name(6) + "/manifest")[60] ^= 1;
  files.content("ck/" + folder_name(2) + "/manifest")[60] ^= 1;
  ASSERT_TRUE(files.make_folder("ck/" + folder_name(7) + ".tmp").ok());
  ASSERT_TRUE(keep_last(files, "ck", 2).ok());
  EXPECT_EQ(*list_steps(files, "ck"), (std::vector<int64_t>{4, 5, 6}));
  EXPECT_FALSE(files.exists("ck/" + folder_name(7) + ".tmp"));
  files.content("ck/" + folder_name(5) + "/manifest")[60] ^= 1;
  ASSERT_TRUE(keep_last(files, "ck", 1).ok());
  EXPECT_EQ(open_newest(files, "ck")->reader->step(), 4);
}

TEST(CheckpointFolder, a_whole_checkpoint_is_never_replaced_and_a_damaged_one_is) {
  FaultyFiles files;
  ASSERT_TRUE(write_small(files, "ck", 5).ok());
  EXPECT_EQ(write_small(files, "ck", 5).message(), "ck/step-000000000005: is there already");
  files.content("ck/" + folder_name(5) + "/manifest")[60] ^= 1;
  ASSERT_TRUE(write_small(files, "ck", 5).ok());
  EXPECT_TRUE(check_small(*open_newest(files, "ck")->reader).ok());
}

/// Two parts have some rows each, and the rule makes the others.
TEST(Checkpoint, a_rule_makes_the_rows_that_are_in_no_part) {
  FaultyFiles files;
  const EntrySpec entry{"e", ElementType::float32, {10, 2}}, empty{"f", ElementType::float32, {4}};
  const RowRule rule{RowRule::Kind::constant, 0.5f, 0, 0};
  auto writer = *Writer::create(files, "a", 3);
  std::vector<PartContents> parts;
  for (int p = 0; p < 2; ++p) {
    auto part = *PartWriter::create(files, writer->path(), p);
    ASSERT_TRUE(part->add_rule(entry, rule).ok());
    ASSERT_TRUE(part->add_rule(empty, rule).ok());
    const std::vector<float> rows{1.0f + static_cast<float>(p), 2.0f, 3.0f, 4.0f};
    const std::vector<int64_t> numbers{p, 5 + 2 * p};
    ASSERT_TRUE(part->add(entry, numbers, std::as_bytes(std::span(rows))).ok());
    parts.push_back(*part->finish());
    parts.back() = *decode_part(encode(parts.back()));
  }
  ASSERT_TRUE(writer->finish(std::move(parts), Json::object()).ok());
  const std::string path = "a/step-000000000003";
  EXPECT_TRUE(read_text(files, path + "/manifest")->starts_with("recmill-checkpoint 2 "));
  auto reader = *Reader::open(files, path);
  EXPECT_TRUE(reader->verify().ok());
  constexpr float kHalf = 0.5f;
  EXPECT_EQ(*reader->read_all<float>(*reader->find("e")),
            (std::vector<float>{1, 2, 2,     2,     kHalf, kHalf, kHalf, kHalf, kHalf, kHalf,
                                3, 4, kHalf, kHalf, 3,     4,     kHalf, kHalf, kHalf, kHalf}));
  EXPECT_EQ(*reader->read_all<float>(*reader->find("f")), std::vector<float>(4, kHalf));
  std::vector<float> column(10);
  ASSERT_TRUE(
      reader->read(*reader->find("e"), 0, 10, {1, 1}, std::as_writable_bytes(std::span(column)))
          .ok());
  EXPECT_EQ(column, (std::vector<float>{2, 2, kHalf, kHalf, kHalf, 4, kHalf, 4, kHalf, kHalf}));
}

TEST(Checkpoint, a_row_that_two_parts_have_is_an_error_with_a_rule_too) {
  FaultyFiles files;
  const EntrySpec entry{"e", ElementType::float32, {4}};
  auto writer = *Writer::create(files, "a", 3);
  std::vector<PartContents> parts;
  for (int p = 0; p < 2; ++p) {
    auto part = *PartWriter::create(files, writer->path(), p);
    ASSERT_TRUE(part->add_rule(entry, {}).ok());
    const float value = 1.0f;
    const int64_t row = 2;
    ASSERT_TRUE(part->add(entry, {&row, 1}, std::as_bytes(std::span(&value, 1))).ok());
    parts.push_back(*part->finish());
  }
  ASSERT_TRUE(writer->finish(std::move(parts), Json::object()).ok());
  auto reader = *Reader::open(files, "a/step-000000000003");
  EXPECT_EQ(reader->verify().message(), "a/step-000000000003: row 2 of 'e' is there twice");
}

}  // namespace recmill::checkpoint
