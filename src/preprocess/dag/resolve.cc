// SPDX-License-Identifier: Apache-2.0
#include "preprocess/dag/resolve.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/hash.h"
#include "base/json/json.h"

namespace recmill::preprocess {
namespace {

Status bad(const std::string& key, const std::string& what) {
  return Status::BadRequest(key + ": " + what);
}

std::string entry(const char* list, size_t index, const char* key) {
  return std::string(list) + "[" + std::to_string(index) + "]." + key;
}

/// Names, of which there may be many thousands, and the place of each.
class NameIndex {
 public:
  explicit NameIndex(const std::vector<std::string>& names) {
    for (const auto& name : names) add(name);
  }
  NameIndex() = default;
  /// Of two equal names the first one counts.
  void add(const std::string& name) { places_.emplace(name, static_cast<int>(added_++)); }
  int find(const std::string& name) const {  // -1: is not there
    const auto found = places_.find(name);
    return found == places_.end() ? -1 : found->second;
  }

 private:
  std::map<std::string, int> places_;
  size_t added_ = 0;
};

/// A feature before its table is known by number: [[features]] entry `key`, or a column by itself.
struct Draft {
  FeatureOptions options;
  std::string key;  // where it is, for errors
  Source source = Source::ids;
  int column = 0;
};

class Resolver {
 public:
  Resolver(const DataSchema& schema, const EmbeddingOptions& embedding,
           const std::vector<TableOptions>& tables, const std::vector<FeatureOptions>& features,
           const PreprocessOptions& preprocess)
      : schema_(schema),
        embedding_(embedding),
        tables_(tables),
        features_(features),
        preprocess_(preprocess),
        id_columns_(schema.ids),
        dense_columns_(schema.dense),
        weighted_columns_(schema.weighted) {
    for (const auto& table : tables) named_tables_.add(table.name);
    for (const auto& feature : features) named_features_.add(feature.name);
  }

  Result<ResolvedFeatures> run() {
    RECMILL_RETURN_IF_ERROR(check_embedding());
    RECMILL_RETURN_IF_ERROR(check_names());
    RECMILL_RETURN_IF_ERROR(add_dense());
    RECMILL_RETURN_IF_ERROR(draft_features());
    for (const auto& draft : drafts_) RECMILL_RETURN_IF_ERROR(add_feature(draft));
    for (size_t i = 0; i < tables_.size(); ++i) {
      if (table_index_.count(tables_[i].name) == 0) {
        return bad(entry("tables", i, "name"),
                   "'" + tables_[i].name + "' is the table of no feature");
      }
    }
    RECMILL_RETURN_IF_ERROR(check_correction());
    RECMILL_RETURN_IF_ERROR(check_dictionary_keys());
    return std::move(out_);
  }

 private:
  /// What only dictionaries have is refused elsewhere.
  Status check_dictionary_keys() const {
    const std::string only = "needs mapping = \"dictionary\"";
    for (size_t i = 0; i < tables_.size(); ++i) {
      if (mapping_of(tables_[i].name) == Mapping::dictionary) continue;
      if (tables_[i].min_count.value_or(1) != 1) return bad(entry("tables", i, "min_count"), only);
      if (tables_[i].unseen.value_or(Unseen::row) != Unseen::row)
        return bad(entry("tables", i, "unseen"), only);
    }
    if (!out_.graph.dictionaries.empty()) return {};
    if (embedding_.min_count != 1) return bad("embedding.min_count", only + ", which no table has");
    if (embedding_.unseen != Unseen::row)
      return bad("embedding.unseen", only + ", which no table has");
    return {};
  }

  Status check_embedding() const {
    const size_t given = embedding_.rows.size();
    if (given > 1 && given != schema_.ids.size()) {
      return bad("embedding.rows", std::to_string(given) + " numbers for " +
                                       std::to_string(schema_.ids.size()) +
                                       " id columns: give one number, or one for each column");
    }
    return {};
  }

  Status check_correction() const {
    if (embedding_.optimizer.correction != BiasCorrection::row) return {};
    for (const TableSpec& table : out_.model.tables)
      if (table.optimizer.kind == OptimizerKind::adam) return {};
    return bad("embedding.optimizer.correction", "'row' is of adam, which no table has");
  }

