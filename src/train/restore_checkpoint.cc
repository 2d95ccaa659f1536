// SPDX-License-Identifier: Apache-2.0
#include "train/restore_checkpoint.h"

#include <fmt/format.h>

#include "table/embedding_table.h"
#include "train/checkpoint_entries.h"

namespace recmill::train {
namespace {

using checkpoint::ElementType;

constexpr int64_t kRowsAtOnce = 65536;

// The key of the configuration that says `key` of a table's optimizer, which an entry of [[tables]]
// may give as `field`.
template <typename T>
std::string optimizer_key(const RunOptions& options, const std::string& table, const char* key,
                          std::optional<T> preprocess::TableOptions::*field, const char* of_table) {
  for (size_t i = 0; i < options.tables.size(); ++i) {
    if (options.tables[i].name == table && options.tables[i].*field)
      return fmt::format("tables[{}].{}", i, of_table);
  }
  return fmt::format("embedding.optimizer.{}", key);
}

Status check_optimizers(const ResolvedRun& run, const Json& then, const Json& now,
                        const std::string& path) {
  // `absent`: what it means when a checkpoint does not say it.
  const auto check = [&](const std::string& key, const Json::json_pointer& place,
                         const std::string& whose, const Json& absent = "none") -> Status {
    const Json was = then.contains(place) ? then[place] : absent;
    const Json is = now.contains(place) ? now[place] : absent;
    if (was == is) return {};
    return Status::BadRequest(fmt::format("{}: is {}{}, and {} was written with {}", key, is.dump(),
                                          whose, path, was == "none" ? "none" : was.dump()));
  };
  RECMILL_RETURN_IF_ERROR(check("optimizer.kind", Json::json_pointer("/dense"), ""));
  for (const TableSpec& table : run.spec.tables) {
    using preprocess::TableOptions;
    const std::string whose = " (table '" + table.name + "')";
    RECMILL_RETURN_IF_ERROR(
        check(optimizer_key(run.options, table.name, "kind", &TableOptions::optimizer, "optimizer"),
              Json::json_pointer("/tables") / table.name, whose));
    RECMILL_RETURN_IF_ERROR(check(optimizer_key(run.options, table.name, "correction",
                                                &TableOptions::correction, "correction"),
                                  Json::json_pointer("/corrections") / table.name, whose,
                                  "global"));
  }
  return {};
}

Status check_properties(const ResolvedRun& run, const Json& properties, bool for_training,
                        const std::string& path) {
  const Json expected = properties_of(run, {});
  for (const char* key : {"schema", "graph", "shards", "batch_size", "seed"}) {
    const bool of_the_run = std::string_view(key) != "schema" && std::string_view(key) != "graph";
    if (of_the_run && !for_training) continue;
    if (!properties.contains(key) || properties[key] != expected[key]) {
      return Status::BadRequest(path + ": was written by a run with another " + key +
                                " than this configuration's");
    }
  }
  if (!for_training) return {};
  return check_optimizers(run, properties.value("optimizers", Json()), expected["optimizers"],
                          path);
}

// Reads what the rank owns where that is a range of rows or columns; where rows are split by hash,
// all of them, since its own are scattered through every block.
Status restore_table(const ResolvedRun& run, Rank& rank, checkpoint::Reader& reader, int number,
                     bool with_state) {
  const TableSpec& table = run.spec.tables[number];
  RECMILL_ASSIGN_OR_RETURN(const auto* weights, reader.expect(weight_entry(table)));
  const auto [rows, columns] = rank.store->extent(number);
  std::vector<const checkpoint::Entry*> states;
  for (const table::StateColumn& column :
       with_state ? table::row_state(table) : table::RowState{}) {
    RECMILL_ASSIGN_OR_RETURN(const auto* entry, reader.expect(state_entry(table, column)));
    states.push_back(entry);
  }
  std::vector<float> values;
  std::vector<uint16_t> bits;
  std::vector<std::vector<float>> state(states.size());
  for (int64_t first = rows.begin; first < rows.end; first += kRowsAtOnce) {
    const int64_t count = std::min(kRowsAtOnce, rows.end - first);
    values.resize(count * columns.count);
    if (table.precision == RowPrecision::float32) {
      RECMILL_RETURN_IF_ERROR(
          reader.read(*weights, first, count, columns, std::as_writable_bytes(std::span(values))));
    } else {
      bits.resize(values.size());
      RECMILL_RETURN_IF_ERROR(
          reader.read(*weights, first, count, columns, std::as_writable_bytes(std::span(bits))));
      widen(bits, table.precision, values);
    }
    std::vector<std::span<const float>> views;
    for (size_t c = 0; c < states.size(); ++c) {
      const bool by_row = states[c]->spec.row_elements() < table.dim;
      const ColumnRange of_state = by_row ? ColumnRange{0, 1} : columns;
      state[c].resize(count * of_state.count);
      RECMILL_RETURN_IF_ERROR(reader.read(*states[c], first, count, of_state,
                                          std::as_writable_bytes(std::span(state[c]))));
      views.push_back(state[c]);
    }
    RECMILL_RETURN_IF_ERROR(
        rank.store->write_rows({number, first, count, values, views, {}, columns}));
  }
  return {};
}

Status restore_layers(Rank& rank, checkpoint::Reader& reader, bool with_state) {
  for (const model::ParameterSpec& parameter : rank.model->parameters()) {
    const auto restore = [&](const std::string& name, std::span<float> flat) -> Status {
      RECMILL_ASSIGN_OR_RETURN(const auto* entry, reader.expect(layer_entry(name, parameter)));
      return reader.read(*entry, 0, entry->spec.rows(),
                         std::as_writable_bytes(flat.subspan(parameter.offset, parameter.size())));
    };
    RECMILL_RETURN_IF_ERROR(restore("dense/" + parameter.name, rank.trainer->parameters()));
    if (!with_state) continue;
    for (DenseOptimizer::State& state : rank.dense_optimizer->state()) {
      RECMILL_RETURN_IF_ERROR(
          restore("dense_state/" + parameter.name + "/" + state.name, state.values));
    }
  }
  return rank.trainer->load_parameters();
}

// A whole entry of one extent, whatever its length.
template <typename T>
Result<std::vector<T>> read_column(checkpoint::Reader& reader, const std::string& name,
                                   ElementType type) {
  const checkpoint::Entry* entry = reader.find(name);
  if (entry == nullptr) return Status::Failed(reader.path() + ": has no '" + name + "'");
  if (entry->spec.type != type || entry->spec.shape.size() != 1) {
    return Status::Failed(reader.path() + ": '" + name + "' is " + entry->spec.text());
  }
  return reader.read_all<T>(*entry);
}

Status restore_window(checkpoint::Reader& reader, metrics::WindowContents& window) {
  const auto floats = [&](const char* name, std::vector<float>& values) -> Status {
    RECMILL_ASSIGN_OR_RETURN(values, read_column<float>(reader, name, ElementType::float32));
    return {};
  };
  RECMILL_RETURN_IF_ERROR(floats("metric/window/probability", window.probabilities));
  RECMILL_RETURN_IF_ERROR(floats("metric/window/label", window.labels));
  RECMILL_RETURN_IF_ERROR(floats("metric/window/weight", window.weights));
  RECMILL_ASSIGN_OR_RETURN(
      window.groups, read_column<uint64_t>(reader, "metric/window/group", ElementType::uint64));
  const size_t samples = window.probabilities.size();
  const auto fits = [&](size_t size) { return size == 0 || size == samples; };
  if (window.labels.size() == samples && fits(window.weights.size()) && fits(window.groups.size()))
    return {};
  return Status::Failed(reader.path() + ": the columns of metric/window differ in length");
}

Status restore_dictionaries(const ResolvedRun& run, Rank& rank, checkpoint::Reader& reader,
                            LoopState& state) {
  for (size_t d = 0; d < run.graph.dictionaries.size(); ++d) {
    const std::string name = "dictionary/" + run.graph.dictionaries[d].name;
    RECMILL_ASSIGN_OR_RETURN(const auto ids,
                             read_column<uint64_t>(reader, name, ElementType::uint64));
    RECMILL_RETURN_IF_ERROR(
        rank.preprocessor->restore_dictionary(static_cast<int>(d), ids).at(reader.path()));
    state.dictionaries.push_back(static_cast<int64_t>(ids.size()));
  }
  return {};
}

// A checksum says that a manifest is as it was written, not that we wrote it.
Status read_state(const Json& properties, LoopState& state) {
  const std::pair<const char*, int64_t*> numbers[] = {
      {"/iteration", &state.position.iteration},
      {"/reader/epoch", &state.position.epoch},
      {"/reader/row", &state.position.row},
      {"/window/total", &state.window.total},
      {"/early_stop/counted", &state.early_stop.counted},
      {"/early_stop/without_gain", &state.early_stop.without_gain}};
  for (const auto& [name, value] : numbers) {
    const Json::json_pointer at(name);
    if (!properties.contains(at) || !properties[at].is_number_integer() ||
        properties[at].get<int64_t>() < 0) {
      return Status::Failed(fmt::format("property {} is no count", name + 1));
    }
    *value = properties[at].get<int64_t>();
  }
  const Json::json_pointer best("/early_stop/best");
  if (!properties.contains(best)) return {};
  if (!properties[best].is_number()) return Status::Failed("property early_stop/best is no number");
  state.early_stop.best = properties[best].get<double>();
  return {};
}

// The data may have become another since.
Status check_position(const StreamPosition& position, reader::Reader& rows) {
  RECMILL_ASSIGN_OR_RETURN(const int64_t there, rows.rows());
  if (position.row == 0 || position.row < there) return {};
  return Status::Failed(fmt::format("training stood before row {} of the data, which has {} rows",
                                    position.row, there));
}

}  // namespace

Result<LoopState> restore_checkpoint(const ResolvedRun& run, Rank& rank, checkpoint::Reader& reader,
                                     bool for_training) {
  RECMILL_RETURN_IF_ERROR(check_properties(run, reader.properties(), for_training, reader.path()));
  for (size_t t = 0; t < run.spec.tables.size(); ++t) {
    RECMILL_RETURN_IF_ERROR(restore_table(run, rank, reader, static_cast<int>(t), for_training));
  }
  RECMILL_RETURN_IF_ERROR(restore_layers(rank, reader, for_training));
  LoopState state;
  RECMILL_RETURN_IF_ERROR(read_state(reader.properties(), state).at(reader.path()));
  if (for_training) {
    RECMILL_RETURN_IF_ERROR(check_position(state.position, *rank.train_rows).at(reader.path()));
    RECMILL_RETURN_IF_ERROR(restore_window(reader, state.window));
  }
  RECMILL_RETURN_IF_ERROR(restore_dictionaries(run, rank, reader, state));
  return state;
}

}  // namespace recmill::train
