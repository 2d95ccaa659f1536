// SPDX-License-Identifier: Apache-2.0
#include "run/options/expand_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "schema/option_ranges.h"

namespace recmill::train {
namespace {

constexpr int64_t kMostFeatures = 1'000'000, kLongestCell = 1'000'000;

/// What is wrong with a line, by key; the caller puts "workload.lines[i]." in front.
class LineCheck {
 public:
  explicit LineCheck(const WorkloadLine& line) : line_(line) {}

  Status run() {
    const bool is_zipf = line_.law == reader::IdLaw::zipf;
    require(is_zipf || line_.zipf == 0, "zipf", "is for law = \"zipf\"");
    check_lengths();
    check_dims();
    return status_;
  }

 private:
  void require(bool holds, const char* key, const std::string& what) {
    if (status_.ok() && !holds) status_ = Status::BadRequest(fmt::format("{}: {}", key, what));
  }

  void check_lengths() {
    if (line_.kind == LineKind::fixed) {
      require(line_.mean == std::floor(line_.mean), "mean",
              fmt::format("must be a whole number with kind = \"fixed\", is {}", line_.mean));
      require(line_.deviation == 0, "deviation", "is for kind = \"normal\" and \"one_side\"");
    } else {
      require(line_.deviation >= 0.001, "deviation",
              fmt::format("must be at least 0.001, is {}", line_.deviation));
    }
    if (line_.kind == LineKind::normal) {
      require(static_cast<double>(line_.longest) >= line_.mean, "longest",
              fmt::format("must be at least mean, is {}", line_.longest));
    } else {
      require(line_.longest == 0, "longest", "is for kind = \"normal\"");
    }
  }

  void check_dims() {
    require(!line_.dims.empty(), "dims", "must be given");
    if (line_.dim_counts.empty() && line_.dims.size() == 1) return;
    require(line_.dim_counts.size() == line_.dims.size(), "dim_counts",
            fmt::format("{} numbers for {} dims", line_.dim_counts.size(), line_.dims.size()));
    const int64_t sum =
        std::accumulate(line_.dim_counts.begin(), line_.dim_counts.end(), int64_t{0});
    require(sum == line_.count, "dim_counts",
            fmt::format("the sum is {}, and count is {}", sum, line_.count));
  }

  const WorkloadLine& line_;
  Status status_;
};

/// What the id columns of a line have alike.
reader::SyntheticIdColumn column_of(const WorkloadLine& line) {
  reader::SyntheticIdColumn column;
  column.cardinality = line.rows;
  column.law = line.law;
  column.zipf = line.zipf;
  column.mean_length = line.mean;
  column.deviation = line.deviation;
  column.empty_share = 1.0 - line.coverage;
  column.direct = true;
  if (line.kind == LineKind::fixed) {
    column.lengths = reader::LengthLaw::fixed;
    column.max_length = static_cast<int64_t>(line.mean);
  } else {
    column.lengths = reader::LengthLaw::normal;
    // Beyond eight deviations lies less than 1e-15 of the law.
    const double end = std::ceil(line.mean + 8.0 * line.deviation);
    column.max_length =
        line.kind == LineKind::normal
            ? line.longest
            : static_cast<int64_t>(std::min(end, static_cast<double>(kLongestCell)));
  }
  return column;
}

/// Dimension of each feature of a line.
std::vector<int64_t> dims_of(const WorkloadLine& line) {
  if (line.dim_counts.empty()) {
    return std::vector<int64_t>(static_cast<size_t>(line.count), line.dims[0]);
  }
  std::vector<int64_t> dims;
  for (size_t i = 0; i < line.dims.size(); ++i) {
    dims.insert(dims.end(), static_cast<size_t>(line.dim_counts[i]), line.dims[i]);
  }
  return dims;
}

void append(const WorkloadLine& line, int64_t line_number, int64_t first_feature,
            RunOptions& options) {
  reader::SyntheticIdColumn column = column_of(line);
  column.line = line_number;
  preprocess::TableOptions table;
  table.rows = line.rows;
  table.mapping = preprocess::Mapping::direct;
  preprocess::FeatureOptions feature;
  feature.missing = preprocess::MissingId::empty;
  for (const int64_t dim : dims_of(line)) {
    column.name = table.name = feature.name = "f" + std::to_string(first_feature++);
    table.dim = dim;
    options.data.synthetic.ids.push_back(column);
    options.tables.push_back(table);
    options.features.push_back(feature);
  }
}

}  // namespace

Result<RunOptions> expand_workload(RunOptions options) {
  if (options.workload.lines.empty()) return options;
  RECMILL_RETURN_IF_ERROR(check_ranges(options.workload, "workload"));
  if (options.data.format != DataFormat::synthetic) {
    return Status::BadRequest(
        "workload.lines: the lines are synthetic columns; write data.format = \"synthetic\"");
  }
  if (options.data.synthetic.shape != reader::SyntheticShape::columns) {
    return Status::BadRequest(
        "workload.lines: the lines are synthetic columns; write data.synthetic.shape = "
        "\"columns\"");
  }
  int64_t line_number = 0, features = 0;
  for (const auto& column : options.data.synthetic.ids) {
    line_number = std::max(line_number, column.line);
  }
  const std::vector<WorkloadLine> lines = std::move(options.workload.lines);
  options.workload.lines.clear();
  for (size_t i = 0; i < lines.size(); ++i) {
    if (const Status status = LineCheck(lines[i]).run(); !status.ok()) {
      return Status::BadRequest(fmt::format("workload.lines[{}].{}", i, status.message()));
    }
    if (features + lines[i].count > kMostFeatures) {
      return Status::BadRequest(
          fmt::format("workload.lines[{}].count: more than {} features", i, kMostFeatures));
    }
    append(lines[i], ++line_number, features, options);
    features += lines[i].count;
  }
  return options;
}

}  // namespace recmill::train
