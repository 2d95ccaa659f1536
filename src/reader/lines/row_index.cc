// SPDX-License-Identifier: Apache-2.0
#include "reader/lines/row_index.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/key_text.h"
#include "reader/bad_row.h"
#include "reader/cache_entry.h"
#include "reader/lines/row_index_file.h"
#include "reader/row/plain_text_parser.h"

namespace recmill::reader {
namespace {

constexpr size_t kChunkBytes = size_t{8} << 20;
constexpr uint64_t kAccessSpacing = uint64_t{8} << 20;

// The pass itself: text comes in chunks, each begins at a row.
class RowScan {
 public:
  RowScan(const std::string& path, const RowRule& rule, ThreadPool& pool)
      : path_(path),
        file_name_(std::filesystem::path(path).filename().string()),
        rule_(rule),
        pool_(pool),
        header_(rule.layout.header) {}

  // Takes rows [0, ends[0]), [ends[0], ends[1]) ... of `text`, and the blank lines up to `end`.
  Status take(std::string_view text, const std::vector<uint32_t>& ends, size_t end) {
    size_t first = 0;
    if (header_ && !ends.empty()) {
      pass(text, 0, ends[0]);
      header_ = false;
      first = 1;
    }
    RECMILL_RETURN_IF_ERROR(judge(text, ends, first));
    for (size_t i = first; i < ends.size(); ++i) {
      const uint32_t begin = i == 0 ? 0 : ends[i - 1];
      if (index_.rows % kRowsPerBlock == 0) {
        pass(text, passed_, begin);
        index_.blocks.push_back({offset_, line_, index_.kept});
      }
      if (verdicts_.empty() || verdicts_[i] == Verdict::keep) ++index_.kept;
      if (!verdicts_.empty() && verdicts_[i] == Verdict::bad) index_.bad.push_back(index_.rows);
      ++index_.rows;
    }
    pass(text, passed_, static_cast<uint32_t>(end));
    passed_ = 0;
    return {};
  }

  // Counts the first bytes of the file, which are no row.
  void skip(size_t bytes) { offset_ = bytes; }

  int64_t line() const { return line_; }
  RowIndex finish() {
    index_.bytes = offset_;
    return std::move(index_);
  }

 private:
  enum class Verdict : uint8_t { keep, other_side, bad };

  // Counts bytes and lines of [begin, end).
  void pass(std::string_view text, uint32_t begin, uint32_t end) {
    line_ += std::count(text.begin() + begin, text.begin() + end, '\n');
    offset_ += end - begin;
    passed_ = end;
  }

  // Fills verdicts_, unless every row is kept without a look.
  Status judge(std::string_view text, const std::vector<uint32_t>& ends, size_t first) {
    verdicts_.clear();
    if (rule_.split.keeps_all() && rule_.on_bad_row == OnBadRow::fail) return {};
    verdicts_.resize(ends.size());
    reasons_.assign(ends.size(), {});
    pool_.run_ranges(static_cast<int64_t>(ends.size() - first), 512, [&](int64_t b, int64_t e) {
      for (size_t i = first + b; i < first + e; ++i) judge_row(text, ends, i, first);
    });
    size_t bad = index_.bad.size();
    for (size_t i = first; i < ends.size(); ++i) {
      if (verdicts_[i] != Verdict::bad) continue;
      const bool fails = rule_.on_bad_row == OnBadRow::fail;
      if (!fails && ++bad <= static_cast<size_t>(rule_.bad_row_limit)) continue;
      const uint32_t begin = row_at(text, ends, i).begin;
      const auto line = line_ + std::count(text.begin() + passed_, text.begin() + begin, '\n');
      const Status status = reasons_[i].at(path_ + ":" + std::to_string(line));
      if (fails) return status;
      return too_many_bad_rows(status, static_cast<int64_t>(bad) - 1, rule_.bad_row_limit);
    }
    return {};
  }

  TextRow row_at(std::string_view text, const std::vector<uint32_t>& ends, size_t i) const {
    return trim_row(text.data(), i == 0 ? 0 : ends[i - 1], ends[i], rule_.layout);
  }

