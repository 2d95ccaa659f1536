// SPDX-License-Identifier: Apache-2.0
#include "reader/time_boundary.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/key_text.h"
#include "reader/cache_entry.h"
#include "reader/row_split.h"

namespace recmill::reader {

// The range that holds the row is cut into bins, counted, and narrowed to one bin, until a bin is
// one time.
Result<int64_t> time_boundary(double eval_fraction, const TimePass& pass) {
  constexpr uint64_t kBins = 65536;
  using Times = std::span<const int64_t>;
  int64_t least = std::numeric_limits<int64_t>::max(), most = std::numeric_limits<int64_t>::min();
  int64_t rows = 0;
  RECMILL_RETURN_IF_ERROR(pass([&](Times times) {
    rows += static_cast<int64_t>(times.size());
    for (const int64_t time : times) {
      least = std::min(least, time);
      most = std::max(most, time);
    }
  }));
  if (rows == 0) return int64_t{0};
  const int64_t rank = rows_before_evaluation(rows, eval_fraction);
  while (least < most) {
    const uint64_t span = static_cast<uint64_t>(most) - static_cast<uint64_t>(least);
    const uint64_t width = span / kBins + 1;
    std::vector<int64_t> counts(span / width + 1);
    int64_t before = 0;
    RECMILL_RETURN_IF_ERROR(pass([&](Times times) {
      for (const int64_t time : times) {
        before += time < least;
        if (time < least || time > most) continue;
        ++counts[(static_cast<uint64_t>(time) - static_cast<uint64_t>(least)) / width];
      }
    }));
    size_t bin = 0;
    for (; bin < counts.size() && before + counts[bin] <= rank; ++bin) before += counts[bin];
    if (bin == counts.size()) {
      return Status::Failed("the times of the data changed while they were read");
    }
    least = static_cast<int64_t>(static_cast<uint64_t>(least) + bin * width);
    most = static_cast<int64_t>(
        std::min(static_cast<uint64_t>(most) - static_cast<uint64_t>(least), width - 1) +
        static_cast<uint64_t>(least));
  }
  return least;
}

Result<int64_t> find_time_boundary(Files& files, const std::string& cache,
                                   const std::vector<std::string>& paths, const std::string& rule,
                                   double eval_fraction,
                                   const std::function<Result<int64_t>()>& search) {
  if (cache.empty()) return search();
  RECMILL_ASSIGN_OR_RETURN(
      const CacheEntry entry,
      CacheEntry::open(files, cache, paths, KeyText().add(rule).add(eval_fraction).text(),
                       ".boundary"));
  const std::string key = "\n" + entry.key();
  if (const auto text = entry.find(); text && text->ends_with(key)) {
    int64_t boundary = 0;
    const char* const end = text->data() + text->size() - key.size();
    if (std::from_chars(text->data(), end, boundary).ptr == end) return boundary;
  }
  RECMILL_ASSIGN_OR_RETURN(const int64_t boundary, search());
  entry.keep(std::to_string(boundary) + key, "boundary of a split");
  return boundary;
}

}  // namespace recmill::reader
