// SPDX-License-Identifier: Apache-2.0
#include "table/row_map.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <utility>

namespace recmill::table {
namespace {

constexpr int64_t kShortRun = 16;        // rows: a shorter run takes less as listed rows
constexpr int kShortEntryGroupBits = 6;  // at most, of the 16 of an entry
constexpr size_t kAhead = 32;            // rows between the steps of a look-up

template <typename Values>
int64_t bytes_of(const Values& values) {
  return static_cast<int64_t>(std::span(values).size_bytes());
}

}  // namespace

// Goes through a plan's rows twice: to count, and to fill in.
class RowMap::Builder {
 public:
  Builder(RowMap& map, const TablePlacement& table, std::span<const FetchPath> paths)
      : map_(map), table_(table), paths_(paths) {}

  Status build() {
    find_same_paths();
    join_runs();
    count();
    if (run_groups_.size() + listed_groups_.size() > RowPlace::kMostGroups) {
      return Status::BadRequest("table '" + table_.table + "': its rows have " +
                                std::to_string(run_groups_.size() + listed_groups_.size()) +
                                " ways; at most " + std::to_string(RowPlace::kMostGroups) +
                                " can be told apart");
    }
    make_groups();
    if (listed_ > 0) {
      RECMILL_RETURN_IF_ERROR(allocate_listed());
      fill_listed();
    }
    number_runs();
    return {};
  }

 private:
  struct Stretch {
    int64_t end;
    int path;
  };

  // Paths that say the same are one.
  void find_same_paths() {
    std::map<std::pair<int, std::vector<int>>, int> first;
    for (const FetchPath& path : paths_) {
      const auto next = static_cast<int>(same_.size());
      same_.push_back(first.try_emplace({path.home, path.from}, next).first->second);
    }
  }

  // Runs of one path become one; short ones a part of that before, their rows listed.
  void join_runs() {
    int64_t begin = 0;
    for (const PlacedRun& run : table_.runs) {
      const int path = same_[run.path];
      const bool own = stretches_.empty() || run.end - begin >= kShortRun;
      if (own && (stretches_.empty() || stretches_.back().path != path)) {
        stretches_.push_back({run.end, path});
      } else {
        stretches_.back().end = run.end;
      }
      begin = run.end;
    }
  }

  // Calls f(row, path) for the rows that do not go with their stretch, ascending.
  template <typename F>
  void each_listed(const F& f) const {
    size_t stretch = 0, next = 0;
    int64_t row = 0;
    const auto given = [&](int64_t at) {
      return next < table_.listed_rows.size() && table_.listed_rows[next] == at;
    };
    for (const PlacedRun& run : table_.runs) {
      while (stretches_[stretch].end <= row) ++stretch;
      const int here = stretches_[stretch].path, path = same_[run.path];
      while (row < run.end) {
        if (path == here) {  // on to the next row that the plan lists
          row = next < table_.listed_rows.size() ? std::min(table_.listed_rows[next], run.end)
                                                 : run.end;
          if (row == run.end) break;
        }
        const int of_row = given(row) ? same_[table_.listed_paths[next++]] : path;
        if (of_row != here) f(row, of_row);
        ++row;
      }
    }
  }

  void count() {
    std::map<int, int64_t> run_rows, listed_rows;
    int64_t begin = 0;
    for (const Stretch& stretch : stretches_) {
      run_rows[stretch.path] += stretch.end - begin;
      begin = stretch.end;
    }
    size_t stretch = 0;
    each_listed([&](int64_t row, int path) {
      while (stretches_[stretch].end <= row) ++stretch;
      --run_rows[stretches_[stretch].path];
      ++listed_rows[path];
      ++listed_;
    });
    for (const auto& [path, rows] : run_rows) add_group(path, rows, run_groups_);
    for (const auto& [path, rows] : listed_rows) add_group(path, rows, listed_groups_);
  }

