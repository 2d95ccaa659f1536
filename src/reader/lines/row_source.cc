// SPDX-License-Identifier: Apache-2.0
#include "reader/lines/row_source.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace recmill::reader {
namespace {

constexpr size_t kOpenStreams = 8;
constexpr size_t kMaxWindowBytes = size_t{1} << 31;

}  // namespace

void TextWindow::clear() {
  rows.clear();
  segments_.clear();
  places_.clear();
  size_ = 0;
}

char* TextWindow::grow(size_t bytes) {
  if (size_ + bytes > capacity_) {
    const size_t capacity = size_ + bytes + (size_ > 0 ? capacity_ / 2 : 0);
    auto memory = std::make_unique_for_overwrite<char[]>(capacity + 2 * kTextPadding);
    std::memset(memory.get(), 0, kTextPadding);
    if (size_ > 0) std::memcpy(memory.get() + kTextPadding, text(), size_);
    memory_ = std::move(memory);
    capacity_ = capacity;
  }
  return memory_.get() + kTextPadding + size_;
}

void TextWindow::permute(std::span<const uint32_t> order) {
  std::vector<TextRow> permuted;
  std::vector<Place> places;
  permuted.reserve(order.size());
  places.reserve(order.size());
  for (const uint32_t row : order) {
    permuted.push_back(rows[row]);
    places.push_back(places_[row]);
  }
  rows = std::move(permuted);
  places_ = std::move(places);
}

std::string TextWindow::place_of(const TextRow& row) const {
  const auto after = std::upper_bound(
      segments_.begin(), segments_.end(), row.begin,
      [](uint32_t begin, const Segment& segment) { return begin < segment.begin; });
  const Segment& segment = *std::prev(after);
  const auto lines = std::count(text() + segment.begin, text() + row.begin, '\n');
  return *segment.path + ":" + std::to_string(segment.line + lines);
}

Result<std::unique_ptr<RowSource>> RowSource::open(Files& files, std::vector<std::string> paths,
                                                   const std::string& cache, FileRules rules,
                                                   ThreadPool& pool) {
  std::unique_ptr<RowSource> source(new RowSource(files, std::move(paths), std::move(rules)));
  for (size_t file = 0; file < source->paths_.size(); ++file) {
    RECMILL_ASSIGN_OR_RETURN(auto index, find_or_scan_rows(files, cache, source->paths_[file],
                                                           source->rules_.of(file), pool));
    source->first_.push_back(source->first_.back() + index.kept);
    source->indexes_.push_back(std::move(index));
  }
  const auto has_rows = [](const RowIndex& index) { return index.rows > 0; };
  if (std::ranges::none_of(source->indexes_, has_rows)) {
    return Status::Failed(source->paths_[0] +
                          (source->indexes_[0].bytes == 0 ? ": is empty" : ": has no rows") +
                          (source->paths_.size() > 1 ? ", and no other file has any" : ""));
  }
  return source;
}

int64_t RowSource::bad_rows() const {
  int64_t bad = 0;
  for (const RowIndex& index : indexes_) bad += static_cast<int64_t>(index.bad.size());
  return bad;
}

std::vector<int64_t> RowSource::block_bounds(int64_t rows) const {
  std::vector<int64_t> bounds{0};
  for (size_t file = 0; file < indexes_.size(); ++file) {
    for (const RowBlock& block : indexes_[file].blocks) {
      const int64_t bound = first_[file] + block.kept;  // that of the next one where it keeps none
      if (bound > bounds.back() && bound < rows) bounds.push_back(bound);
    }
  }
  if (rows > 0) bounds.push_back(rows);
  return bounds;
}

Status RowSource::load(int64_t first, int64_t count, TextWindow& window) {
  window.clear();
  const int64_t end = std::min(first + count, rows());
  while (first < end) {
    const size_t file = std::upper_bound(first_.begin(), first_.end(), first) - first_.begin() - 1;
    const int64_t here = std::min(end, first_[file + 1]) - first;
    RECMILL_RETURN_IF_ERROR(load_file(file, first - first_[file], here, window));
    first += here;
  }
  std::memset(window.grow(0), 0, kTextPadding);
  return {};
}

