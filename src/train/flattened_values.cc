// SPDX-License-Identifier: Apache-2.0
#include "train/flattened_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <span>

#include "base/json/json.h"
#include "preprocess/ops/registry.h"
#include "step/data/reader_source.h"

namespace recmill::train {
namespace {

using preprocess::FlattenedCounts;

constexpr size_t kMostNamed = 8;  // columns of a line

/// Those of this rank, or of all where each trained rows of its own.
Result<std::vector<FlattenedCounts>> total_counts(const ResolvedRun& run, const Rank& rank,
                                                  Communicator& communicator) {
  std::vector<FlattenedCounts> own = rank.preprocessor->flattened();
  if (own.empty()) return own;
  RECMILL_ASSIGN_OR_RETURN(const Received received,
                           communicator.all_gather(std::as_bytes(std::span(own))));
  if (reads_whole_batches(run.schedule(communicator.rank()), *rank.preprocessor)) return own;
  for (size_t op = 0; op < own.size(); ++op) {
    own[op] = {};
    for (int from = 0; from < communicator.ranks(); ++from) {
      FlattenedCounts counts;
      std::memcpy(&counts, received.from(from).data() + op * sizeof(counts), sizeof(counts));
      own[op].add(counts);
    }
  }
  return own;
}

/// What an op made of the values of one side, by share.
struct Side {
  std::vector<std::pair<double, std::string>> columns;
  void add(double share, const std::string& column) { columns.emplace_back(share, column); }
  static std::string percent(double share) {
    return share < 0.1 ? fmt::format("{:.2g} %", share * 100)
                       : fmt::format("{:.0f} %", share * 100);
  }
  std::string text() {
    std::ranges::stable_sort(columns, std::ranges::greater(),
                             [](const std::pair<double, std::string>& of) { return of.first; });
    std::string list;
    for (size_t i = 0; i < std::min(columns.size(), kMostNamed); ++i)
      list += (i == 0 ? "" : ", ") + percent(columns[i].first) + " of " + columns[i].second;
    if (columns.size() > kMostNamed)
      list += fmt::format(", less of {} more columns", columns.size() - kMostNamed);
    return list;
  }
};

}  // namespace

Result<Json> flattened_values(const ResolvedRun& run, const Rank& rank,
                              Communicator& communicator) {
  RECMILL_ASSIGN_OR_RETURN(const auto counts, total_counts(run, rank, communicator));
  Json list = Json::array();
  size_t number = 0;
  for (const preprocess::Chain& chain : run.graph.dense) {
    for (const preprocess::OpSpec& spec : chain.ops) {
      const FlattenedCounts& of_op = counts[number++];
      if (of_op.below + of_op.above == 0) continue;
      RECMILL_ASSIGN_OR_RETURN(const auto op, preprocess::make_op(spec));
      const preprocess::KeptRange kept = static_cast<const preprocess::DenseOp&>(*op).kept();
      Json entry;
      entry["column"] = chain.column;
      entry["op"] = spec.op;
      entry["values"] = of_op.values;
      if (of_op.below > 0) {
        entry["below"] = of_op.below;
        entry["low"] = kept.low;
      }
      if (of_op.above > 0) {
        entry["above"] = of_op.above;
        entry["high"] = kept.high;
      }
      list.push_back(std::move(entry));
    }
  }
  return list;
}

std::vector<std::string> flattened_lines(const Json& flattened) {
  std::map<std::pair<std::string, std::string>, Side> sides;  // by op, and what became of it
  for (const Json& entry : flattened) {
    const auto add = [&](const char* side, const char* end) {
      if (!entry.contains(side)) return;
      const double share = entry[side].get<double>() / entry["values"].get<double>();
      const std::string what =
          fmt::format("are {0} {1:g} and become {1:g}", side, entry[end].get<float>());
      sides[{entry["op"].get<std::string>(), what}].add(share, entry["column"].get<std::string>());
    };
    add("below", "low");
    add("above", "high");
  }
  std::vector<std::string> lines;
  for (auto& [of, side] : sides)
    lines.push_back(fmt::format("{}: {} {}", of.first, side.text(), of.second));
  return lines;
}

}  // namespace recmill::train
