// SPDX-License-Identifier: Apache-2.0
#include "reader/text/text_boundary.h"

#include "reader/text/text_pass.h"
#include "reader/time_boundary.h"

namespace recmill::reader {
namespace {

constexpr int64_t kRowsAtOnce = 16384;

// The same rows, of which only the time is parsed.
TextLayout time_only(const TextLayout& layout) {
  TextLayout only = layout;
  only.schema = {};
  only.schema.has_time = true;
  for (TextColumn& column : only.columns) {
    if (column.spec.role != ColumnRole::time) column.spec.role = ColumnRole::ignore;
  }
  return only;
}

}  // namespace

Result<int64_t> find_text_boundary(Files& files, const std::string& cache,
                                   const std::vector<std::string>& paths, const FileRules& rules,
                                   double eval_fraction, ThreadPool& pool) {
  const auto search = [&]() -> Result<int64_t> {
    RECMILL_ASSIGN_OR_RETURN(auto source, RowSource::open(files, paths, cache, rules, pool));
    std::vector<TextLayout> layouts;
    for (const RowRule& rule : rules.rules) layouts.push_back(time_only(rule.layout));
    TextParser parser(std::move(layouts));
    return time_boundary(eval_fraction, [&](const auto& take) {
      return parse_all(*source, parser, kRowsAtOnce, pool,
                       [&](const ColumnBatch& batch, const TextWindow&) {
                         take(batch.times);
                         return Status();
                       });
    });
  };
  return find_time_boundary(files, cache, paths, rules.fingerprint(), eval_fraction, search);
}

}  // namespace recmill::reader
