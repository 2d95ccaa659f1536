// SPDX-License-Identifier: Apache-2.0
#include "hotset/block_sample.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/random.h"
#include "base/status.h"
#include "hotset/hot_cutoff.h"
#include "hotset/student_t.h"

namespace recmill::hotset {
namespace {

// floor(a x b / c), all below 2^63.
int64_t floor_of(int64_t a, int64_t b, int64_t c) {
  return static_cast<int64_t>(static_cast<unsigned __int128>(a) *
                              static_cast<unsigned __int128>(b) /
                              static_cast<unsigned __int128>(c));
}

/// Takes each of so many things, asked about in order, with the chance that the number still wanted
/// has among those left (Fan, Muller, Rezucha, 1962).
class Drawing {
 public:
  Drawing(const Random& random, int64_t things, int64_t wanted)
      : random_(random), left_(things), wanted_(wanted) {}
  bool takes(int64_t thing) {
    const auto chance = random_.below(static_cast<uint64_t>(left_--), static_cast<uint64_t>(thing));
    if (static_cast<int64_t>(chance) >= wanted_) return false;
    --wanted_;
    return true;
  }

 private:
  const Random& random_;
  int64_t left_, wanted_;
};

void draw_of_strata(const Random& random, int64_t blocks, int64_t wanted,
                    std::vector<SampledBlock>& sample) {
  const int64_t strata = std::min(wanted, kStrata);
  for (int64_t h = 0; h < strata; ++h) {
    // A stratum's blocks are at least as many as are drawn of it.
    const int64_t first = floor_of(wanted, h, strata), last = floor_of(wanted, h + 1, strata);
    const int64_t begin = floor_of(blocks, first, wanted), end = floor_of(blocks, last, wanted);
    Drawing drawing(random, end - begin, last - first);
    for (int64_t block = begin; block < end; ++block) {
      if (drawing.takes(block)) sample.push_back({block, false});
    }
  }
}

/// Adds some that judge to those that count.
void draw_judges(const Random& random, int64_t blocks, int64_t wanted,
                 std::vector<SampledBlock>& sample) {
  const std::vector<SampledBlock> counting = std::move(sample);
  sample.clear();
  Drawing drawing(random, blocks - std::ssize(counting), wanted);
  auto next = counting.begin();
  for (int64_t block = 0; block < blocks; ++block) {
    if (next != counting.end() && next->block == block) {
      sample.push_back(*next++);
    } else if (drawing.takes(block)) {
      sample.push_back({block, true});
    }
  }
}

/// What is asked of a tally: a part, and the whole that it is a share of.
struct Asked {
  int64_t BlockTally::*part;
  int64_t BlockTally::*whole;
};

/// Wilson's interval of a proportion of which `size` independent trials had the share p: of use
/// where p is near 0 or 1 too, and where it is 0 or 1.
struct Interval {
  double low = 0, high = 1;
};
Interval wilson(double p, double size, double t) {
  const double a = t * t / size;
  const double middle = (p + a / 2) / (1 + a);
  const double half = std::sqrt(a * (p * (1 - p) + a / 4)) / (1 + a);
  return {std::clamp(middle - half, 0.0, p), std::clamp(middle + half, p, 1.0)};
}

/// Standard error of a sum over the rest, by what is left of its judges' parts once they are
/// predicted: these have mean 0 (Cochran, Sampling Techniques, 6.4; equation 5's correction).
template <typename Left>
double error_of_sum(std::span<const BlockTally> judging, double unseen, const Left& left) {
  double squares = 0;
  for (const BlockTally& block : judging) squares += left(block) * left(block);
  const auto m = static_cast<double>(judging.size());
  return m / (1 - unseen) * std::sqrt(unseen * squares / (m - 1) / m);
}

ShareEstimate estimate(const Asked& asked, const BlockTally& counted,
                       std::span<const BlockTally> judging, int64_t rest_blocks,
                       int64_t rest_rows) {
  const auto part_of = [&](const BlockTally& t) { return static_cast<double>(t.*asked.part); };
  const auto whole_of = [&](const BlockTally& t) { return static_cast<double>(t.*asked.whole); };
  BlockTally judged;
  for (const BlockTally& block : judging) judged += block;
  const auto m = std::ssize(judging);
  if (rest_blocks > 0 && whole_of(judged) == 0) return {0, 0, 1};
  // The rest by what its judges have a row; exactly what they have where they are all of it.
  const double scale =
      rest_blocks == 0 ? 0.0 : static_cast<double>(rest_rows) / static_cast<double>(judged.rows);
  const double rest_whole = scale * whole_of(judged), whole = whole_of(counted) + rest_whole;
  if (whole <= 0) return {};
  const double share = (part_of(counted) + scale * part_of(judged)) / whole;
  if (m >= rest_blocks) return {share, share, share};
  const double of_rest = part_of(judged) / whole_of(judged), weight = rest_whole / whole;
  if (m < 2) return {share, share - weight * of_rest, share + weight * (1 - of_rest)};

  const double t = two_sided_t(0.99, m - 1);
  const double unseen = 1 - static_cast<double>(m) / static_cast<double>(rest_blocks);
  const double error =
      error_of_sum(judging, unseen,
                   [&](const BlockTally& b) { return part_of(b) - of_rest * whole_of(b); }) /
      rest_whole;
  // So many independent trials would err as much; never more than there were.
  const double trials = whole_of(judged) / unseen, spread = of_rest * (1 - of_rest);
  const double size = error * error * trials > spread ? spread / (error * error) : trials;
  const Interval interval = wilson(of_rest, size, t);
  // How large the rest is, is an estimate too where rows differ in lookups.
  const double a_row = whole_of(judged) / static_cast<double>(judged.rows);
  const double of_whole = t * std::abs(of_rest - share) / whole *
                          error_of_sum(judging, unseen, [&](const BlockTally& b) {
                            return whole_of(b) - a_row * static_cast<double>(b.rows);
                          });
  return {share, std::max(share - std::hypot(weight * (of_rest - interval.low), of_whole), 0.0),
          std::min(share + std::hypot(weight * (interval.high - of_rest), of_whole), 1.0)};
}

}  // namespace

std::vector<SampledBlock> sample_blocks(int64_t blocks, double share, uint64_t seed) {
  RECMILL_CHECK(blocks >= 0 && share > 0 && share <= 1);
  const int64_t wanted = std::min(
      blocks, std::max(cutoff_of(share, blocks), kFewestSampledBlocks));  // exact as a cutoff
  const int64_t judges = wanted == blocks ? 0 : wanted / 4;
  std::vector<SampledBlock> sample;
  draw_of_strata(Random(seed, Purpose::sampling, 0), blocks, wanted - judges, sample);
  draw_judges(Random(seed, Purpose::sampling, 1), blocks, judges, sample);
  return sample;
}

BlockTally& BlockTally::operator+=(const BlockTally& other) {
  rows += other.rows;
  inputs += other.inputs;
  lookups += other.lookups;
  hot_inputs += other.hot_inputs;
  hot_lookups += other.hot_lookups;
  return *this;
}

HotShares estimate_hot_shares(const BlockTally& counted, std::span<const BlockTally> judging,
                              int64_t rest_blocks, int64_t rest_rows) {
  const auto of = [&](const Asked& asked) {
    return estimate(asked, counted, judging, rest_blocks, rest_rows);
  };
  return {of({&BlockTally::hot_lookups, &BlockTally::lookups}),
          of({&BlockTally::hot_inputs, &BlockTally::inputs})};
}

}  // namespace recmill::hotset
