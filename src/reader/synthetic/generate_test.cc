// SPDX-License-Identifier: Apache-2.0
#include "reader/synthetic/generate.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/json/json.h"
#include "base/temporary_folder.h"
#include "reader/open_reader.h"

namespace recmill::reader {
namespace {

GenerateOptions small(const std::string& folder) {
  GenerateOptions options;
  options.folder = folder;
  options.data.rows = 2500;
  options.data.eval_rows = 800;
  options.data.cardinality_scale = 0.001;
  return options;
}

// Over all pairs.
double auc_by_pairs(std::span<const double> scores, std::span<const float> labels) {
  double in_order = 0, pairs = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    for (size_t j = 0; j < scores.size(); ++j) {
      if (labels[i] < 0.5f || labels[j] > 0.5f) continue;
      pairs += 1;
      in_order += scores[i] > scores[j] ? 1.0 : scores[i] == scores[j] ? 0.5 : 0.0;
    }
  }
  return in_order / pairs;
}

ColumnBatch all_rows(const DataOptions& options, Subset subset) {
  ThreadPool pool(2);
  auto reader = open_reader(options, subset, 1, pool, posix_files());
  RECMILL_CHECK(reader.ok(), reader.status().message());
  ColumnBatch batch;
  const Status status = (*reader)->read(0, 0, 100000, batch);
  RECMILL_CHECK(status.ok(), status.message());
  return batch;
}

void expect_equal(const ColumnBatch& a, const ColumnBatch& b) {
  ASSERT_EQ(a.samples, b.samples);
  EXPECT_EQ(a.labels, b.labels);
  for (size_t c = 0; c < b.dense.size(); ++c) {
    // As bytes: NaN, a missing cell, equals NaN.
    EXPECT_EQ(std::memcmp(a.dense.at(c).data(), b.dense[c].data(), b.dense[c].size() * 4), 0) << c;
  }
  for (size_t c = 0; c < b.ids.size(); ++c) {
    EXPECT_EQ(a.ids.at(c).offsets, b.ids[c].offsets) << c;
    EXPECT_EQ(a.ids[c].ids, b.ids[c].ids) << c;
  }
}

}  // namespace

TEST(Generate, writes_files_that_read_as_the_rows_of_the_model) {
  TemporaryFolder folder;
  ThreadPool pool(2);
  GenerateOptions options = small(folder.path() + "/a");
  options.train_files = 3;
  int64_t last = 0;
  const auto figures =
      generate(options, pool, posix_files(), auc_by_pairs, [&](int64_t rows, int64_t of) {
        EXPECT_GT(rows, last);
        EXPECT_EQ(of, 3300);
        last = rows;
        return true;
      });
  ASSERT_TRUE(figures.ok()) << figures.status().message();
  EXPECT_EQ(last, 3300);
  DataOptions files;
  files.path = options.folder;
  files.train = {"train-*.tsv"};
  files.eval = {"eval.tsv"};
  files.cache = "";
  DataOptions made;
  made.format = DataFormat::synthetic;
  made.synthetic = options.data;
  expect_equal(all_rows(files, Subset::train), all_rows(made, Subset::train));
  expect_equal(all_rows(files, Subset::eval), all_rows(made, Subset::eval));
}

TEST(Generate, writes_planted_json_that_reads_as_it_was) {
  TemporaryFolder folder;
  ThreadPool pool(1);
  const auto figures =
      generate(small(folder.path()), pool, posix_files(), auc_by_pairs, ConvertProgress());
  ASSERT_TRUE(figures.ok()) << figures.status().message();
  const auto read = read_planted_figures(posix_files(), folder.path() + "/planted.json");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, *figures);
  EXPECT_GT(figures->best_auc, figures->linear_auc);
  EXPECT_GT(figures->linear_auc, figures->dense_auc);
  EXPECT_GT(figures->dense_auc, 0.6);
  EXPECT_EQ(figures->crosses.size(), 3u);
}

TEST(Generate, refuses_to_replace_a_data_set_unasked) {
  TemporaryFolder folder;
  ThreadPool pool(1);
  GenerateOptions options = small(folder.path());
  ASSERT_TRUE(generate(options, pool, posix_files(), auc_by_pairs, ConvertProgress()).ok());
  options.data.seed = 2;
  const auto refused = generate(options, pool, posix_files(), auc_by_pairs, ConvertProgress());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("planted.json: is there already"), std::string::npos);
  ASSERT_TRUE(posix_files().remove(folder.path() + "/planted.json").ok());
  const auto not_its_own = generate(options, pool, posix_files(), auc_by_pairs, ConvertProgress());
  ASSERT_FALSE(not_its_own.ok());
  EXPECT_NE(not_its_own.status().message().find("train.tsv: is there already"), std::string::npos);
  options.overwrite = true;
  const auto replaced = generate(options, pool, posix_files(), auc_by_pairs, ConvertProgress());
  ASSERT_TRUE(replaced.ok()) << replaced.status().message();
  EXPECT_EQ(replaced->seed, 2);
}

TEST(Generate, stopped_midway_leaves_no_planted_json_and_no_cut_file) {
  TemporaryFolder folder;
  ThreadPool pool(1);
  const auto stopped = generate(small(folder.path()), pool, posix_files(), auc_by_pairs,
                                [](int64_t, int64_t) { return false; });
  EXPECT_FALSE(stopped.ok());
  EXPECT_TRUE(posix_files().list(folder.path())->empty());
}

TEST(PlantedFigures, a_damaged_file_is_an_error_that_names_file_and_key) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/planted.json";
  Json json = to_json(PlantedFigures{});
  json["best_auc"] = "high";
  ASSERT_TRUE(write_atomically(posix_files(), path, json.dump()).ok());
  EXPECT_EQ(read_planted_figures(posix_files(), path).status().message(),
            path + ": best_auc: a value of another type");
  json.erase("best_auc");
  ASSERT_TRUE(write_atomically(posix_files(), path, json.dump()).ok());
  EXPECT_EQ(read_planted_figures(posix_files(), path).status().message(),
            path + ": no key best_auc");
  ASSERT_TRUE(write_atomically(posix_files(), path, std::string("[1]")).ok());
  EXPECT_EQ(read_planted_figures(posix_files(), path).status().message(),
            path + ": no key version");
}

}  // namespace recmill::reader