  void judge_row(std::string_view text, const std::vector<uint32_t>& ends, size_t i, size_t first) {
    const TextRow row = row_at(text, ends, i);
    const std::string_view content = text.substr(row.begin, row.size);
    if (rule_.on_bad_row == OnBadRow::skip) {
      thread_local RowValues values;
      reasons_[i] = parse_row(rule_.layout, content, values);
      if (!reasons_[i].ok()) {
        verdicts_[i] = Verdict::bad;
        return;
      }
    }
    const auto number = index_.rows + static_cast<int64_t>(i - first);
    const auto keeps = rule_.split.keeps(rule_.layout, content, file_name_, number);
    if (!keeps.ok()) reasons_[i] = keeps.status();
    verdicts_[i] = !keeps.ok() ? Verdict::bad : *keeps ? Verdict::keep : Verdict::other_side;
  }

  const std::string& path_;
  const std::string file_name_;
  const RowRule& rule_;
  ThreadPool& pool_;
  bool header_;
  RowIndex index_;
  uint64_t offset_ = 0;  // of the text at passed_
  int64_t line_ = 1;
  uint32_t passed_ = 0;  // bytes of the text already counted
  std::vector<Verdict> verdicts_;
  std::vector<Status> reasons_;
};

}  // namespace

std::string RowRule::fingerprint() const {
  KeyText key;
  key.add(layout.fingerprint()).add(split.rule().fingerprint()).add(name_of(on_bad_row));
  return key.add(on_bad_row == OnBadRow::skip ? bad_row_limit : 0).text();
}

std::string FileRules::fingerprint() const {
  KeyText key;
  for (size_t file = 0; file < of_file.size(); ++file) key.add(of(file).fingerprint());
  return std::move(key).text();
}

Result<RowIndex> scan_rows(Files& files, const std::string& path, const RowRule& rule,
                           ThreadPool& pool) {
  RECMILL_ASSIGN_OR_RETURN(auto stream, open_byte_stream(files, path));
  std::vector<AccessPoint> access;
  stream->collect(kAccessSpacing, access);
  RowScan scan(path, rule, pool);
  // Not cleared: a small file touches little of it.
  const auto text = std::make_unique_for_overwrite<char[]>(kMaxRowBytes + kChunkBytes);
  std::vector<uint32_t> ends;
  size_t carried = 0;  // bytes of an unfinished row at the front of `text`
  for (bool at_start = true; true; at_start = false) {
    RECMILL_ASSIGN_OR_RETURN(const size_t size, stream->read({text.get() + carried, kChunkBytes}));
    std::string_view content(text.get(), carried + size);
    if (at_start) {
      content = after_byte_order_mark(content);
      scan.skip(size - content.size());
    }
    const bool at_end = size < kChunkBytes;
    ends.clear();
    find_row_ends(content, rule.layout, ends);
    size_t whole = ends.empty() ? 0 : ends.back();
    whole += blank_lines(content.substr(whole), rule.layout);
    if (at_end && is_blank_line(content.substr(whole), rule.layout)) whole = content.size();
    carried = content.size() - whole;
    const bool too_long = carried > kMaxRowBytes;
    if (at_end && carried > 0 && !too_long) ends.push_back(whole = content.size());
    RECMILL_RETURN_IF_ERROR(scan.take(content, ends, whole));
    if (too_long) {
      return Status::Failed(path + ":" + std::to_string(scan.line()) +
                            ": the row does not end within 16 MiB (a quote that is not closed?)");
    }
    if (at_end) {
      RowIndex index = scan.finish();
      index.access = std::move(access);
      return index;
    }
    std::memmove(text.get(), content.data() + whole, carried);
  }
}

Result<RowIndex> find_or_scan_rows(Files& files, const std::string& cache, const std::string& path,
                                   const RowRule& rule, ThreadPool& pool) {
  return find_or_scan(files, cache, path, rule.fingerprint(),
                      [&] { return scan_rows(files, path, rule, pool); });
}

Result<RowIndex> find_or_scan(Files& files, const std::string& cache, const std::string& path,
                              const std::string& rule,
                              const std::function<Result<RowIndex>()>& scan) {
  if (cache.empty()) return scan();
  RECMILL_ASSIGN_OR_RETURN(const CacheEntry entry,
                           CacheEntry::open(files, cache, {&path, 1}, rule, ".rows"));
  if (const auto bytes = entry.find()) {
    if (auto found = decode_row_index(*bytes, entry.key())) return *std::move(found);
  }
  RECMILL_ASSIGN_OR_RETURN(auto index, scan());
  entry.keep(encode_row_index(index, entry.key()), "row index");
  return index;
}

}  // namespace recmill::reader
