// SPDX-License-Identifier: Apache-2.0
#include "train/plain_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/json/json.h"
#include "base/temporary_folder.h"

namespace recmill::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The values of a .npy file; `header` gets its dictionary.
template <typename T>
std::vector<T> values_of(const std::string& path, std::string* header = nullptr) {
  auto text = read_text(posix_files(), path);
  EXPECT_TRUE(text.ok()) << text.status().message();
  if (!text.ok()) return {};
  const size_t length = uint8_t((*text)[8]) + 256 * size_t(uint8_t((*text)[9]));
  EXPECT_EQ(0u, (10 + length) % 64);
  if (header != nullptr) *header = text->substr(10, length);
  std::vector<T> values((text->size() - 10 - length) / sizeof(T));
  std::memcpy(values.data(), text->data() + 10 + length, values.size() * sizeof(T));
  return values;
}

ModelSpec two_tables() {
  ModelSpec spec;
  spec.num_dense = 1;
  for (int t = 0; t < 2; ++t) {
    TableSpec table;
    table.name = t == 0 ? "a" : "b";
    table.rows = 10;
    table.dim = 2;
    table.optimizer.kind = OptimizerKind::sgd;
    spec.tables.push_back(table);
    FeatureSpec feature;
    feature.name = table.name;
    feature.table = t;
    spec.features.push_back(feature);
  }
  return spec;
}

/// Samples of one dense value; feature 0 has one row each, feature 1 bags of 0, 1, 2 ... rows.
std::pair<DenseBatch, SparseBatch> batch_of(int64_t first, int64_t samples) {
  DenseBatch dense{.first = first,
                   .samples = samples,
                   .columns = 1,
                   .values = {},
                   .labels = {},
                   .sample_weights = {},
                   .groups = {}};
  SparseBatch sparse;
  sparse.first = first;
  sparse.samples = samples;
  sparse.features.resize(2);
  for (auto& feature : sparse.features) feature.offsets.push_back(0);
  for (int64_t i = 0; i < samples; ++i) {
    dense.values.push_back(float(first + i));
    dense.labels.push_back(float(i % 2));
    sparse.features[0].rows.push_back(first + i);
    for (int64_t j = 0; j < i; ++j) sparse.features[1].rows.push_back(j);
    for (auto& feature : sparse.features) feature.offsets.push_back(int64_t(feature.rows.size()));
  }
  return {dense, sparse};
}

TEST(PlainExport, writes_batches_behind_each_other_as_numpy_reads_them) {
  const TemporaryFolder folder;
  PlainExport out(posix_files(), folder.path());
  model::ModelOptions model{.kind = model::ModelKind::dlrm, .bottom = {2}, .top = {1}};
  ASSERT_TRUE(out.describe(model, two_tables(), {}).ok());
  const std::vector<model::ParameterSpec> specs{{"bottom.0.weight", {2, 1}, 16}};
  const std::vector<float> flat(18, 0.5f);
  ASSERT_TRUE(out.parameters(specs, flat).ok());
  ASSERT_TRUE(out.table(1, 2, std::vector<float>(20, 0.25f)).ok());
  for (const auto& [first, samples] : {std::pair{0, 3}, std::pair{3, 2}}) {
    const auto& [dense, sparse] = batch_of(first, samples);
    out.train(dense, sparse, std::vector<double>{0.1, 0.2, 0.3});
    out.evaluate(dense, sparse);
  }
  ASSERT_TRUE(out.finish().ok());
  std::string header;
  const std::string at = folder.path();
  EXPECT_THAT(values_of<float>(at + "/train/dense.npy", &header), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(header, HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (5, 1), }"));
  EXPECT_THAT(values_of<int64_t>(at + "/train/batches.npy"), ElementsAre(0, 3, 5));
  EXPECT_THAT(values_of<int64_t>(at + "/train/rows_0.npy"), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(values_of<int64_t>(at + "/eval/rows_1.npy"), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(values_of<int64_t>(at + "/eval/offsets_1.npy"), ElementsAre(0, 0, 1, 3, 3, 4));
  EXPECT_THAT(values_of<double>(at + "/train/learning_rates.npy", &header),
              ElementsAre(0.1, 0.2, 0.3, 0.1, 0.2, 0.3));
  EXPECT_THAT(header, HasSubstr("'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)"));
  EXPECT_THAT(values_of<float>(at + "/parameters/bottom.0.weight.npy"), ElementsAre(0.5f, 0.5f));
  EXPECT_EQ(20u, values_of<float>(at + "/tables/1.npy").size());
  auto text = read_text(posix_files(), at + "/model.json");
  ASSERT_TRUE(text.ok());
  const Json json = Json::parse(*text);
  EXPECT_EQ(Json({10, 10}), json["table_rows"]);
  EXPECT_EQ("sgd", json["row_optimizers"][1]["kind"]);
}

TEST(PlainExport, names_the_key_when_there_is_no_plain_script) {
  const TemporaryFolder folder;
  const Status status = PlainExport(posix_files(), folder.path())
                            .describe({.kind = model::ModelKind::tbsm}, two_tables(), {});
  EXPECT_EQ(Status::Code::bad_request, status.code());
  EXPECT_THAT(status.message(), HasSubstr("model.kind: 'tbsm' has no plain PyTorch script"));
  ModelSpec spec = two_tables();
  spec.tables[1].optimizer.l2 = 0.1;
  const Status l2 = PlainExport(posix_files(), folder.path()).describe({}, spec, {});
  EXPECT_EQ(l2.message(), "embedding.optimizer.l2: the plain PyTorch script has none (table 'b')");
}

}  // namespace
}  // namespace recmill::train
