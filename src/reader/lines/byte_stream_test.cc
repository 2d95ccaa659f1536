// SPDX-License-Identifier: Apache-2.0
#include "reader/lines/byte_stream.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <atomic>

#include "base/random.h"
#include "base/temporary_folder.h"
#include "reader/lines/row_index.h"
#include "reader/lines/row_source.h"
#include "reader/testing/change_long_ago.h"
#include "reader/writers/compressed_file.h"

namespace recmill::reader {
namespace {

// Counts the bytes that are read.
class CountingFile final : public ReadableFile {
 public:
  CountingFile(std::unique_ptr<ReadableFile> file, std::atomic<uint64_t>& bytes)
      : file_(std::move(file)), bytes_(bytes) {}
  Result<size_t> read(uint64_t offset, std::span<std::byte> buffer) const override {
    auto size = file_->read(offset, buffer);
    if (size.ok()) bytes_ += *size;
    return size;
  }
  uint64_t size() const override { return file_->size(); }

 private:
  const std::unique_ptr<ReadableFile> file_;
  std::atomic<uint64_t>& bytes_;
};

class CountingFiles final : public Files {
 public:
  using Writable = Result<std::unique_ptr<WritableFile>>;
  Result<std::unique_ptr<ReadableFile>> open(const std::string& path) override {
    RECMILL_ASSIGN_OR_RETURN(auto file, posix_files().open(path));
    return std::unique_ptr<ReadableFile>(new CountingFile(std::move(file), bytes));
  }
  Writable create(const std::string& path) override { return posix_files().create(path); }
  Writable open_append(const std::string& path) override { return posix_files().open_append(path); }
  Status rename(const std::string& from, const std::string& to) override {
    return posix_files().rename(from, to);
  }
  Status remove(const std::string& path) override { return posix_files().remove(path); }
  Status make_folder(const std::string& path) override { return posix_files().make_folder(path); }
  Status sync_folder(const std::string& path) override { return posix_files().sync_folder(path); }
  Result<std::vector<std::string>> list(const std::string& folder) override {
    return posix_files().list(folder);
  }
  bool exists(const std::string& path) override { return posix_files().exists(path); }
  bool is_folder(const std::string& path) override { return posix_files().is_folder(path); }
  Result<ChangeTimes> changed_at(const std::string& path) override {
    return posix_files().changed_at(path);
  }

  std::atomic<uint64_t> bytes = 0;
};

class CompressedFiles : public ::testing::TestWithParam<const char*> {
 protected:
  // Rows of seeded digits, so that deflate makes blocks of all lengths.
  static std::string text_of(size_t bytes) {
    const Random random(3, Purpose::test);
    std::string text;
    for (uint64_t i = 0; text.size() < bytes; ++i) {
      text += std::to_string(random.below(1000, i, 0)) + '\t';
      text += std::to_string(random.below(uint64_t{1} << 40, i, 1)) + '\n';
    }
    return text;
  }
  // `members` gzip members or runs of Zstandard frames, one behind the other.
  std::string write(const std::string& text, size_t members) {
    const std::string path = folder_.path() + "/data." + GetParam();
    std::string all;
    for (size_t m = 0; m < members; ++m) {
      const size_t begin = text.size() * m / members, end = text.size() * (m + 1) / members;
      auto file = compress_by_name(path, *posix_files().create(path));
      EXPECT_TRUE(file->append(std::as_bytes(std::span(text).subspan(begin, end - begin))).ok());
      EXPECT_TRUE(file->close().ok());
      all += *read_text(posix_files(), path);
    }
    EXPECT_TRUE(write_atomically(posix_files(), path, all).ok());
    return path;
  }
  std::vector<AccessPoint> points_of(const std::string& path, const std::string& text,
                                     uint64_t spacing = uint64_t{64} << 10) {
    std::vector<AccessPoint> points;
    auto stream = *open_byte_stream(posix_files(), path);
    stream->collect(spacing, points);
    std::string all(text.size() + 1, '\0');
    EXPECT_EQ(*stream->read(all), text.size());
    all.pop_back();
    EXPECT_EQ(all, text) << "collecting changes nothing";
    return points;
  }

