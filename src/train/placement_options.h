// SPDX-License-Identifier: Apache-2.0
// The section [placement].
#pragma once

#include <string>

#include "schema/options.h"
#include "store/placed_options.h"

namespace recmill::train {

struct PlacementOptions {
  std::string plan;
  bool dedup_fetch = true;
  store::CopyReduce reduce = store::CopyReduce::automatic;
};
template <typename Visitor>
void describe(Visitor& v, PlacementOptions& o) {
  v("plan", o.plan,
    "file of the placement plan that embedding.store = \"placed\" carries out, for as many devices "
    "as there are ranks; empty: each rank has an equal range of each table's rows");
  v("dedup_fetch", o.dedup_fetch,
    "each distinct row is fetched once a rank and batch, and one sum of its gradients sent back; "
    "false: once for each lookup");
  v("reduce", o.reduce,
    "how gradients of rows with copies are added: sparse (at the row's home, which tells the other "
    "holders), dense (all such rows as one vector), all_gather (at every holder), or auto (what "
    "takes least in each iteration)");
}

}  // namespace recmill::train
