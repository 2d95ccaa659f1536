// SPDX-License-Identifier: Apache-2.0
#include "reader/synthetic/zipf_law.h"

#include <fmt/format.h>

#include <algorithm>

#include "reader/synthetic/portable_math.h"

namespace recmill::reader {
namespace {

constexpr int64_t buckets_an_octave = 128;

/// First ranks of the buckets: widths 1 up to rank 2 * buckets_an_octave, then 2, 4, 8, ...
std::vector<int64_t> bucket_firsts(int64_t ranks) {
  std::vector<int64_t> firsts;
  int64_t width = 1;
  for (int64_t first = 0; first < ranks; first += width) {
    if (first + 1 > 2 * buckets_an_octave * width) width *= 2;
    firsts.push_back(first);
  }
  firsts.push_back(ranks);
  return firsts;
}

std::vector<double> bucket_weights(const std::vector<int64_t>& firsts, double exponent) {
  std::vector<double> weights(firsts.size() - 1);
  for (size_t b = 0; b < weights.size(); ++b) {
    const double middle = static_cast<double>(firsts[b] + firsts[b + 1] + 1) * 0.5;  // from 1
    weights[b] = static_cast<double>(firsts[b + 1] - firsts[b]) * portable_pow(middle, -exponent);
  }
  return weights;
}

}  // namespace

AliasTable::AliasTable(std::span<const double> weights) : slots_(weights.size()) {
  double total = 0;
  for (double weight : weights) total += weight;
  RECMILL_CHECK(total > 0);
  std::vector<double> share(weights.size());  // 1: exactly one slot
  std::vector<uint32_t> small, large;
  for (uint32_t i = 0; i < weights.size(); ++i) {
    share[i] = weights[i] / total * static_cast<double>(weights.size());
    (share[i] < 1.0 ? small : large).push_back(i);
  }
  while (!small.empty() && !large.empty()) {
    const uint32_t poor = small.back(), rich = large.back();
    small.pop_back();
    slots_[poor] = {static_cast<uint32_t>(share[poor] * 4294967296.0), poor, rich};
    share[rich] -= 1.0 - share[poor];
    if (share[rich] < 1.0) {
      large.pop_back();
      small.push_back(rich);
    }
  }
  // What remains is 1 up to rounding.
  for (uint32_t i : large) slots_[i] = {0, i, i};
  for (uint32_t i : small) slots_[i] = {0, i, i};
}

ZipfLaw::ZipfLaw(int64_t ranks, double exponent) : ZipfLaw(ranks, exponent, bucket_firsts(ranks)) {}

ZipfLaw::ZipfLaw(int64_t ranks, double exponent, std::vector<int64_t> firsts)
    : ranks_(ranks),
      exponent_(exponent),
      firsts_(std::move(firsts)),
      alias_(bucket_weights(firsts_, exponent)) {
  RECMILL_CHECK(ranks >= 1 && exponent >= 0);
  const std::vector<double> weights = bucket_weights(firsts_, exponent);
  before_.assign(1, 0.0);
  for (double weight : weights) before_.push_back(before_.back() + weight);
  const double total = before_.back();
  for (double& share : before_) share /= total;
  for (size_t b = 0; b + 1 < before_.size() && before_[b] < 1.0; ++b) {
    edges_.push_back(static_cast<uint64_t>(before_[b] * 0x1p64));
  }
}

Result<double> ZipfLaw::exponent_for(int64_t ranks, double top_share, double access_share) {
  const auto top = std::max<int64_t>(1, static_cast<int64_t>(top_share * ranks + 0.5));
  const std::vector<int64_t> firsts = bucket_firsts(ranks);
  const auto share_of_top = [&](double exponent) {
    double head = 0, total = 0;
    const std::vector<double> weights = bucket_weights(firsts, exponent);
    for (size_t b = 0; b < weights.size(); ++b) {
      const double inside =
          static_cast<double>(std::clamp<int64_t>(top - firsts[b], 0, firsts[b + 1] - firsts[b]));
      head += weights[b] * inside / static_cast<double>(firsts[b + 1] - firsts[b]);
      total += weights[b];
    }
    return head / total;
  };
  double low = 0.0, high = 20.0;
  if (share_of_top(low) > access_share + 1e-9 || share_of_top(high) < access_share) {
    return Status::BadRequest(
        fmt::format("no Zipf exponent gives the top {} of {} ids a share of {} of the accesses",
                    top, ranks, access_share));
  }
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) * 0.5;
    (share_of_top(middle) < access_share ? low : high) = middle;
  }
  return high;
}

int64_t ZipfLaw::quantile(uint64_t at) const {
  // A bucket without a quantile of its own has the edge of the next one, which is found instead.
  const auto next = std::upper_bound(edges_.begin(), edges_.end(), at);
  const auto b = static_cast<size_t>(next - edges_.begin() - 1);
  const auto width = static_cast<uint64_t>(firsts_[b + 1] - firsts_[b]);
  const unsigned __int128 end =
      next == edges_.end() ? static_cast<unsigned __int128>(1) << 64 : *next;
  // Below 2^104: a bucket has fewer than 2^40 ranks.
  const unsigned __int128 ranks = static_cast<unsigned __int128>(at - edges_[b]) * width;
  return firsts_[b] + static_cast<int64_t>(ranks / (end - edges_[b]));
}

size_t ZipfLaw::bucket_of(int64_t rank) const {
  return static_cast<size_t>(std::upper_bound(firsts_.begin(), firsts_.end(), rank) -
                             firsts_.begin() - 1);
}

double ZipfLaw::probability(int64_t rank) const {
  const size_t b = bucket_of(rank);
  return (before_[b + 1] - before_[b]) / static_cast<double>(firsts_[b + 1] - firsts_[b]);
}

double ZipfLaw::cumulative(int64_t count) const {
  if (count <= 0) return 0.0;
  if (count >= ranks_) return before_.back();
  const size_t b = bucket_of(count);
  const double share =
      static_cast<double>(count - firsts_[b]) / static_cast<double>(firsts_[b + 1] - firsts_[b]);
  return before_[b] + (before_[b + 1] - before_[b]) * share;
}

}  // namespace recmill::reader
