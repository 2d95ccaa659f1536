// SPDX-License-Identifier: Apache-2.0
#include "store/gpu/held_tables.h"

#include "base/status.h"
#include "table/table_shares.h"

namespace recmill::store {

std::vector<HeldTables> held_tables(const ModelSpec& model, int ranks) {
  const auto shares = table::shares_of(model.tables, 0, ranks);
  std::vector<HeldTables> of_ranks(ranks);
  std::vector<int> homes;
  for (size_t t = 0; t < model.tables.size(); ++t) {
    RECMILL_CHECK(ranks == 1 || model.tables[t].sharding == Sharding::table, model.tables[t].name);
    homes.push_back(shares[t].rows.owner(0));
    of_ranks[homes.back()].tables.push_back(static_cast<int>(t));
  }
  for (size_t f = 0; f < model.features.size(); ++f)
    of_ranks[homes[model.features[f].table]].features.push_back(f);
  return of_ranks;
}

ModelSpec model_of(const HeldTables& held, const ModelSpec& model) {
  ModelSpec of;
  std::vector<int> places(model.tables.size(), -1);
  for (const int t : held.tables) {
    places[t] = static_cast<int>(of.tables.size());
    of.tables.push_back(model.tables[t]);
  }
  for (const size_t f : held.features) {
    FeatureSpec& feature = of.features.emplace_back(model.features[f]);
    feature.table = places[feature.table];
    feature.same_ids_as = -1;  // they come with the others
  }
  return of;
}

}  // namespace recmill::store