  Status check_names() const {
    std::set<std::string> seen;
    for (size_t i = 0; i < tables_.size(); ++i) {
      if (tables_[i].name.empty()) return bad(entry("tables", i, "name"), "must be given");
      if (!seen.insert(tables_[i].name).second) {
        return bad(entry("tables", i, "name"), "'" + tables_[i].name + "' is there twice");
      }
    }
    seen.clear();
    for (size_t i = 0; i < features_.size(); ++i) {
      if (features_[i].name.empty()) return bad(entry("features", i, "name"), "must be given");
      if (!seen.insert(features_[i].name).second) {
        return bad(entry("features", i, "name"), "'" + features_[i].name + "' is there twice");
      }
    }
    return {};
  }

  Result<OpSpec> dense_op(size_t position) const {
    const std::string& op = preprocess_.dense[position];
    if (op == "fill_null") return OpSpec{op, Json{{"value", preprocess_.fill_value}}};
    if (op == "log") return OpSpec{op, Json::object()};
    if (op == "standardize") return OpSpec{op, Json::object()};  // statistics come with the rows
    if (op == "clamp") {
      if (!(preprocess_.clamp_low <= preprocess_.clamp_high)) {
        return bad("preprocess.clamp_low", "must not be above preprocess.clamp_high");
      }
      return OpSpec{op, Json{{"low", preprocess_.clamp_low}, {"high", preprocess_.clamp_high}}};
    }
    return bad(
        "preprocess.dense[" + std::to_string(position) + "]",
        "'" + op + "' is not an operation on dense columns: fill_null, clamp, log or standardize");
  }

  Status add_dense() {
    out_.model.num_dense = static_cast<int64_t>(schema_.dense.size());
    for (size_t column = 0; column < schema_.dense.size(); ++column) {
      Chain chain{schema_.dense[column],
                  Source::dense,
                  schema_.dense[column],
                  static_cast<int>(column),
                  {},
                  false};
      for (size_t i = 0; i < preprocess_.dense.size(); ++i) {
        RECMILL_ASSIGN_OR_RETURN(OpSpec op, dense_op(i));
        chain.ops.push_back(std::move(op));
      }
      out_.graph.dense.push_back(std::move(chain));
    }
    return {};
  }

  Status draft_features() {
    std::set<std::string> named;  // columns of [[features]]
    for (size_t i = 0; i < features_.size(); ++i) {
      Draft draft{features_[i], entry("features", i, ""), Source::ids, 0};
      draft.key.pop_back();
      if (draft.options.column.empty()) draft.options.column = draft.options.name;
      const std::string& column = draft.options.column;
      draft.source = draft.options.borders.empty() ? Source::ids : Source::dense;
      draft.column = (draft.source == Source::ids ? id_columns_ : dense_columns_).find(column);
      if (draft.column < 0) {
        return bad(draft.key + ".column", "'" + column + "' is not " +
                                              (draft.source == Source::ids ? "an id" : "a dense") +
                                              " column of the data");
      }
      if (draft.source == Source::ids) named.insert(column);
      drafts_.push_back(std::move(draft));
    }
    for (size_t column = 0; column < schema_.ids.size(); ++column) {
      const std::string& name = schema_.ids[column];
      if (named.count(name) > 0) continue;
      Draft draft{{}, "id column '" + name + "'", Source::ids, static_cast<int>(column)};
      draft.options.name = draft.options.column = name;
      if (const int same = named_features_.find(name); same >= 0) {
        return bad(entry("features", static_cast<size_t>(same), "name"),
                   "'" + name + "' is also an id column that becomes a feature of its own");
      }
      drafts_.push_back(std::move(draft));
    }
    std::stable_sort(drafts_.begin(), drafts_.end(), [](const Draft& a, const Draft& b) {
      return std::pair(a.source == Source::dense, a.column) <
             std::pair(b.source == Source::dense, b.column);
    });
    return {};
  }

  const TableOptions* options_of(const std::string& table) const {
    const int place = named_tables_.find(table);
    return place < 0 ? nullptr : &tables_[static_cast<size_t>(place)];
  }