  void add_group(int path, int64_t rows, std::map<int, int>& groups) {
    groups[path] = static_cast<int>(group_rows_.size());
    group_rows_.push_back({path, rows});
  }

  void make_groups() {
    const int devices = map_.devices_;
    map_.slots_.assign(devices, 0);
    map_.extents_.assign(devices, {map_.rows_, 0});
    map_.first_slots_.assign(group_rows_.size() * devices, -1);
    for (const auto& [path, rows] : group_rows_) {
      const FetchPath& of = paths_[path];
      Group group{of.home, rows};
      if (of.copies() > 1) {
        group.first_copied = map_.copied_rows_;
        map_.copied_rows_ += rows;
      }
      map_.groups_.push_back(group);
      map_.from_.insert(map_.from_.end(), of.from.begin(), of.from.end());
    }
    enum Kind { everywhere, at_home, copy };
    for (const Kind wanted : {everywhere, at_home, copy}) {
      for (size_t g = 0; g < group_rows_.size(); ++g) {
        const FetchPath& of = paths_[group_rows_[g].first];
        for (int device = 0; device < devices; ++device) {
          const Kind kind = of.copies() == devices ? everywhere
                            : of.home == device    ? at_home
                                                   : copy;
          if (!of.has_copy(device) || kind != wanted) continue;
          map_.first_slots_[map_.index(static_cast<int>(g), device)] = map_.slots_[device];
          map_.slots_[device] += group_rows_[g].second;
        }
      }
    }
  }

  void extend(int group, int64_t begin, int64_t end) {
    for (int device = 0; device < map_.devices_; ++device) {
      if (map_.first_slots_[map_.index(group, device)] < 0) continue;
      RowRange& extent = map_.extents_[device];
      extent = {std::min(extent.begin, begin), std::max(extent.end, end)};
    }
  }

  Status allocate_listed() {
    const auto groups = static_cast<int>(listed_groups_.size());
    const int group_bits = std::bit_width(static_cast<unsigned>(groups - 1));
    const bool is_short = group_bits <= kShortEntryGroupBits;
    map_.number_bits_ = (is_short ? 16 : 32) - group_bits;
    map_.first_listed_group_ = listed_groups_.begin()->second;
    map_.listed_groups_ = groups;
    const auto lines = static_cast<size_t>((map_.rows_ + Line::kRows - 1) / Line::kRows);
    for (auto& [buffer, bytes] :
         {std::pair{&map_.bits_, lines * sizeof(Line)},
          std::pair{&map_.entries_, static_cast<size_t>(listed_) * (is_short ? 2 : 4)}}) {
      auto allocated = Buffer::allocate(bytes);
      if (!allocated.ok()) return allocated.status().at("map of table " + table_.table);
      *buffer = *std::move(allocated);
    }
    map_.lines_ = map_.bits_.as<Line>();
    if (is_short) {
      map_.short_entries_ = map_.entries_.as<uint16_t>();
    } else {
      map_.long_entries_ = map_.entries_.as<uint32_t>();
    }
    return {};
  }

  void fill_listed() {
    const int groups = map_.listed_groups_;
    std::vector<int64_t> numbers(groups);
    int64_t count = 0;
    each_listed([&](int64_t row, int path) {
      const int group = listed_groups_.at(path), at = group - map_.first_listed_group_;
      if (count % (int64_t{1} << map_.number_bits_) == 0)
        map_.block_numbers_.insert(map_.block_numbers_.end(), numbers.begin(), numbers.end());
      const int64_t before = map_.block_numbers_[map_.block_numbers_.size() - groups + at];
      const auto entry =
          static_cast<uint32_t>(int64_t{at} << map_.number_bits_ | (numbers[at]++ - before));
      if (map_.long_entries_.empty()) {
        map_.short_entries_[count++] = static_cast<uint16_t>(entry);
      } else {
        map_.long_entries_[count++] = entry;
      }
      const int64_t bit = row % Line::kRows;
      map_.lines_[row / Line::kRows].bits[bit / 64] |= uint64_t{1} << (bit % 64);
      extend(group, row, row + 1);
    });
    int64_t before = 0;
    for (Line& line : map_.lines_) {
      line.before = before;
      for (const uint64_t bits : line.bits) before += std::popcount(bits);
    }
  }

