// SPDX-License-Identifier: Apache-2.0
// What a checkpoint says is checked, even where its checksums are right: one line that names it.
#include "run/checkpoint/restore_checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/json/json.h"
#include "base/testing/faulty_files.h"
#include "base/testing/shared_files.h"
#include "checkpoint/folder.h"
#include "checkpoint/writer.h"
#include "comm/threads.h"
#include "run/testing/small_run.h"

namespace recmill::train {
namespace {

/// A checkpoint in memory, to be changed and written again with right checksums.
struct Content {
  Json properties;
  std::vector<std::pair<checkpoint::EntrySpec, std::vector<std::byte>>> entries;

  std::pair<checkpoint::EntrySpec, std::vector<std::byte>>& entry(const std::string& name) {
    const auto found =
        std::ranges::find_if(entries, [&](const auto& entry) { return entry.first.name == name; });
    RECMILL_CHECK(found != entries.end(), name);
    return *found;
  }
  void erase(const std::string& name) {
    entries.erase(entries.begin() + (&entry(name) - &entries[0]));
  }
  /// Drops the last rows of an entry.
  void cut(const std::string& name, int64_t rows) {
    auto& [spec, bytes] = entry(name);
    spec.shape[0] -= rows;
    bytes.resize(spec.rows() * spec.row_bytes());
  }
};

Result<Content> read_content(Files& files, const std::string& path) {
  RECMILL_ASSIGN_OR_RETURN(const auto reader, checkpoint::Reader::open(files, path));
  Content content{reader->properties(), {}};
  for (const checkpoint::Entry& entry : reader->entries()) {
    std::vector<std::byte> bytes(entry.spec.rows() * entry.spec.row_bytes());
    RECMILL_RETURN_IF_ERROR(reader->read(entry, 0, entry.spec.rows(), bytes));
    content.entries.emplace_back(entry.spec, std::move(bytes));
  }
  return content;
}

Status write_content(Files& files, const std::string& folder, int64_t step,
                     const Content& content) {
  RECMILL_ASSIGN_OR_RETURN(
      auto writer,
      checkpoint::Writer::create(files, folder, step, checkpoint::ExistingCheckpoint::replace));
  RECMILL_ASSIGN_OR_RETURN(auto part, checkpoint::PartWriter::create(files, writer->path(), 0));
  for (const auto& [spec, bytes] : content.entries) {
    RECMILL_RETURN_IF_ERROR(part->add(spec, bytes));
  }
  RECMILL_ASSIGN_OR_RETURN(auto contents, part->finish());
  return writer->finish({std::move(contents)}, content.properties);
}

struct Damage {
  const char* expected;  // in the message
  std::function<void(Content&)> make;
};

std::vector<Damage> damages() {
  const auto property = [](const char* pointer, const Json& value) {
    return [=](Content& content) { content.properties[Json::json_pointer(pointer)] = value; };
  };
  return {
      {"property iteration is no count", property("/iteration", "8")},
      {"property iteration is no count", property("/iteration", -1)},
      {"property reader/epoch is no count", property("/reader/epoch", nullptr)},
      {"property reader/row is no count", property("/reader/row", 1.5)},
      {"property reader/epoch is no count", property("/reader", Json::array())},
      {"training was at row 70 of the data, which has 70 rows", property("/reader/row", 70)},
      {"training was at row 9223372036854775807",
       property("/reader/row", std::numeric_limits<int64_t>::max())},
      {"property window/total is no count", property("/window", Json::object())},
      {"property early_stop/counted is no count", property("/early_stop/counted", true)},
      {"property early_stop/best is no number", property("/early_stop/best", "0.5")},
      {"property best is no iteration and value", property("/best", 4)},
      {"property best is no iteration and value", property("/best/iteration", 4)},
      {"train.seed: is 1, and ", property("/seed", 2)},
      {"train.slices: is 8, and ", property("/shards", 4)},
      {"train.batch_size: is 24, and ", property("/batch_size", 25)},
      {"data.format: the id columns are [\"shop\",\"words\"], and ",
       property("/schema/ids", Json::array())},
      {"another graph", property("/graph", nullptr)},
      {"optimizer.kind: is \"adagrad\", and ", property("/optimizers/dense", "adam")},
      {" was written with \"adam\"", property("/optimizers/dense", "adam")},
      {"was written with none", property("/optimizers", nullptr)},
      {"embedding.optimizer.kind: is \"adam\" (table 'words'), and ",
       property("/optimizers/tables/words", "ftrl")},
      {"embedding.optimizer.correction: is \"global\" (table 'words'), and ",
       property("/optimizers/corrections/words", "row")},
      {"was written with none", [](Content& content) { content.properties = Json::array(); }},
      {"has no 'table/words/weight'",
       [](Content& content) { content.erase("table/words/weight"); }},
      {"'table/words/weight' is float32 [99, 4] instead of float32 [100, 4]",
       [](Content& content) { content.cut("table/words/weight", 1); }},
      {"has no 'dense/",
       [](Content& content) {
         std::erase_if(content.entries,
                       [](const auto& entry) { return entry.first.name.starts_with("dense/"); });
       }},
      {"has no 'dictionary/words'", [](Content& content) { content.erase("dictionary/words"); }},
      {"'dictionary/words' is int64",
       [](Content& content) {
         content.entry("dictionary/words").first.type = checkpoint::ElementType::int64;
       }},
      {"dictionary 'words'",
       [](Content& content) {  // one id twice
         auto& bytes = content.entry("dictionary/words").second;
         std::memcpy(bytes.data(), bytes.data() + 8, 8);
       }},
      {"has no 'metric/window/probability'",
       [](Content& content) {
         content.erase("metric/window/logit");
         content.erase("metric/window/probability");
       }},
      {"'metric/window/logit' is int64",
       [](Content& content) {
         content.entry("metric/window/logit").first.type = checkpoint::ElementType::int64;
       }},
      {"has no 'metric/window/label'",
       [](Content& content) { content.erase("metric/window/label"); }},
      {"the columns of metric/window differ in length",
       [](Content& content) { content.cut("metric/window/label", 1); }},
  };
}

void expect_one_line(const Status& status, const std::string& part) {
  ASSERT_FALSE(status.ok()) << part;
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  EXPECT_EQ(std::count(status.message().begin(), status.message().end(), '\n'), 0)
      << status.message();
}

}  // namespace

TEST(RestoreCheckpoint, state_that_cannot_be_is_one_line_though_its_checksums_are_right) {
  FaultyFiles disk;
  SharedFiles files(disk, [](const std::string&) { return Status(); });
  RunOptions options = small_run();
  options.train.iterations = 8;
  ASSERT_TRUE(train(options, files).ok());
  const std::string path = small_checkpoints() + "/" + checkpoint::folder_name(8);
  const auto whole = read_content(files, path);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  for (const Damage& damage : damages()) {
    Content content = *whole;
    damage.make(content);
    ASSERT_TRUE(write_content(files, small_checkpoints(), 8, content).ok()) << damage.expected;
    const Status status = train(options, files, ExistingRun::resume).status();
    expect_one_line(status, damage.expected);
    EXPECT_NE(status.message().find(path), std::string::npos) << status.message();
  }
  ASSERT_TRUE(write_content(files, small_checkpoints(), 8, *whole).ok());
  EXPECT_TRUE(train(options, files, ExistingRun::resume).ok());
}

TEST(RestoreCheckpoint, what_one_of_before_does_not_say_is_as_its_runs_configuration_has_it) {
  FaultyFiles disk;
  SharedFiles files(disk, [](const std::string&) { return Status(); });
  RunOptions options = small_run();
  options.train.iterations = 8;
  ASSERT_TRUE(train(options, files).ok());
  const std::string path = small_checkpoints() + "/" + checkpoint::folder_name(8);
  auto before = read_content(files, path);
  ASSERT_TRUE(before.ok()) << before.status().message();
  before->properties.erase("meaning");
  ASSERT_TRUE(write_content(files, small_checkpoints(), 8, *before).ok());
  RunOptions other = options;
  other.embedding.pooling = preprocess::FeaturePooling::mean;
  const std::string config = *read_text(files, "runs/small/config.toml");
  const auto reads = [&](const RunOptions& as) -> ReadOptions {
    return [&, as](const std::string& text, const std::string& at) -> Result<RunOptions> {
      EXPECT_EQ(text, config);
      EXPECT_EQ(at, "runs/small/config.toml");
      return as;
    };
  };
  const auto resume = [&](const RunOptions& of, const ReadOptions& read) {
    return train(of, files, ExistingRun::resume, read).status();
  };
  expect_one_line(resume(other, reads(options)),
                  "embedding.pooling: is \"mean\" (feature 'shop'), and " + path +
                      ", as its run's config.toml says, was written with \"sum\"");
  EXPECT_EQ(*read_text(files, "runs/small/config.toml"), config) << "it is the run's still";
  expect_one_line(score(other, files, reads(options)).status(), "embedding.pooling: is \"mean\"");
  EXPECT_TRUE(score(options, files, reads(options)).ok());
  EXPECT_TRUE(score(other, files, nullptr).ok()) << "nothing says how it was";
  EXPECT_TRUE(resume(other, reads(other)).ok());
}

TEST(RestoreCheckpoint, a_window_of_before_there_were_logits_has_those_of_its_probabilities) {
  FaultyFiles disk;
  SharedFiles files(disk, [](const std::string&) { return Status(); });
  RunOptions options = small_run();
  options.train.iterations = 8;
  ASSERT_TRUE(train(options, files).ok());
  const std::string path = small_checkpoints() + "/" + checkpoint::folder_name(8);
  auto content = read_content(files, path);
  ASSERT_TRUE(content.ok()) << content.status().message();
  content->erase("metric/window/logit");
  auto& bytes = content->entry("metric/window/probability").second;
  std::vector<float> probabilities(50);
  ASSERT_EQ(bytes.size(), 50 * sizeof(float));
  std::memcpy(probabilities.data(), bytes.data(), bytes.size());
  probabilities[48] = 0.0f;
  probabilities[49] = 1.0f;
  std::memcpy(bytes.data(), probabilities.data(), bytes.size());
  ASSERT_TRUE(write_content(files, small_checkpoints(), 8, *content).ok());

  options.train.iterations = 9;  // of 22 samples
  ASSERT_TRUE(train(options, files, ExistingRun::resume).ok());
  const auto reader =
      checkpoint::Reader::open(files, small_checkpoints() + "/" + checkpoint::folder_name(9));
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  const auto logits = (*reader)->read_all<double>(*(*reader)->find("metric/window/logit"));
  const auto again = (*reader)->read_all<float>(*(*reader)->find("metric/window/probability"));
  ASSERT_TRUE(logits.ok() && again.ok());
  for (size_t i = 0; i < 26; ++i) {
    const double p = probabilities[22 + i];
    EXPECT_EQ((*logits)[i], std::log(p / (1 - p))) << i;
    EXPECT_EQ((*again)[i], probabilities[22 + i]) << i;
  }
  EXPECT_EQ((*logits)[26], std::log(0x1p-53 / (1 - 0x1p-53)));
  EXPECT_EQ((*logits)[27], std::log((1 - 0x1p-53) / 0x1p-53));
}

TEST(RestoreCheckpoint, each_rank_reads_what_it_owns_and_by_hash_everything) {
  constexpr int kRanks = 4;
  for (const auto& [sharding, name] : EnumNames<Sharding>::names) {
    SCOPED_TRACE(std::string(name));
    FaultyFiles disk;
    SharedFiles files(disk, [](const std::string&) { return Status(); });
    RunOptions options = small_run();
    options.train.iterations = 8;
    options.train.ranks = kRanks;
    options.embedding.sharding = sharding;
    options.embedding.dim = 40;
    options.model.bottom = {40};
    ASSERT_TRUE(train(options, files).ok());
    const std::string path = small_checkpoints() + "/" + checkpoint::folder_name(8);
    const auto run = resolve_run(options, files);
    ASSERT_TRUE(run.ok()) << run.status().message();
    const auto pool = make_pool(1);
    const Status status = run_ranks(kRanks, [&](Communicator& communicator) -> Status {
      SharedFiles own(files, [](const std::string&) { return Status(); });
      RECMILL_ASSIGN_OR_RETURN(Rank rank, make_rank(*run, Way::engine, communicator, *pool, own));
      RECMILL_ASSIGN_OR_RETURN(const auto reader, checkpoint::Reader::open(own, path));
      int64_t expected = own.bytes_read();
      for (const checkpoint::Entry& entry : reader->entries()) {
        if (entry.spec.name == "metric/window/probability") continue;  // the logits say it
        const bool of_a_table = entry.spec.name.starts_with("table/");
        for (const checkpoint::Block& block : entry.blocks) {
          const bool own_block = block.part == communicator.rank() || sharding == Sharding::hash;
          if (own_block || !of_a_table) expected += block.bytes(entry.spec);
        }
      }
      RECMILL_RETURN_IF_ERROR(
          restore_checkpoint(*run, rank, *reader, /*for_training=*/true).status());
      EXPECT_EQ(own.bytes_read(), expected) << "rank " << communicator.rank();
      return {};
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(RestoreCheckpoint, a_block_with_a_flipped_bit_is_one_line_that_names_its_file) {
  FaultyFiles disk;
  SharedFiles files(disk, [](const std::string&) { return Status(); });
  RunOptions options = small_run();
  options.train.iterations = 8;
  options.train.ranks = 2;
  ASSERT_TRUE(train(options, files).ok());
  const std::string folder = small_checkpoints() + "/" + checkpoint::folder_name(8);
  for (const char* part : {"/part-0", "/part-1"}) {
    std::string& content = disk.content(folder + part);
    const size_t step = std::max<size_t>(1, content.size() / 8);
    for (size_t byte = 0; byte < content.size(); byte += step) {
      content[byte] = static_cast<char>(content[byte] ^ 1);
      expect_one_line(train(options, files, ExistingRun::resume).status(), folder + part);
      content[byte] = static_cast<char>(content[byte] ^ 1);
    }
  }
}

}  // namespace recmill::train