// Reads the blocks that hold kept rows [first, first + count) of a file.
Status RowSource::load_file(size_t file, int64_t first, int64_t count, TextWindow& window) {
  const RowIndex& index = indexes_[file];
  const auto starts_after = [](int64_t row, const RowBlock& block) { return row < block.kept; };
  const auto& blocks = index.blocks;
  const size_t block =
      std::upper_bound(blocks.begin(), blocks.end(), first, starts_after) - blocks.begin() - 1;
  const size_t after =
      std::upper_bound(blocks.begin(), blocks.end(), first + count - 1, starts_after) -
      blocks.begin();
  const uint64_t bytes_end = after == blocks.size() ? index.bytes : blocks[after].offset;
  const size_t bytes = bytes_end - blocks[block].offset;
  if (window.size_ + bytes > kMaxWindowBytes) {
    return Status::BadRequest(paths_[file] + ":" + std::to_string(blocks[block].line) +
                              ": a window holds over 2 GiB of text (data.shuffle.window is too "
                              "large for such long rows)");
  }
  RECMILL_ASSIGN_OR_RETURN(ByteStream* const stream, stream_of(file));
  RECMILL_RETURN_IF_ERROR(stream->seek(blocks[block].offset));
  const auto begin = static_cast<uint32_t>(window.size_);
  RECMILL_ASSIGN_OR_RETURN(const size_t got, stream->read({window.grow(bytes), bytes}));
  if (got < bytes) return Status::Failed(paths_[file] + ": became shorter while it was read");
  window.segments_.push_back({&paths_[file], blocks[block].line, begin});
  window.size_ += bytes;
  return take_rows(file, block, first - blocks[block].kept, count, begin, window);
}

// Appends `count` kept rows of the text at `begin`, which starts at `block`, after the first
// `skip` kept ones.
Status RowSource::take_rows(size_t file, size_t block, int64_t skip, int64_t count, uint32_t begin,
                            TextWindow& window) {
  const std::string_view text(window.text() + begin, window.size_ - begin);
  ends_.clear();
  const RowRule& rule = rules_.of(file);
  find_row_ends(text, rule.layout, ends_);
  const size_t whole = ends_.empty() ? 0 : ends_.back();
  if (!is_blank_line(text.substr(whole + blank_lines(text.substr(whole), rule.layout)),
                     rule.layout)) {
    ends_.push_back(static_cast<uint32_t>(text.size()));
  }
  const auto& bad = indexes_[file].bad;
  int64_t number = static_cast<int64_t>(block) * kRowsPerBlock;
  auto next_bad = std::lower_bound(bad.begin(), bad.end(), number);
  const std::string name = std::filesystem::path(paths_[file]).filename().string();
  uint32_t row_begin = 0;
  for (size_t i = 0; i < ends_.size() && count > 0; ++i, ++number) {
    TextRow row = trim_row(text.data(), std::exchange(row_begin, ends_[i]), ends_[i], rule.layout);
    if (next_bad != bad.end() && *next_bad == number) {
      ++next_bad;
      continue;
    }
    if (!rule.split.keeps_all()) {
      RECMILL_ASSIGN_OR_RETURN(
          const bool keeps,
          rule.split.keeps(rule.layout, text.substr(row.begin, row.size), name, number));
      if (!keeps) continue;
    }
    if (skip-- > 0) continue;
    row.begin += begin;
    row.layout = rules_.of_file[file];
    window.rows.push_back(row);
    window.places_.push_back({static_cast<int32_t>(file), number});
    --count;
  }
  if (count == 0) return {};
  return Status::Failed(paths_[file] + ": changed while it was read");
}

Result<ByteStream*> RowSource::stream_of(size_t file) {
  const auto found = std::find_if(open_.begin(), open_.end(),
                                  [&](const OpenStream& open) { return open.file == file; });
  if (found != open_.end()) {
    std::rotate(found, found + 1, open_.end());
  } else {
    if (open_.size() == kOpenStreams) open_.erase(open_.begin());
    RECMILL_ASSIGN_OR_RETURN(auto stream, open_byte_stream(files_, paths_[file]));
    stream->use(indexes_[file].access);
    open_.push_back({file, std::move(stream)});
  }
  return open_.back().stream.get();
}

}  // namespace recmill::reader