  void number_runs() {
    std::vector<int64_t> numbers(map_.groups_.size());
    int64_t begin = 0;
    for (const Stretch& stretch : stretches_) {
      const int group = run_groups_.at(stretch.path);
      const int64_t before = map_.find(begin).before;
      const int64_t after = stretch.end < map_.rows_ ? map_.find(stretch.end).before : listed_;
      map_.runs_.push_back({stretch.end, numbers[group] - begin + before, group});
      const int64_t rows = stretch.end - begin - (after - before);
      if (rows > 0) extend(group, begin, stretch.end);
      numbers[group] += rows;
      begin = stretch.end;
    }
    for (RowRange& extent : map_.extents_)
      if (extent.size() < 0) extent = {};
    if (map_.runs_.size() > 1) index_runs();
  }

  void index_runs() {
    const auto ranges = static_cast<int64_t>(std::bit_ceil(2 * map_.runs_.size()));
    map_.range_bits_ = 0;
    while ((map_.rows_ - 1) >> map_.range_bits_ >= ranges) ++map_.range_bits_;
    uint32_t run = 0;
    for (int64_t row = 0; row < map_.rows_; row += int64_t{1} << map_.range_bits_) {
      while (map_.runs_[run].end <= row) ++run;
      map_.run_at_.push_back(run);
    }
    map_.run_at_.push_back(static_cast<uint32_t>(map_.runs_.size()) - 1);
  }

