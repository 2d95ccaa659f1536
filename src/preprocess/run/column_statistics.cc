// SPDX-License-Identifier: Apache-2.0
#include "preprocess/run/column_statistics.h"

#include <algorithm>
#include <cmath>

#include "base/json/json.h"

namespace recmill::preprocess {
namespace {

bool lacks_statistics(const OpSpec& op) {
  return op.op == "standardize" && !op.parameters->contains("mean");
}

/// The place of the first such op; the length of the list where there is none.
size_t first_lacking(const Chain& chain) {
  const auto found =
      std::ranges::find_if(chain.ops, [](const OpSpec& op) { return lacks_statistics(op); });
  return static_cast<size_t>(found - chain.ops.begin());
}

bool same_ops(const Chain& a, const Chain& b) {
  return a.column == b.column && std::ranges::equal(a.ops, b.ops, {}, &OpSpec::op, &OpSpec::op);
}

}  // namespace

void ColumnStatistics::add(float value) {
  if (value != value) return;
  const double x = value, before = x - mean;
  mean += before / static_cast<double>(++count);
  squares += before * (x - mean);
}

double ColumnStatistics::deviation() const {
  const double found = count == 0 ? 0.0 : std::sqrt(squares / static_cast<double>(count));
  return found > 0.0 ? found : 1.0;
}

bool lacks_statistics(const FeatureGraph& graph) {
  return std::ranges::any_of(
      graph.dense, [](const Chain& chain) { return first_lacking(chain) < chain.ops.size(); });
}

void take_statistics(const FeatureGraph& from, FeatureGraph& graph) {
  for (size_t c = 0; c < std::min(graph.dense.size(), from.dense.size()); ++c) {
    Chain& chain = graph.dense[c];
    if (!same_ops(chain, from.dense[c])) continue;
    for (size_t i = 0; i < chain.ops.size(); ++i)
      if (lacks_statistics(chain.ops[i])) chain.ops[i].parameters = from.dense[c].ops[i].parameters;
  }
}

FeatureGraph without_dense(FeatureGraph graph) {
  graph.dense.clear();
  return graph;
}

Result<StatisticsPass> StatisticsPass::begin(const FeatureGraph& graph, Way way) {
  StatisticsPass pass(way);
  FeatureGraph until;  // the ops before those that lack statistics
  for (size_t c = 0; c < graph.dense.size(); ++c) {
    const size_t op = first_lacking(graph.dense[c]);
    if (op == graph.dense[c].ops.size()) continue;
    until.dense.push_back(graph.dense[c]);
    until.dense.back().ops.resize(op);
    pass.columns_.push_back({c, op, {}, {}});
  }
  RECMILL_ASSIGN_OR_RETURN(auto compiled, compile(until, ModelSpec()));
  for (size_t i = 0; i < pass.columns_.size(); ++i)
    pass.columns_[i].before = std::move(compiled.dense[i]);
  return pass;
}

void StatisticsPass::add(const ColumnBatch& batch, ThreadPool& pool) {
  pool.run(std::ssize(columns_), [&](int64_t i) { add(batch, columns_[i]); });
}

void StatisticsPass::add(const ColumnBatch& batch, Column& column) const {
  const auto& raw = batch.dense[column.before.chain.column_index];
  std::vector<float> values(raw.begin(), raw.begin() + batch.samples);
  for (const auto* op : column.before.dense) {
    if (way_ == Way::fast) {
      op->run(values, values);
    } else {
      for (float& value : values) value = op->plain(value);
    }
  }
  for (const float value : values) column.found.add(value);
}

Status StatisticsPass::finish(FeatureGraph& graph) const {
  for (const Column& column : columns_) {
    const double mean = column.found.mean, deviation = column.found.deviation();
    if (!std::isfinite(mean) || !std::isfinite(deviation)) {
      return Status::Failed("preprocess.dense: standardize: column '" +
                            graph.dense[column.chain].column + "' has no finite mean");
    }
    *graph.dense[column.chain].ops[column.op].parameters = {{"mean", mean},
                                                            {"deviation", deviation}};
  }
  return {};
}

}  // namespace recmill::preprocess
