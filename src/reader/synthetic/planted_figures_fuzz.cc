// SPDX-License-Identifier: Apache-2.0
// planted.json: what is taken is written as it was read.
#include "base/json/json.h"
#include "base/testing/faulty_files.h"
#include "base/testing/fuzz.h"
#include "reader/synthetic/planted_figures.h"

namespace recmill {

std::vector<std::string> fuzz::seeds() {
  reader::PlantedFigures figures;
  figures.best_auc = 0.75;
  figures.id_columns = {"C1", "C2"};
  figures.cardinalities = figures.learnable_ids = {10, 20};
  figures.crosses = {{"C1", "C2"}};
  return {to_json(figures).dump(), "{\"version\":1}", "[]"};
}

void fuzz::feed(const std::string& bytes) {
  FaultyFiles files;
  RECMILL_CHECK(write_atomically(files, "planted.json", bytes).ok());
  const auto figures = reader::read_planted_figures(files, "planted.json");
  if (!figures.ok()) return;
  RECMILL_CHECK(write_atomically(files, "again.json", to_json(*figures).dump()).ok());
  RECMILL_CHECK(*reader::read_planted_figures(files, "again.json") == *figures);
}

}  // namespace recmill
