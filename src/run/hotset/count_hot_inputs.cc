// SPDX-License-Identifier: Apache-2.0
#include "run/hotset/count_hot_inputs.h"

#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "hotset/decide_hot_set.h"
#include "run/checkpoint/row_digest.h"
#include "run/hotset/hot_folder.h"
#include "run/hotset/hot_problem.h"
#include "run/hotset/run_hot_set.h"
#include "run/placement/training_lookups.h"
#include "run/rank.h"

namespace recmill::train {
namespace {

/// What a census is made with.
struct Counting {
  const ResolvedRun& run;
  ThreadPool& pool;
  Files& files;
  Progress::Style style;
  TrainingLookups* full =
      nullptr;  // with dictionaries that are full; null: ids are numbered as they come

  bool samples() const { return run.options.hotset.sample < 1; }
};

using Visit = std::function<void(const SparseBatch&)>;

/// The inputs that count.
Status visit_counting(const Counting& of, const std::string& what, const Visit& visit) {
  if (of.samples()) {
    SampledLookups lookups(of.run, of.pool);
    RECMILL_RETURN_IF_ERROR(lookups.open(of.run.options.hotset.sample, "hotset.sample", of.files));
    Progress progress(of.style, what, "rows", lookups.sample().counting_rows());
    return lookups.visit(
        SampledLookups::Part::counting, 0, 1, progress,
        [&](const LookupSample::Block&, const SparseBatch& batch) { visit(batch); });
  }
  const auto visit_all = [&](TrainingLookups& lookups) {
    Progress progress(of.style, what, "rows", lookups.rows());
    return lookups.visit(0, lookups.rows(), progress, visit);
  };
  if (of.full != nullptr) return visit_all(*of.full);
  TrainingLookups lookups(of.run, of.pool);
  RECMILL_RETURN_IF_ERROR(lookups.open(of.files));
  return visit_all(lookups);
}

hotset::BlockTally tally_of(const hotset::HotInputs& inputs, int64_t rows) {
  const hotset::HotFigures figures = inputs.figures();
  return {rows, inputs.inputs(), inputs.lookups(), figures.hot_inputs,
          inputs.lookups() - figures.far_lookups};
}

/// What was added from `before` to `after`.
hotset::BlockTally added(const hotset::BlockTally& before, const hotset::BlockTally& after) {
  return {0, after.inputs - before.inputs, after.lookups - before.lookups,
          after.hot_inputs - before.hot_inputs, after.hot_lookups - before.hot_lookups};
}

/// The second pass over a sample: hot inputs of all its blocks, and what those that judge say.
Status judge(const Counting& of, HotCensus& census) {
  SampledLookups lookups(of.run, of.pool);
  RECMILL_RETURN_IF_ERROR(lookups.open(of.run.options.hotset.sample, "hotset.sample", of.files));
  census.judged.emplace(
      JudgedSample{lookups.sample(),
                   hotset::HotInputs(census.problem, of.run.spec, census.counts, census.set, true),
                   0,
                   {}});
  JudgedSample& judged = *census.judged;
  std::map<int64_t, hotset::BlockTally> tallies;  // by first row
  for (const LookupSample::Block& block : judged.sample.blocks) {
    if (!block.judges) continue;
    tallies[block.rows.first].rows = block.rows.count;
    judged.rows += block.rows.count;
  }
  Progress progress(of.style, "counting hot inputs", "rows", judged.sample.drawn_rows);
  RECMILL_RETURN_IF_ERROR(
      lookups.visit(SampledLookups::Part::all, 0, 1, progress,
                    [&](const LookupSample::Block& block, const SparseBatch& batch) {
                      if (!block.judges) return census.counted.add(batch, of.pool);
                      const hotset::BlockTally before = tally_of(judged.inputs, 0);
                      judged.inputs.add(batch, of.pool);
                      tallies[block.rows.first] += added(before, tally_of(judged.inputs, 0));
                    }));
  std::vector<hotset::BlockTally> judging;
  for (const auto& [first, tally] : tallies) judging.push_back(tally);
  judged.shares =
      hotset::estimate_hot_shares(tally_of(census.counted, judged.sample.counting_rows()), judging,
                                  judged.sample.rest_blocks, judged.sample.rest_rows);
  return {};
}

/// Of the inputs that count, with none added.
Result<std::unique_ptr<HotCensus>> decide_by_counts(const Counting& of, int64_t free) {
  RECMILL_ASSIGN_OR_RETURN(auto counts,
                           stats::AccessCounter::create(of.run.spec, row_digest(of.run)));
  RECMILL_RETURN_IF_ERROR(visit_counting(
      of, "counting lookups", [&](const SparseBatch& batch) { counts.add(batch, of.pool); }));
  hotset::HotProblem problem = hot_problem(of.run, free);
  HotSet set;
  if (of.run.options.hotset.plan.empty()) {
    RECMILL_ASSIGN_OR_RETURN(set, hotset::decide_hot_set(problem, counts));
  } else {
    RECMILL_ASSIGN_OR_RETURN(set, hot_set_of_file(of.run, of.files));
  }
  return std::make_unique<HotCensus>(std::move(problem), std::move(counts), std::move(set),
                                     of.run.spec);
}

}  // namespace

int64_t HotCensus::of_all(int64_t of_counted, int64_t of_judged) const {
  if (!judged || judged->rows == 0) return of_counted;
  const double scale =
      static_cast<double>(judged->sample.rest_rows) / static_cast<double>(judged->rows);
  return of_counted + std::llround(scale * static_cast<double>(of_judged));
}

int64_t HotCensus::inputs() const {
  return of_all(counted.inputs(), judged ? judged->inputs.inputs() : 0);
}

int64_t HotCensus::lookups() const {
  return of_all(counted.lookups(), judged ? judged->inputs.lookups() : 0);
}

hotset::HotFigures HotCensus::at(int64_t cutoff) const {
  hotset::HotFigures figures = curve.at(cutoff, counted.by_least());
  if (!judged) return figures;
  const hotset::HotFigures others = curve.at(cutoff, judged->inputs.by_least());
  figures.hot_inputs = of_all(figures.hot_inputs, others.hot_inputs);
  figures.far_lookups = of_all(figures.far_lookups, judged->inputs.far_lookups(cutoff));
  return figures;
}

hotset::HotFigures HotCensus::of_set() const {
  hotset::HotFigures figures = counted.figures();
  if (!judged) return figures;
  const hotset::HotFigures others = judged->inputs.figures();
  figures.hot_inputs = of_all(figures.hot_inputs, others.hot_inputs);
  figures.far_lookups = of_all(figures.far_lookups, others.far_lookups);
  return figures;
}

std::vector<int64_t> HotCensus::cold_by_one_table() const {
  std::vector<int64_t> cold = counted.cold_by_one_table();
  for (size_t t = 0; judged && t < cold.size(); ++t)
    cold[t] = of_all(cold[t], judged->inputs.cold_by_one_table()[t]);
  return cold;
}

Result<std::unique_ptr<HotCensus>> decide_in_order_of_data(const ResolvedRun& run, int64_t free,
                                                           TrainingLookups& lookups,
                                                           ThreadPool& pool, Files& files,
                                                           Progress::Style style) {
  {
    Progress progress(style, "numbering ids", "rows", lookups.rows());
    RECMILL_RETURN_IF_ERROR(lookups.fill_dictionaries(progress));
  }
  return decide_by_counts({run, pool, files, style, &lookups}, free);
}

Result<std::unique_ptr<HotCensus>> count_hot_inputs(const ResolvedRun& run, int64_t free,
                                                    Files& files, Progress::Style style) {
  const bool puts_apart = run.options.hotset.order == BatchOrder::hot_cold;
  const ResolvedRun counted = puts_apart ? in_order_of_data(run) : run;
  const auto pool = make_pool(run.threads);
  TrainingLookups full(counted, *pool);
  Counting of{counted, *pool, files, style};
  if (puts_apart && !of.samples()) {
    RECMILL_RETURN_IF_ERROR(full.open(files));
    Progress progress(style, "numbering ids", "rows", full.rows());
    RECMILL_RETURN_IF_ERROR(full.fill_dictionaries(progress));
    of.full = &full;
  }
  RECMILL_ASSIGN_OR_RETURN(auto census, decide_by_counts(of, free));
  const auto count = [&](const SparseBatch& batch) { census->counted.add(batch, *pool); };
  RECMILL_RETURN_IF_ERROR(of.samples() ? judge(of, *census)
                                       : visit_counting(of, "counting hot inputs", count));
  return census;
}

}  // namespace recmill::train
