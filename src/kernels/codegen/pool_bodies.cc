// SPDX-License-Identifier: Apache-2.0
#include "kernels/codegen/pool_bodies.h"

#include <fmt/format.h>

#include "kernels/codegen/pool_columns.h"

namespace recmill::kernels::codegen {
namespace {

constexpr int64_t kFetchedSamples = 8;  // whose output is fetched ahead (store=1)
enum : int64_t { kFetchedStore = 1, kStreamedStore = 2 };

int64_t value_of(const PoolFunction& of, const std::string& name) {
  for (const ParameterValue& parameter : of.schedule.parameters) {
    if (parameter.name == name) return parameter.value;
  }
  return 0;
}

/// What is read of the feature once: copies of what stores could change, for all that the compiler
/// knows.
void write_arguments(SourceWriter& write, const PoolFunction& of) {
  write("const int64_t* const offsets = feature.offsets;");
  if (value_of(of, "stage") != 0)
    write("if (staging) read_all(feature.rows, feature.row_count * {});", of.row_bytes);
  write("const int64_t* const lookups = feature.lookups;");
  if (of.weighted) write("const float* const weights = feature.weights;");
  write("const int64_t out_stride = feature.out_stride;");
}

/// Until which lookup the row `fetch` lookups later is asked for.
void write_fetch_limit(SourceWriter& write, int64_t fetch, const char* end) {
  if (fetch > 0) write("const int64_t last_fetch = {} - {};", end, fetch);
}

void write_fetch(SourceWriter& write, BlockWriter& block, int64_t fetch,
                 const std::string& lookup) {
  if (fetch == 0) return;
  write("if ({} < last_fetch) {{", lookup);
  block.fetch(lookup + " + " + std::to_string(fetch));
  write("}}");
}

/// Ids are fetched ahead from the piece's first lookup on.
void open_id_fetch(SourceWriter& write, const PoolFunction& of, const char* first) {
  if (value_of(of, "ids") > 0) write("int64_t next_ids = {};", first);
}
/// Before the lookups until `until` are worked through, of a piece that ends with lookup `end`.
void write_id_fetch(SourceWriter& write, const PoolFunction& of, const std::string& until,
                    const char* end = "offsets[last]") {
  const int64_t ids = value_of(of, "ids");
  if (ids > 0) write("next_ids = fetch_ids(lookups, next_ids, {} + {}, {});", until, ids, end);
}

/// sum: lookups [begin, end) folded from +0.
void write_fold(SourceWriter& write, BlockWriter& block, int64_t fetch) {
  write("for (int64_t j = begin; j < end; ++j) {{");
  write_fetch(write, block, fetch, "j");
  block.add_row("sum", "j");
  write("}}");
}

bool streams(const PoolFunction& of, const BlockWriter& block) {
  return value_of(of, "store") == kStreamedStore && block.can_stream();
}

/// Whether any block can go past the caches decides when the code runs: the output's place.
void write_streamed(SourceWriter& write) {
  write("const bool streamed =");
  write("    reinterpret_cast<uintptr_t>(feature.out) % 64 == 0 && out_stride % 16 == 0;");
}

void write_result(SourceWriter& write, const PoolFunction& of, BlockWriter& block,
                  const std::string& sum) {
  if (!streams(of, block)) return block.store(sum, "out");
  write("if (streamed) {{");
  block.stream(sum, "out");
  write("}} else {{");
  block.store(sum, "out");
  write("}}");
}

/// The loop over samples, each with `out`.
void open_samples(SourceWriter& write, const PoolFunction& of) {
  write("float* out = feature.out + first * out_stride + column;");
  write("for (int64_t i = first; i < last; ++i, out += out_stride) {{");
  if (value_of(of, "store") == kFetchedStore)
    write("if (i + {0} < last) __builtin_prefetch(out + {0} * out_stride, 1);", kFetchedSamples);
}

/// Samples one after the other, of lookups from `first` until `end`: sum_of(block) writes what
/// pools one, and returns its name.
template <class SumOf>
void write_samples(SourceWriter& write, const PoolFunction& of,
                   const std::vector<ColumnBlock>& blocks, const char* first, const char* end,
                   const SumOf& sum_of) {
  write_fetch_limit(write, value_of(of, "fetch"), end);
  const bool may_stream = value_of(of, "store") == kStreamedStore;
  if (may_stream) write_streamed(write);
  for (const ColumnBlock& columns : blocks) {
    BlockWriter block(write, of, columns);
    block.open();
    open_id_fetch(write, of, first);
    open_samples(write, of);
    write_result(write, of, block, sum_of(block));
    write("}}");
    block.close();
  }
  if (may_stream) write("if (streamed) finish_streams();");
}

void write_bags(SourceWriter& write, const PoolFunction& of, int64_t lanes) {
  write_arguments(write, of);
  const auto total = [&](BlockWriter& block) {
    block.zeros("total");
    write("for (int64_t begin = offsets[i]; begin < offsets[i + 1]; begin += {}) {{", kPoolRun);
    write("const int64_t rest = offsets[i + 1] - begin;");
    write("const int64_t end = begin + (rest < {0} ? rest : {0});", kPoolRun);
    write_id_fetch(write, of, "end");
    block.zeros("sum");
    write_fold(write, block, value_of(of, "fetch"));
    block.add("total", "sum");
    write("}}");
    if (of.pooling == Pooling::mean) {
      write("const int64_t count = offsets[i + 1] - offsets[i];");
      block.divide("total", "count");
    }
    return "total";
  };
  write_samples(write, of, column_blocks(of.dim, lanes, value_of(of, "held")), "offsets[first]",
                "offsets[last]", total);
}

void write_one_each(SourceWriter& write, const PoolFunction& of, int64_t lanes) {
  write_arguments(write, of);
  write("const int64_t begin = offsets[0];");
  const auto sum = [&](BlockWriter& block) {
    write("const int64_t j = begin + i;");
    write_id_fetch(write, of, "j + 1", "begin + last");
    write_fetch(write, block, value_of(of, "fetch"), "j");
    block.zeros("sum");
    block.add_row("sum", "j");
    return "sum";
  };
  write_samples(write, of, column_blocks(of.dim, lanes, 8), "begin + first", "begin + last", sum);
}

void write_rows_copied(SourceWriter& write, const PoolFunction& of, int64_t lanes) {
  const int64_t fetch = value_of(of, "fetch");
  write_arguments(write, of);
  write_fetch_limit(write, fetch, "offsets[last]");
  for (const ColumnBlock& columns : column_blocks(of.dim, lanes, 8)) {
    BlockWriter block(write, of, columns);
    block.open();
    write("float* out = feature.out + (offsets[first] - offsets[0]) * out_stride + column;");
    write("for (int64_t j = offsets[first]; j < offsets[last]; ++j, out += out_stride) {{");
    write_fetch(write, block, fetch, "j");
    block.copy_row("j", "out");
    write("}}");
    block.close();
  }
}

/// Sums of `ways` folds side by side are named WAY0_, WAY1_ ...
std::string way(int64_t w) {
  return fmt::format("way{}_", w);
}

/// way w: lookups [from(w), from(w) + count) folded from +0, all in lock step.
template <class From>
void write_folds(SourceWriter& write, BlockWriter& block, int64_t ways, int64_t fetch,
                 const std::string& count, const From& from) {
  for (int64_t w = 0; w < ways; ++w) block.zeros(way(w));
  write("for (int64_t k = 0; k < {}; ++k) {{", count);
  for (int64_t w = 0; w < ways; ++w) {
    write_fetch(write, block, fetch, from(w) + " + k");
    block.add_row(way(w), from(w) + " + k");
  }
  write("}}");
}

/// Runs of [at, stop), each folded and added to `total`.
void write_runs(SourceWriter& write, const PoolFunction& of, BlockWriter& block,
                const std::string& total) {
  write("for (int64_t begin = at; begin < stop; begin += {}) {{", kPoolRun);
  write("const int64_t end = stop - begin < {0} ? stop : begin + {0};", kPoolRun);
  write_id_fetch(write, of, "end");
  block.zeros("sum");
  write_fold(write, block, value_of(of, "fetch"));
  block.add(total, "sum");
  write("}}");
}

/// The bag of sample i + w from what its neighbours had in common on: lookups from begin + done.
void write_rest_of_bag(SourceWriter& write, const PoolFunction& of, BlockWriter& block, int64_t w,
                       int64_t fetch) {
  write("{{");
  write("const int64_t stop = offsets[i + {}];", w + 1);
  write("int64_t at = begin{} + done;", w);
  write("if (done < {}) {{", kPoolRun);
  write("const int64_t run = begin{} + {};", w, kPoolRun);
  write("for (const int64_t end = run < stop ? run : stop; at < end; ++at) {{");
  write_fetch(write, block, fetch, "at");
  block.add_row(way(w), "at");
  write("}}");
  write("}}");
  write_runs(write, of, block, way(w));
  if (of.pooling == Pooling::mean) {
    write("const int64_t count = stop - begin{};", w);
    block.divide(way(w), "count");
  }
  block.store(way(w), "out");
  write("out += out_stride;");
  write("}}");
}

/// Bags of `ways` samples from i on: what all have of their first runs side by side, then each by
/// itself.
void write_bags_beside(SourceWriter& write, const PoolFunction& of, BlockWriter& block,
                       int64_t ways, int64_t fetch) {
  for (int64_t w = 0; w < ways; ++w) write("const int64_t begin{} = offsets[i + {}];", w, w);
  write_id_fetch(write, of,
                 fmt::format("least(offsets[i + {}], begin0 + {})", ways, ways * kPoolRun));
  write("int64_t shortest = begin1 - begin0;");
  for (int64_t w = 1; w < ways; ++w)
    write("if (offsets[i + {0}] - begin{1} < shortest) shortest = offsets[i + {0}] - begin{1};",
          w + 1, w);
  write("int64_t done = shortest < {0} ? shortest : {0};", kPoolRun);
  write_folds(write, block, ways, fetch, "done",
              [](int64_t w) { return fmt::format("begin{}", w); });
  for (int64_t w = 0; w < ways; ++w) write_rest_of_bag(write, of, block, w, fetch);
}

int64_t held_beside(int64_t ways) {
  return ways == 2 ? 4 : 2;
}

void write_bags_interleaved(SourceWriter& write, const PoolFunction& of, int64_t lanes) {
  const int64_t fetch = value_of(of, "fetch"), ways = value_of(of, "ways");
  write_arguments(write, of);
  write_fetch_limit(write, fetch, "offsets[last]");
  for (const ColumnBlock& columns : column_blocks(of.dim, lanes, held_beside(ways))) {
    BlockWriter block(write, of, columns);
    block.open();
    open_id_fetch(write, of, "offsets[first]");
    write("float* out = feature.out + first * out_stride + column;");
    write("int64_t i = first;");
    write("for (; i + {0} <= last; i += {0}) {{", ways);
    write_bags_beside(write, of, block, ways, fetch);
    write("}}");
    write("for (; i < last; ++i) {{");
    write("const int64_t begin0 = offsets[i], done = 0;");
    block.zeros(way(0));
    write_rest_of_bag(write, of, block, 0, fetch);
    write("}}");
    block.close();
  }
}

void write_runs_interleaved(SourceWriter& write, const PoolFunction& of, int64_t lanes) {
  const int64_t fetch = value_of(of, "fetch"), ways = value_of(of, "ways");
  write_arguments(write, of);
  write_fetch_limit(write, fetch, "offsets[last]");
  for (const ColumnBlock& columns : column_blocks(of.dim, lanes, held_beside(ways))) {
    BlockWriter block(write, of, columns);
    block.open();
    open_id_fetch(write, of, "offsets[first]");
    open_samples(write, of);
    write("const int64_t stop = offsets[i + 1];");
    write("int64_t at = offsets[i];");
    block.zeros("total");
    write("for (; stop - at >= {0}; at += {0}) {{", ways * kPoolRun);
    write_id_fetch(write, of, fmt::format("at + {}", ways * kPoolRun));
    write_folds(write, block, ways, fetch, std::to_string(kPoolRun),
                [](int64_t w) { return fmt::format("at + {}", w * kPoolRun); });
    for (int64_t w = 0; w < ways; ++w) block.add("total", way(w));
    write("}}");
    write_runs(write, of, block, "total");
    if (of.pooling == Pooling::mean) {
      write("const int64_t count = stop - offsets[i];");
      block.divide("total", "count");
    }
    block.store("total", "out");
    write("}}");
    block.close();
  }
}

}  // namespace

WriteBody body_writer(const std::string& template_name) {
  if (template_name == "bags") return write_bags;
  if (template_name == "one_each") return write_one_each;
  if (template_name == "rows_copied") return write_rows_copied;
  if (template_name == "bags_interleaved") return write_bags_interleaved;
  if (template_name == "runs_interleaved") return write_runs_interleaved;
  return nullptr;
}

}  // namespace recmill::kernels::codegen