  std::string table_key(const std::string& table, const char* key) const {
    const int place = named_tables_.find(table);
    return place < 0 ? std::string("embedding.") + key
                     : entry("tables", static_cast<size_t>(place), key);
  }

  /// Rows of a table that no [[tables]] entry sizes: those of its largest column.
  int64_t default_rows(const std::string& table) const {
    int64_t rows = 0;
    for (const auto& draft : drafts_) {
      if (table_of(draft) != table) continue;
      if (draft.source == Source::dense) {
        rows = std::max<int64_t>(rows, static_cast<int64_t>(draft.options.borders.size()) + 1);
      } else if (embedding_.rows.size() > 1) {
        rows = std::max(rows, embedding_.rows[draft.column]);
      } else if (embedding_.rows.size() == 1) {
        rows = std::max(rows, embedding_.rows[0]);
      }
    }
    return rows;
  }

  static const std::string& table_of(const Draft& draft) {
    return draft.options.table.empty() ? draft.options.name : draft.options.table;
  }

  /// How ids become rows of a table. Bucketised columns count their own rows.
  Mapping mapping_of(const std::string& table) const {
    const TableOptions* options = options_of(table);
    return options != nullptr && options->mapping ? *options->mapping : embedding_.mapping;
  }

  Result<int> table_index(const std::string& name) {
    const auto found = table_index_.find(name);
    if (found != table_index_.end()) return found->second;
    TableSpec table;
    table.name = name;
    table.dim = embedding_.dim;
    table.precision = embedding_.precision;
    table.optimizer = embedding_.optimizer;
    table.initial_scale = embedding_.initial_scale;
    table.sharding = embedding_.sharding.value_or(Sharding::hash);
    const TableOptions* options = options_of(name);
    table.rows = options != nullptr && options->rows ? *options->rows : default_rows(name);
    if (options != nullptr) {
      table.dim = options->dim.value_or(table.dim);
      table.precision = options->precision.value_or(table.precision);
      table.optimizer.kind = options->optimizer.value_or(table.optimizer.kind);
      table.optimizer.learning_rate =
          options->learning_rate.value_or(table.optimizer.learning_rate);
      table.optimizer.l2 = options->l2.value_or(table.optimizer.l2);
      table.optimizer.correction = options->correction.value_or(table.optimizer.correction);
      table.initial_scale = options->initial_scale.value_or(table.initial_scale);
      table.sharding = options->sharding.value_or(table.sharding);
      table.frozen = options->frozen;
    }
    RECMILL_RETURN_IF_ERROR(check_table(table));
    const int index = static_cast<int>(out_.model.tables.size());
    out_.model.tables.push_back(std::move(table));
    table_index_[name] = index;
    return index;
  }

  Status check_table(const TableSpec& table) const {
    const auto refuse = [&](const char* key, const std::string& what) {
      return bad(table_key(table.name, key), what + " (table '" + table.name + "')");
    };
    if (table.rows < 1) return refuse("rows", "must be given and at least 1");
    if (mapping_of(table.name) == Mapping::dictionary && table.rows < 2) {
      return refuse("rows", "a dictionary needs 2 rows or more; row 0 is that of unseen ids");
    }
    const TableOptions* options = options_of(table.name);
    if (options != nullptr && options->correction == BiasCorrection::row &&
        table.optimizer.kind != OptimizerKind::adam) {
      return refuse("correction", "'row' is of adam");
    }
    return {};
  }

  /// The op that makes rows of a table.
  OpSpec mapping_op(const TableSpec& table) {
    const TableOptions* options = options_of(table.name);
    const OutOfRange policy = options != nullptr && options->out_of_range ? *options->out_of_range
                                                                          : embedding_.out_of_range;
    switch (mapping_of(table.name)) {
      case Mapping::hash:
        return {"sigrid_hash", Json{{"rows", table.rows}, {"salt", hash_bytes(table.name)}}};
      case Mapping::modulo:
        return {"modulo", Json{{"rows", table.rows}}};
      case Mapping::direct:
        return {"direct", Json{{"rows", table.rows}, {"out_of_range", name_of(policy)}}};
      case Mapping::dictionary:
        break;
    }
    const auto same_name = [&](const DictionarySpec& d) { return d.name == table.name; };
    auto& dictionaries = out_.graph.dictionaries;
    if (std::none_of(dictionaries.begin(), dictionaries.end(), same_name)) {
      dictionaries.push_back(
          {table.name, table.rows, std::string(name_of(policy)),
           options != nullptr && options->min_count ? *options->min_count : embedding_.min_count,
           std::string(name_of(options != nullptr && options->unseen ? *options->unseen
                                                                     : embedding_.unseen))});
    }
    return {"categorify", Json{{"dictionary", table.name}}};
  }

