// SPDX-License-Identifier: Apache-2.0
// A behaviour log: whatever is taken makes whole samples.
#include "base/testing/faulty_files.h"
#include "base/testing/fuzz.h"
#include "reader/testing/samples_of.h"
#include "reader/text/behavior_log_reader.h"

namespace recmill {

std::vector<std::string> fuzz::seeds() {
  return {"1,10,100,pv,50\n2,11,100,pv,20\n1,12,101,buy,30\n1,13,102,pv,40\n2,10,100,pv,45\n",
          "7,-1,0,pv,9223372036854775807\n7,1,0,pv,-5\n7,2,,pv,0\n7,3,3,,1\n"};
}

void fuzz::feed(const std::string& bytes) {
  static ThreadPool pool(1);
  FaultyFiles files;
  RECMILL_CHECK(write_atomically(files, "log.csv", bytes).ok());
  DataOptions options;
  options.format = DataFormat::behavior_log;
  options.train = {"log.csv"};
  options.cache = "";
  options.on_bad_row = OnBadRow::skip;
  options.bad_row_limit = 3;
  options.behavior_log.minimum_history = 0;
  options.behavior_log.columns = {"user", "seconds_since_last", "item_seen"};
  auto reader = reader::open_behavior_log(options, Subset::train, 7, pool, files);
  const auto rows = (*reader)->rows();
  if (!rows.ok()) return;
  ColumnBatch batch;
  const Status status = (*reader)->read(0, 0, *rows, batch);
  RECMILL_CHECK(status.ok(), status.message());
  RECMILL_CHECK(batch.samples == *rows);
  reader::samples_of((*reader)->schema(), batch);
}

}  // namespace recmill