  RowMap& map_;
  const TablePlacement& table_;
  const std::span<const FetchPath> paths_;
  std::vector<int> same_;  // [paths]: the first that says the same
  std::vector<Stretch> stretches_;
  int64_t listed_ = 0;
  std::map<int, int> run_groups_, listed_groups_;    // by path
  std::vector<std::pair<int, int64_t>> group_rows_;  // [groups]: path, rows
};

Result<std::shared_ptr<const RowMap>> RowMap::create(const TablePlacement& table,
                                                     std::span<const FetchPath> paths,
                                                     int devices) {
  RECMILL_CHECK(table.column_devices.empty() && table.rows > 0 && !table.runs.empty(), table.table);
  std::shared_ptr<RowMap> map(new RowMap);
  map->rows_ = table.rows;
  map->devices_ = devices;
  RECMILL_RETURN_IF_ERROR(Builder(*map, table, paths).build());
  return std::shared_ptr<const RowMap>(std::move(map));
}

int64_t RowMap::bytes() const {
  return bytes_of(runs_) + bytes_of(run_at_) + bytes_of(lines_) + bytes_of(short_entries_) +
         bytes_of(long_entries_) + bytes_of(block_numbers_) + bytes_of(groups_) + bytes_of(from_) +
         bytes_of(first_slots_) + bytes_of(slots_) + bytes_of(extents_);
}

int RowMap::whole_at() const {
  const bool one_copy = groups_.size() == 1 && groups_[0].first_copied < 0;
  return one_copy ? groups_[0].home : -1;
}

const RowMap::Run& RowMap::run_of(int64_t row) const {
  if (runs_.size() == 1) return runs_[0];
  const int64_t range = row >> range_bits_;
  const Run* run = runs_.data() + run_at_[range];
  const Run* last = runs_.data() + run_at_[range + 1];
  if (last - run > 8) {
    return *std::upper_bound(run, last, row,
                             [](int64_t at, const Run& before) { return at < before.end; });
  }
  while (run->end <= row) ++run;
  return *run;
}

RowMap::Found RowMap::find(int64_t row) const {
  if (lines_.empty()) return {};
  const auto at = static_cast<uint64_t>(row);
  const Line& line = lines_[at / Line::kRows];
  const uint64_t bit = at % Line::kRows, word = bit / 64;
  const uint64_t one = uint64_t{1} << (bit % 64);
  int64_t before = line.before + std::popcount(line.bits[word] & (one - 1));
  for (uint64_t w = 0; w < Line::kWords - 1; ++w)  // no branch that a processor could guess wrong
    before += std::popcount(line.bits[w] & (uint64_t{0} - (w < word ? 1 : 0)));
  return {before, (line.bits[word] & one) != 0};
}

RowPlace RowMap::listed_place(int64_t before) const {
  const uint32_t entry = short_entries_.empty() ? long_entries_[before] : short_entries_[before];
  const uint32_t group = entry >> number_bits_;
  const uint32_t number = entry & ((uint32_t{1} << number_bits_) - 1);
  const int64_t first = block_numbers_[(before >> number_bits_) * listed_groups_ + group];
  return {first_listed_group_ + static_cast<int>(group), first + number};
}

RowPlace RowMap::place(int64_t row, Found found) const {
  if (found.listed) return listed_place(found.before);
  const Run& run = run_of(row);
  return {run.group, run.number + row - found.before};
}

RowPlace RowMap::place(int64_t row) const {
  return place(row, find(row));
}

void RowMap::places(std::span<const int64_t> rows, RowPlace* out) const {
  if (lines_.empty()) {
    for (size_t i = 0; i < rows.size(); ++i) out[i] = place(rows[i], {});
    return;
  }
  // Three steps, a row a round each: fetches spread out this way do not wait for each other, as
  // those of many rows at once do.
  const size_t count = rows.size();
  Found found[kAhead];
  for (size_t i = 0; i < count + 2 * kAhead; ++i) {
    if (i < count) __builtin_prefetch(&lines_[static_cast<uint64_t>(rows[i]) / Line::kRows]);
    if (i >= 2 * kAhead) {
      const size_t at = i - 2 * kAhead;
      out[at] = place(rows[at], found[at % kAhead]);
    }
    if (i >= kAhead && i < count + kAhead) {
      const size_t at = i - kAhead;
      found[at % kAhead] = find(rows[at]);
      if (!found[at % kAhead].listed) continue;
      if (short_entries_.empty()) {
        __builtin_prefetch(&long_entries_[found[at % kAhead].before]);
      } else {
        __builtin_prefetch(&short_entries_[found[at % kAhead].before]);
      }
    }
  }
}

int64_t RowMap::next_listed(int64_t row, int64_t end) const {
  if (lines_.empty()) return end;
  while (row < end) {
    const int64_t bit = row % Line::kRows;
    const uint64_t bits = lines_[row / Line::kRows].bits[bit / 64] >> (bit % 64);
    if (bits != 0) return std::min(row + std::countr_zero(bits), end);
    row += 64 - bit % 64;
  }
  return end;
}

template <typename Wanted>
int64_t RowMap::next(int64_t row, int64_t end, const Wanted& wanted) const {
  while (row < end) {
    const Run& run = run_of(row);
    const int64_t stop = std::min(run.end, end);
    if (wanted(run.group)) {
      for (; row < stop; ++row) {
        const Found found = find(row);
        if (!found.listed || wanted(listed_place(found.before).group())) return row;
      }
    } else {
      for (row = next_listed(row, stop); row < stop; row = next_listed(row + 1, stop))
        if (wanted(place(row).group())) return row;
    }
  }
  return end;
}

int64_t RowMap::next_owned(int64_t row, int64_t end, int device) const {
  return next(row, end, [&](int group) { return groups_[group].home == device; });
}

int64_t RowMap::next_held(int64_t row, int64_t end, int device) const {
  return next(row, end, [&](int group) { return first_slots_[index(group, device)] >= 0; });
}

int64_t RowMap::next_copied(int64_t row, int64_t end) const {
  return next(row, end, [&](int group) { return groups_[group].first_copied >= 0; });
}

}  // namespace recmill::table