  Status add_feature(const Draft& draft) {
    const FeatureOptions& options = draft.options;
    RECMILL_ASSIGN_OR_RETURN(const int table_number, table_index(table_of(draft)));
    const TableSpec& table = out_.model.tables[table_number];
    Chain chain{options.name, draft.source, options.column, draft.column, {}, false};
    if (draft.source == Source::dense) {
      RECMILL_RETURN_IF_ERROR(add_bucket_ops(draft, table, chain));
    } else {
      chain.weighted = options.weighted.value_or(weighted_columns_.find(options.column) >= 0);
      if (chain.weighted && weighted_columns_.find(options.column) < 0) {
        return bad(draft.key + ".weighted", "column '" + options.column + "' has no weights");
      }
      const int64_t length = options.max_length.value_or(embedding_.max_length);
      if (length > 0) chain.ops.push_back({"first_x", Json{{"x", length}}});
      if (options.missing.value_or(embedding_.missing) == MissingId::value) {
        chain.ops.push_back(
            {"fill_missing_id", Json{{"id", options.missing_id.value_or(embedding_.missing_id)}}});
      }
      chain.ops.push_back(mapping_op(table));
    }
    const FeaturePooling pooling = options.pooling.value_or(embedding_.pooling);
    chain.normalized = pooling == FeaturePooling::weighted_mean && chain.weighted;
    out_.model.features.push_back(
        {options.name, table_number, pooling_of(pooling, chain.weighted), chain.weighted, -1});
    out_.graph.features.push_back(std::move(chain));
    return {};
  }

  /// How stores pool rows; a weighted mean is a sum by weights that are divided beforehand.
  static Pooling pooling_of(FeaturePooling pooling, bool weighted) {
    switch (pooling) {
      case FeaturePooling::sum:
        return Pooling::sum;
      case FeaturePooling::mean:
        return Pooling::mean;
      case FeaturePooling::weighted_mean:
        return weighted ? Pooling::sum : Pooling::mean;
      case FeaturePooling::none:
        break;
    }
    return Pooling::none;
  }

  Status add_bucket_ops(const Draft& draft, const TableSpec& table, Chain& chain) const {
    const auto& borders = draft.options.borders;
    if (!std::is_sorted(borders.begin(), borders.end()) ||
        std::any_of(borders.begin(), borders.end(), [](double b) { return std::isnan(b); })) {
      return bad(draft.key + ".borders", "must ascend");
    }
    if (table.rows < static_cast<int64_t>(borders.size()) + 1) {
      return bad(draft.key + ".borders", std::to_string(borders.size()) + " borders need " +
                                             std::to_string(borders.size() + 1) + " rows; table '" +
                                             table.name + "' has " + std::to_string(table.rows));
    }
    chain.ops.push_back({"fill_null", Json{{"value", preprocess_.fill_value}}});
    chain.ops.push_back({"bucketize", Json{{"borders", borders}}});
    return {};
  }

  const DataSchema& schema_;
  const EmbeddingOptions& embedding_;
  const std::vector<TableOptions>& tables_;
  const std::vector<FeatureOptions>& features_;
  const PreprocessOptions& preprocess_;
  const NameIndex id_columns_, dense_columns_, weighted_columns_;
  NameIndex named_tables_, named_features_;
  std::vector<Draft> drafts_;
  std::map<std::string, int> table_index_;
  ResolvedFeatures out_;
};

}  // namespace

Result<ResolvedFeatures> resolve(const DataSchema& schema, const EmbeddingOptions& embedding,
                                 const std::vector<TableOptions>& tables,
                                 const std::vector<FeatureOptions>& features,
                                 const PreprocessOptions& preprocess) {
  return Resolver(schema, embedding, tables, features, preprocess).run();
}

}  // namespace recmill::preprocess
