// SPDX-License-Identifier: Apache-2.0
#include "run/checkpoint/checkpoint_entries.h"

#include "base/bfloat16.h"
#include "base/hash.h"
#include "base/json/json.h"
#include "run/checkpoint/trained_meaning.h"
#include "run/hotset/hot_folder.h"
#include "table/initial_rows.h"

namespace recmill::train {

using checkpoint::ElementType;
using checkpoint::EntrySpec;

namespace {

ElementType type_of(RowPrecision precision) {
  switch (precision) {
    case RowPrecision::float32:
      return ElementType::float32;
    case RowPrecision::bfloat16:
      return ElementType::bfloat16;
    case RowPrecision::float16:
      return ElementType::float16;
  }
  return ElementType::float32;
}

}  // namespace

EntrySpec weight_entry(const TableSpec& table) {
  return {"table/" + table.name + "/weight", type_of(table.precision), {table.rows, table.dim}};
}

EntrySpec state_entry(const TableSpec& table, const table::StateColumn& column) {
  return {"table/" + table.name + "/state/" + column.name,
          ElementType::float32,
          {table.rows, column.width}};
}

checkpoint::RowRule weight_rule(const TableSpec& table, uint64_t seed) {
  return {checkpoint::RowRule::Kind::uniform, table::InitialRows(table, seed).scale(), seed,
          hash_bytes(table.name)};
}

checkpoint::RowRule state_rule(const table::StateColumn& column) {
  return {checkpoint::RowRule::Kind::constant, column.initial, 0, 0};
}

EntrySpec layer_entry(const std::string& name, const model::ParameterSpec& parameter) {
  return {name, ElementType::float32, parameter.shape};
}

std::vector<uint16_t> narrow(std::span<const float> values, RowPrecision precision) {
  std::vector<uint16_t> bits(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    bits[i] = precision == RowPrecision::bfloat16 ? to_bfloat16(values[i]).bits
                                                  : to_float16(values[i]).bits;
  }
  return bits;
}

void widen(std::span<const uint16_t> bits, RowPrecision precision, std::span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = precision == RowPrecision::bfloat16 ? to_float(BFloat16{bits[i]})
                                                    : to_float(Float16{bits[i]});
  }
}

Json properties_of(const ResolvedRun& run, const LoopState& state) {
  Json properties;
  properties["iteration"] = state.position.iteration;
  properties["seed"] = run.options.train.seed;
  properties["shards"] = run.slices;
  properties["batch_size"] = run.options.train.batch_size;
  properties["schema"] = {{"dense", run.schema.dense}, {"ids", run.schema.ids}};
  properties["graph"] = preprocess::to_json(run.graph);
  properties["meaning"] = meaning_of(run);
  Json& optimizers = properties["optimizers"];
  optimizers["dense"] = name_of(run.options.optimizer.kind);
  for (const TableSpec& table : run.spec.tables) {
    optimizers["tables"][table.name] = name_of(table.optimizer.kind);
    if (table.optimizer.kind == OptimizerKind::adam &&
        table.optimizer.correction != BiasCorrection::global)
      optimizers["corrections"][table.name] = name_of(table.optimizer.correction);
  }
  properties["reader"] = reader_property(state.position);
  properties["window"] = {{"total", state.window.total}};
  Json early_stop;
  early_stop["counted"] = state.early_stop.counted;
  early_stop["without_gain"] = state.early_stop.without_gain;
  early_stop["metric"] = name_of(run.options.train.early_stop.metric);
  if (state.early_stop.best) early_stop["best"] = *state.early_stop.best;
  properties["early_stop"] = early_stop;
  if (run.hot_folder != nullptr) properties["order"] = order_of(run);
  if (state.schedule) properties["schedule"] = to_json(*state.schedule);
  if (state.best)
    properties["best"] = {{"iteration", state.best->iteration}, {"value", state.best->value}};
  return properties;
}

}  // namespace recmill::train
