// SPDX-License-Identifier: Apache-2.0
// A configuration file, and the same bytes as --set: options that are taken are written as they
// were read.
#include "base/testing/fuzz.h"
#include "config/option_binder.h"
#include "config/run_config.h"

namespace recmill {
namespace {

Result<train::RunOptions> options_of(const config::ConfigNode& node) {
  train::RunOptions options;
  RECMILL_RETURN_IF_ERROR(config::bind_options(node, options));
  return options;
}

// One clear line: it says something, and says where.
void check_refusal(const Status& status) {
  const std::string& line = status.message();
  RECMILL_CHECK(line.starts_with("a.toml") || line.starts_with("--set"), line);
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  const std::string columns =
      "name = \"a\\n\\u00E9\"\n[data]\ntrain = [\"*.tsv\", 'b']\nformat = \"csv\"\n"
      "[[data.columns]]\nname = \"y\"\nrole = \"label\"\n[model]\ntop = [1_000, 0x10]\n";
  return {config::to_toml(train::RunOptions()), columns, "embedding.rows=1e3",
          "name = \"\\u007F\\u0001\"\n",
          "train.seed = 2\n[[tables]]\nname='C1'\nrows = 7 # seven\n"};
}

void fuzz::feed(const std::string& bytes) {
  const auto file = config::parse_toml(bytes, "a.toml");
  config::ConfigNode set;
  const Status applied = config::apply_set(set, bytes);
  if (!applied.ok()) check_refusal(applied);
  if (!file.ok()) return check_refusal(file.status());
  const auto options = options_of(*file);
  if (!options.ok()) return check_refusal(options.status());
  const std::string text = config::to_toml(*options);
  const auto again = config::parse_toml(text, "again.toml");
  RECMILL_CHECK(again.ok(), again.status().message());
  const auto same = options_of(*again);
  RECMILL_CHECK(same.ok(), same.status().message());
  RECMILL_CHECK(config::to_toml(*same) == text, text);
}

}  // namespace recmill
