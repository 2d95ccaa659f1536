// SPDX-License-Identifier: Apache-2.0
#include "kernels/tune/drift.h"

#include <algorithm>
#include <map>
#include <utility>

namespace recmill::kernels::tune {

std::vector<Drift> drifted(std::span<const FeatureClass> classes, std::span<const BagStats> now) {
  std::vector<Drift> found;
  for (const FeatureClass& of : classes) {
    for (const int64_t feature : of.features) {
      if (feature < 0 || feature >= static_cast<int64_t>(now.size())) continue;
      const double far = distance(of.shape.bags, now[feature]);
      if (far > kDriftDistance) found.push_back({feature, of.shape.bags, now[feature], far});
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Drift& a, const Drift& b) {
    return std::pair(-a.distance, a.feature) < std::pair(-b.distance, b.feature);
  });
  return found;
}

DriftWatch::DriftWatch(std::vector<FeatureClass> classes, size_t features)
    : classes_(std::move(classes)), counters_(features) {}

std::vector<Drift> DriftWatch::see(const SparseBatch& batch) {
  if (over_ || passing_-- > 0) return {};
  passing_ = 0;
  for (size_t f = 0; f < counters_.size(); ++f)
    counters_[f].add(batch.features[f].view(batch.samples));
  ++batches_;
  samples_ += batch.samples;
  if (batches_ < kWindowBatches || samples_ < kWindowSamples) return {};
  std::vector<BagStats> now;
  for (BagCounter& counter : counters_) now.push_back(std::exchange(counter, {}).stats());
  batches_ = samples_ = 0;
  passing_ = kPassed;
  auto found = drifted(classes_, now);
  over_ = !found.empty();
  return found;
}

Regrouped regroup(const FamilyTimes& record, std::span<const FeatureClass> features) {
  std::map<int64_t, const FeatureClass*> now;
  for (const FeatureClass& one : features) now[one.features.front()] = &one;
  Regrouped made;
  made.times.family = record.family;
  for (const ValueTimes& at : record.values) made.times.values.push_back({at.value, {}, 0.0});
  for (size_t c = 0; c < record.classes.size(); ++c) {
    FeatureClass left{record.classes[c].shape, {}, record.classes[c].kind};
    for (const int64_t feature : record.classes[c].features) {
      const auto found = now.find(feature);
      if (found == now.end()) continue;
      const BagStats& bags = found->second->shape.bags;
      const double far = distance(left.shape.bags, bags);
      if (far > kDriftDistance) {
        made.moved.push_back({feature, left.shape.bags, bags, far});
      } else {
        left.features.push_back(feature);
        now.erase(found);
      }
    }
    if (left.features.empty()) continue;
    made.times.classes.push_back(std::move(left));
    for (size_t v = 0; v < record.values.size(); ++v)
      made.times.values[v].classes.push_back(record.values[v].classes[c]);
  }
  std::vector<FeatureShape> shapes;
  std::vector<std::string> kinds;
  std::vector<int64_t> numbers;
  for (const auto& [feature, one] : now) {
    shapes.push_back(one->shape);
    kinds.push_back(one->kind);
    numbers.push_back(feature);
  }
  for (FeatureClass& of : group_features(shapes, kinds)) {
    for (int64_t& feature : of.features) feature = numbers[feature];
    made.times.classes.push_back(std::move(of));
    for (ValueTimes& at : made.times.values) at.classes.emplace_back();
  }
  std::stable_sort(made.moved.begin(), made.moved.end(),
                   [](const Drift& a, const Drift& b) { return a.distance > b.distance; });
  return made;
}

}  // namespace recmill::kernels::tune
