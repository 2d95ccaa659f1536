// SPDX-License-Identifier: Apache-2.0
// A whole CSV file with a header, from the scan for rows to batches; bad rows are skipped.
#include "base/testing/faulty_files.h"
#include "base/testing/fuzz.h"
#include "reader/testing/text_rows.h"
#include "reader/text/text_reader.h"

namespace recmill {

std::vector<std::string> fuzz::seeds() {
  const std::string header = "y,d1,d2,hex,number,word,list,rest,pairs,user,when,w\n";
  return {header + reader::mixed_rows(), header + "1\n\n" + reader::mixed_rows() + "\n\n"};
}

void fuzz::feed(const std::string& bytes) {
  static ThreadPool pool(1);
  FaultyFiles files;
  RECMILL_CHECK(write_atomically(files, "rows.csv", bytes).ok());
  DataOptions options = reader::mixed_options();
  options.header = true;
  options.train = {"rows.csv"};
  options.cache = "";
  options.on_bad_row = OnBadRow::skip;
  options.bad_row_limit = 5;
  options.shuffle.window = 3;
  auto reader = reader::open_text_reader(options, Subset::train, 7, pool, files);
  if (!reader.ok()) return;
  const auto rows = (*reader)->rows();
  if (!rows.ok()) return;
  ColumnBatch batch;
  const Status status = (*reader)->read(0, 0, *rows, batch);
  // The scan has parsed every row: what it counted is there.
  RECMILL_CHECK(status.ok(), status.message());
  RECMILL_CHECK(batch.samples == *rows);
  RECMILL_CHECK(reader::samples_of((*reader)->schema(), batch).size() ==
                static_cast<size_t>(*rows));
}

}  // namespace recmill
