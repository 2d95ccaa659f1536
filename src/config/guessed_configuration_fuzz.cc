// SPDX-License-Identifier: Apache-2.0
// recmill init over any text: what it writes is a configuration that is taken, of the columns that
// it guessed.
#include "base/testing/faulty_files.h"
#include "base/testing/fuzz.h"
#include "config/option_binder.h"
#include "config/run_config.h"
#include "reader/guess/guess_text.h"
#include "reader/guess/schema_guess.h"

namespace recmill {

std::vector<std::string> fuzz::seeds() {
  std::string criteo = "1";
  for (int i = 0; i < 13; ++i) criteo += "\t5";
  for (int i = 0; i < 26; ++i) criteo += "\t68fd1e64";
  return {"id,click,hour,site,price\n1,0,14102100,\"a,b\",0.5\n2,1,14102101,c,-2e3\n",
          "1;0.5;x\r\n0;;y\r\n1;-3;\r\n", criteo + "\n" + criteo + "\n",
          "1,10,100,pv,1511544070\n2,11,100,buy,1511544071\n", "\"a\"\"b\",\"c\\d\",\"\"\n0,1,2\n"};
}

void fuzz::feed(const std::string& bytes) {
  FaultyFiles files;
  RECMILL_CHECK(write_atomically(files, "rows.csv", bytes).ok());
  const auto sample = reader::sample_text(files, {"rows.csv"});
  if (!sample.ok()) return;
  auto guess = reader::decide(*sample, "");
  RECMILL_CHECK(guess.ok(), guess.status().message());
  guess->options.train = {"rows.csv"};
  const auto text = reader::toml_of(*guess);
  if (!text.ok()) return;  // names that are no UTF-8
  const auto node = config::parse_toml(*text, "a.toml");
  RECMILL_CHECK(node.ok(), node.status().message());
  train::RunOptions options;
  const Status bound = config::bind_options(*node, options);
  RECMILL_CHECK(bound.ok(), bound.message());
  RECMILL_CHECK(options.data.format == guess->options.format);
  RECMILL_CHECK(options.data.columns.size() == guess->options.columns.size());
  for (size_t c = 0; c < options.data.columns.size(); ++c) {
    RECMILL_CHECK(options.data.columns[c].name == guess->options.columns[c].name);
  }
  RECMILL_CHECK(options.tables.size() == guess->tables.size());
}

}  // namespace recmill