  TemporaryFolder folder_;
};

TEST_P(CompressedFiles, any_seek_by_access_points_gives_the_text_itself) {
  const std::string text = text_of(3 << 20);
  for (const size_t members : {1, 30}) {
    const std::string path = write(text, members);
    const auto points = points_of(path, text);
    const bool has_points = members > 1 || path.ends_with(".gz");
    EXPECT_EQ(points.size() > 10, has_points) << members;
    auto stream = *open_byte_stream(posix_files(), path);
    stream->use(points);
    const Random random(11, Purpose::test);
    for (uint64_t i = 0; i < 200; ++i) {
      const bool at_point = i % 3 == 0 && !points.empty();
      const uint64_t offset = at_point ? points[random.below(points.size(), i, 0)].offset
                                       : random.below(text.size() + 1, i, 0);
      const uint64_t wanted = random.below(i % 10 == 0 ? 1 << 20 : 5000, i, 1);
      std::string got(wanted, '\0');
      ASSERT_TRUE(stream->seek(offset).ok());
      const auto size = stream->read(got);
      ASSERT_TRUE(size.ok()) << size.status().message();
      ASSERT_EQ(got.substr(0, *size), text.substr(offset, wanted)) << offset;
    }
  }
}

TEST_P(CompressedFiles, windows_in_any_order_read_the_file_a_few_times_and_no_more) {
  constexpr uint64_t kWindow = uint64_t{512} << 10;
  const std::string text = text_of(uint64_t{24} << 20);
  const std::string path = write(text, GetParam() == std::string("gz") ? 1 : 48);
  const auto points = points_of(path, text, kWindow);
  CountingFiles files;
  auto stream = *open_byte_stream(files, path);
  stream->use(points);
  std::string got(kWindow, '\0');
  // Backwards: without access points each window would begin at the start, 24 files in all.
  for (uint64_t offset = text.size() / kWindow * kWindow; offset > 0; offset -= kWindow) {
    ASSERT_TRUE(stream->seek(offset).ok());
    const auto size = stream->read(got);
    ASSERT_TRUE(size.ok()) << size.status().message();
    ASSERT_EQ(std::string_view(got).substr(0, *size), text.substr(offset, kWindow));
  }
  EXPECT_LT(files.bytes, 6 * (*files.open(path))->size());
}

TEST_P(CompressedFiles, the_index_in_the_cache_keeps_the_access_points) {
  const std::string path = write(text_of(uint64_t{20} << 20), 1);
  change_long_ago(path);
  ThreadPool pool(2);
  RowRule rule;
  const std::string cache = folder_.path() + "/cache";
  const auto scanned = find_or_scan_rows(posix_files(), cache, path, rule, pool);
  ASSERT_TRUE(scanned.ok()) << scanned.status().message();
  EXPECT_EQ(scanned->access.size(), 2u);
  CountingFiles files;
  const auto kept = find_or_scan_rows(files, cache, path, rule, pool);
  ASSERT_TRUE(kept.ok()) << kept.status().message();
  EXPECT_EQ(*kept, *scanned);
  EXPECT_LT(files.bytes, 1 << 20) << "the file was not read again";
}

TEST(CompressedFrames, a_long_single_frame_is_named_in_one_warning_when_it_is_read_again) {
  const TemporaryFolder folder;
  const std::string text((size_t{40} << 20), 'a');
  std::string frame(ZSTD_compressBound(text.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), text.data(), text.size(), 1));
  const std::string path = folder.path() + "/one.zst";
  ASSERT_TRUE(write_atomically(posix_files(), path, frame).ok());
  const auto warnings_of = [&](std::initializer_list<uint64_t> offsets) {
    auto stream = *open_byte_stream(posix_files(), path);
    testing::internal::CaptureStderr();
    for (const uint64_t offset : offsets) EXPECT_TRUE(stream->seek(offset).ok());
    return testing::internal::GetCapturedStderr();
  };
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  EXPECT_EQ(warnings_of({10 * kMiB, 39 * kMiB, 0, 20 * kMiB, 10 * kMiB}), "")
      << "ahead, to the start, and a short way again";
  EXPECT_EQ(warnings_of({39 * kMiB, 38 * kMiB, 36 * kMiB}),
            "warning: " + path +
                ": is one long compressed frame, which is decompressed from its start again and "
                "again; write it with recmill convert, or as several frames\n");
  EXPECT_EQ(warnings_of({39 * kMiB, 38 * kMiB}), "") << "once for a file";
}

TEST(RowSource, reads_each_byte_once_in_pieces_of_blocks_whichever_rows_count) {
  const TemporaryFolder folder;
  std::vector<std::string> paths;
  uint64_t bytes = 0;
  for (const int64_t rows : {2 * kRowsPerBlock + 100, kRowsPerBlock, int64_t{50}}) {
    std::string text;
    for (int64_t row = 0; row < rows; ++row) text += std::to_string(row * row) + "\n";
    paths.push_back(folder.path() + "/" + std::to_string(rows) + ".tsv");
    ASSERT_TRUE(write_atomically(posix_files(), paths.back(), text).ok());
    bytes += text.size();
  }
  ThreadPool pool(2);
  for (const Subset subset : {Subset::all, Subset::train, Subset::eval}) {
    RowRule rule;
    SplitOptions split;
    split.by = SplitKind::fraction;
    split.eval_fraction = 0.3;
    rule.split = *TextSplit::make(*RowSplit::make(split, subset), rule.layout);
    CountingFiles files;
    auto opened = RowSource::open(files, paths, "", FileRules::same(rule, paths.size()), pool);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    RowSource& source = **opened;
    const auto bounds = source.block_bounds(source.rows());
    ASSERT_EQ(bounds.front(), 0);
    ASSERT_EQ(bounds.back(), source.rows());
    files.bytes = 0;
    TextWindow window;
    for (size_t i = 1; i < bounds.size(); ++i) {
      ASSERT_TRUE(source.load(bounds[i - 1], bounds[i] - bounds[i - 1], window).ok());
      EXPECT_EQ(static_cast<int64_t>(window.rows.size()), bounds[i] - bounds[i - 1]);
    }
    EXPECT_EQ(files.bytes, bytes) << name_of(subset);
    EXPECT_EQ(source.block_bounds(0), std::vector<int64_t>{0});
    EXPECT_EQ(source.block_bounds(5), (std::vector<int64_t>{0, 5}));
  }
}

INSTANTIATE_TEST_SUITE_P(All, CompressedFiles, ::testing::Values("gz", "zst"));

}  // namespace
}  // namespace recmill::reader
