// SPDX-License-Identifier: Apache-2.0
// Random values for random keys of small configurations, as --set takes them: whatever they are, a
// run is planned, or trained, or refused in one line, in this process, and nothing is written
// beside the run's folder. 2,000 cases are a test; more by hand:
//     build/tests/run_options_fuzz --cases=100000 --seed=2
// --show tells each case before it runs, for one that ends the process.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <new>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/json/json.h"
#include "base/random.h"
#include "base/temporary_folder.h"
#include "comm/threads.h"
#include "config/run_config.h"
#include "config/testing/option_keys.h"
#include "run/gpu/gpu_memory.h"
#include "run/hotset/choose_hot_rows.h"
#include "run/memory.h"
#include "run/placement/run_placement.h"
#include "train/job.h"

namespace recmill::cli {
namespace {

int64_t g_cases = 2000;
uint64_t g_seed = 1;
bool g_shown = false;  // each case, before it runs

constexpr const char* kWritten =
    "[train]\nbatch_size = 16\neval_batch_size = 32\nthreads = 1\n"
    "checkpoint.at_end = false\n";

std::string synthetic(const std::string& model, const std::string& more = "") {
  return "[data]\nformat = 'synthetic'\n[data.synthetic]\nrows = 60\neval_rows = 20\n"
         "shape = 'columns'\nplanted.crosses = 0\n"
         "dense = [{name = 'a'}, {name = 'b', maximum = 9}]\n"
         "ids = [{name = 'i', cardinality = 20}, {name = 'j', cardinality = 9, max_length = 3, "
         "mean_length = 2}]\n[embedding]\nrows = 30\ndim = 4\n" +
         more + "[model]\n" + model + "\n" + kWritten;
}

/// Small configurations: each kind of model, and of data.
std::vector<std::string> configurations() {
  const std::string csv =
      "[data]\nformat = 'csv'\ntrain = 'rows.csv'\ncache = ''\nsplit.by = 'fraction'\n"
      "[[data.columns]]\nname = 'y'\nrole = 'label'\n[[data.columns]]\nname = 'w'\n"
      "role = 'sample_weight'\n[[data.columns]]\nname = 'd'\nrole = 'dense'\n"
      "[[data.columns]]\nname = 'i'\nrole = 'id'\n[[data.columns]]\nname = 'l'\nrole = 'id'\n"
      "list_separator = '|'\n[[data.columns]]\nname = 't'\nrole = 'time'\n"
      "[embedding]\nrows = 30\ndim = 4\nmapping = 'dictionary'\nout_of_range = 'clamp'\n"
      "[model]\nkind = 'mlp'\ntop = [3, 1]\n";
  return {synthetic("kind = 'dlrm'\nbottom = [4]\ntop = [3, 1]"),
          synthetic("kind = 'mlp'\ntop = [1]", "store = 'placed'\n"),
          synthetic("kind = 'wide_and_deep'\ndeep = [3]", "[[tables]]\nname = 'i'\nrows = 5\n"),
          synthetic("kind = 'deep_fm'\ndeep = [3, 1]\nbatch_norm = true"),
          synthetic("kind = 'deep_cross'\nbottom = [4]\nover = [1]"),
          synthetic("kind = 'tbsm'\nbottom = [4]\ntop = [3]\nover = [1]",
                    "[[features]]\nname = 'i'\ntable = 'i'\n[[features]]\nname = 'j'\n"
                    "table = 'i'\npooling = 'none'\n"),
          "[data]\nformat = 'synthetic'\n[data.synthetic]\nrows = 60\neval_rows = 20\n"
          "shape = 'columns'\nplanted.crosses = 0\n[[workload.lines]]\ndims = [4, 8]\ncount = 3\n"
          "dim_counts = [1, 2]\n[model]\nkind = 'mlp'\ntop = [1]\n" +
              std::string(kWritten),
          csv + kWritten,
          "[data]\nformat = 'behavior_log'\ntrain = 'log.csv'\ncache = ''\nsplit.by = 'hash'\n"
          "[embedding]\nrows = 30\ndim = 4\n[model]\nkind = 'mlp'\ntop = [1]\n" +
              std::string(kWritten)};
}

void write_data() {
  std::string rows = "y,w,d,i,l,t\n", log;
  for (int r = 0; r < 80; ++r) {
    rows += fmt::format("{},{},{},{},{}|{},{}\n", r % 2, 1 + r % 3, r * 0.5 - 9, r % 11, r % 4,
                        r % 6, 1000 + r);
    log += fmt::format("{},{},{},pv,{}\n", r % 5, r % 13, r % 3, 1511544070 + r);
  }
  ASSERT_TRUE(write_atomically(posix_files(), "rows.csv", rows).ok());
  ASSERT_TRUE(write_atomically(posix_files(), "log.csv", log).ok());
}

/// Draws the changes of one case.
class Changes {
 public:
  explicit Changes(uint64_t number) : random_(g_seed, Purpose::test, number) {}

  size_t below(size_t count) { return random_.below(count, drawn_++, 0); }

  std::string value_of(const config::OptionKey& key) {
    if (!key.is_list || below(4) == 0) return scalar_of(key);
    std::string list = "[";
    for (size_t items = below(4); items > 0; --items)
      list += scalar_of(key) + (items > 1 ? ", " : "");
    return list + "]";
  }

 private:
  template <size_t n>
  std::string any_of(const char* const (&values)[n]) {
    return values[below(n)];
  }

  std::string scalar_of(const config::OptionKey& key) {
    if (below(20) == 0)  // of another type
      return any_of({"true", "'x'", "1.5", "3", "[]", "{a = 1}", "[[1]]", "1979-05-27"});
    switch (key.kind) {
      case config::OptionKey::Kind::boolean:
        return any_of({"true", "false"});
      case config::OptionKey::Kind::name:
        return below(20) == 0 ? "'none_such'" : "'" + key.names[below(key.names.size())] + "'";
      case config::OptionKey::Kind::text:
        return any_of({"''",        "'i'",         "'j'",    "'y'",         "'l'",
                       "'a'",       "'|'",         "','",    "'rows.csv'",  "'rows.csv/inner'",
                       "'log.csv'", "'*'",         "'auc'",  "'gauc'",      "'fill_null'",
                       "'clamp'",   "'two words'", "'\\\\'", "\"\\u00E9\"", "'pv'",
                       "'-1'",      "'user'"});
      case config::OptionKey::Kind::integer:
        return integer_of(key.range);
      case config::OptionKey::Kind::real:
        return real_of(key.range);
    }
    return "0";
  }

  std::string integer_of(const Range& range) {
    switch (below(6)) {
      case 0:
        return fmt::format("{:.0f}", range.has_least() ? range.least : -1.0);
      case 1:
        return fmt::format("{:.0f}", range.has_most() ? range.most : 0x1p62);
      case 2:
        return any_of({"-9223372036854775808", "9223372036854775807", "4611686018427387904",
                       "1152921504606846976", "72057594037927936", "72057594037927935",
                       "1099511627776", "4294967296", "4294967295", "2147483648", "2147483647"});
      case 3:
        return std::to_string(uint64_t{1} << below(57));
      default:
        return std::to_string(static_cast<int64_t>(below(40)) - 2);
    }
  }

  std::string real_of(const Range& range) {
    switch (below(6)) {
      case 0:
        return fmt::format("{:.17e}", range.has_least() ? range.least : -1e300);
      case 1:
        return fmt::format("{:.17e}", range.has_most() ? range.most : 1e300);
      case 2:
        return any_of({"nan", "-nan", "inf", "-inf", "-0.0", "5e-324", "1e-46", "3.4e38", "3.5e38",
                       "1.7976931348623157e308", "1e20", "-1e-9"});
      case 3:
        return fmt::format("{:e}", std::exp2(static_cast<double>(below(120)) - 60.0));
      default:
        return fmt::format("{:e}", 0.01 * static_cast<double>(below(200)));
    }
  }

  Random random_;
  uint64_t drawn_ = 0;
};

/// "key=value" of a case: keys by themselves, and lists of sections as a whole.
std::vector<std::string> changes_of(Changes& draw, const std::vector<config::OptionKey>& keys) {
  std::vector<std::string> sets;
  for (size_t left = 1 + draw.below(4); left > 0; --left) {
    const config::OptionKey& key = keys[draw.below(keys.size())];
    if (key.list.empty()) {
      const std::string path = key.section.empty() ? key.key : key.section + "." + key.key;
      sets.push_back(path + "=" + draw.value_of(key));
      continue;
    }
    std::string items;
    for (size_t count = draw.below(4); count > 0; --count) {
      std::string item;
      std::set<std::string> given;
      for (const config::OptionKey& other : keys) {
        if (other.list != key.list || other.section != key.list) continue;
        const bool is_likely = other.key == "name" || other.key == "dims" || other.key == key.key;
        const bool is_left_out = is_likely ? draw.below(8) == 0 : draw.below(6) > 0;
        if (is_left_out || !given.insert(other.key).second) continue;
        item += (item.empty() ? "" : ", ") + other.key + " = " + draw.value_of(other);
      }
      items += (items.empty() ? "{" : ", {") + item + "}";
    }
    sets.push_back(key.list + "=[" + items + "]");
  }
  return sets;
}

/// What `recmill train --dry-run` works out.
Status plan(const train::RunOptions& options, int64_t& bytes) {
  RECMILL_ASSIGN_OR_RETURN(auto run, train::resolve_run(options, posix_files()));
  ThreadsWorld world;
  RECMILL_RETURN_IF_ERROR(
      train::choose_hot_rows(run, {}, world, posix_files(), train::Progress::Style::silent));
  RECMILL_RETURN_IF_ERROR(train::place_tables(run, posix_files()));
  MemoryLedger ledger = train::memory_ledger(run);
  if (options.device == DeviceKind::emulated) {
    std::vector<int> ranks(static_cast<size_t>(run.ranks));
    std::iota(ranks.begin(), ranks.end(), 0);
    for (const train::GpuPlan& of : train::plan_gpu(run, int64_t{1} << 30, ranks))
      for (const auto* items : {&of.need.device.items, &of.need.pinned.items})
        ledger.items.insert(ledger.items.end(), items->begin(), items->end());
  }
  bytes = 0;
  for (const MemoryItem& item : ledger.items) {
    EXPECT_GE(item.bytes, 0) << item.what;
    if (item.what != "program and libraries") bytes += std::min(item.bytes, int64_t{1} << 40);
  }
  return train::check_memory(run, ledger, ThreadsWorld());
}

/// Whether training is a matter of milliseconds, and needs neither a compiler nor a launcher.
bool is_small(const train::RunOptions& options, int64_t bytes) {
  const train::TrainOptions& train = options.train;
  const auto& data = options.data.synthetic;
  const bool by_threads = train.transport == train::Transport::automatic ||
                          train.transport == train::Transport::threads;
  return bytes < int64_t{64} << 20 && by_threads && options.device == DeviceKind::cpu &&
         options.kernels.mode == train::KernelMode::standard && options.kernels.templates.empty() &&
         data.rows <= 100'000 && data.eval_rows <= 1000 &&
         options.data.behavior_log.negatives <= 9 && train.ranks <= 8 && train.threads <= 8;
}

Status train_briefly(train::RunOptions options) {
  options.train.iterations = std::clamp<int64_t>(options.train.iterations, 1, 2);
  options.train.epochs = std::min<int64_t>(options.train.epochs, 2);
  ThreadsWorld world;
  const train::TrainingRequest request{.existing = train::ExistingRun::overwrite,
                                       .export_plain = ""};
  const train::JobSetting setting{posix_files(), world, "", {"", config::to_toml(options)}};
  return run_training(options, request, setting).status();
}

/// Whether it plans and counts no more than there is time for.
bool is_quick(const train::RunOptions& options) {
  const reader::SyntheticOptions& data = options.data.synthetic;
  int64_t longest = 1, rows = 0;
  for (const auto& column : data.ids) longest = std::max(longest, column.max_length);
  for (const auto& line : options.workload.lines) {
    const auto end = static_cast<int64_t>(line.mean + 8 * line.deviation);
    longest = std::max({longest, line.longest, end});
    rows = std::max({rows, line.rows, 1000 * line.count});
  }
  for (const int64_t of : options.embedding.rows) rows = std::max(rows, of);
  for (const auto& table : options.tables) rows = std::max(rows, table.rows.value_or(0));
  const bool draws = options.data.format == DataFormat::synthetic;
  const double learnable = static_cast<double>(data.rows) * static_cast<double>(longest);
  if (draws && (longest > 10'000 || learnable > 1e7 * data.planted.learnable_count)) return false;
  const bool many = options.train.ranks > 8;
  if (options.embedding.store == StoreKind::placed &&
      (many || rows > 1 << 24 || options.placement.count_samples > 100'000))
    return false;
  return !many || options.device == DeviceKind::cpu;
}

class RunOptionsFuzz : public testing::Test {
 protected:
  void SetUp() override {
    before_ = std::filesystem::current_path();
    std::filesystem::create_directory(folder_.path() + "/at");
    std::filesystem::current_path(folder_.path() + "/at");
    write_data();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which map terabytes
    // What takes more than there is fails as it does in the program.
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
    limit.rlim_cur = rlim_t{16} << 30;
    ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
#endif
  }
  void TearDown() override {
    std::filesystem::current_path(before_);
  }

  /// Trained, where that takes little, is every third case.
  Status outcome_of(const std::string& file, const std::vector<std::string>& sets, int64_t number) {
    auto config = config::load_run_config(file, sets);
    if (!config.ok()) return config.status();
    config->options.train.runs = "runs";
    config->options.kernels.cache = "cache";
    if (!config->options.data.cache.empty()) config->options.data.cache = "cache";
    if (!is_quick(config->options)) return {};
    try {
      int64_t bytes = 0;
      Status status = plan(config->options, bytes);
      if (status.ok() && number % 3 == 0 && is_small(config->options, bytes)) {
        ++trained_;
        status = train_briefly(config->options);
      }
      return config->locate(status);
    } catch (const std::bad_alloc&) {
      return Status::Failed("the machine has no memory left");
    }
  }

  void expect_one_clear_line(const Status& status, const std::string& file) {
    if (status.ok()) return;
    const std::string& line = status.message();
    EXPECT_FALSE(line.empty());
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    if (status.code() == Status::Code::failed) return;
    // The request was wrong: where it says so, or which key.
    const bool placed = line.starts_with("--set ") || line.starts_with(file);
    const std::string key = line.substr(0, line.find(": "));
    if (placed || keys_.contains(key.substr(0, key.find('[')))) return;
    ++unplaced_;  // it names a file
    if (g_shown) std::cerr << "names no key: " << line << std::endl;
  }

  void expect_nothing_beside_the_run() {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      EXPECT_EQ(entry.path().filename().string(), "at");
    for (const auto& entry : std::filesystem::directory_iterator("."))
      EXPECT_TRUE(expected_.contains(entry.path().filename().string())) << entry.path().string();
  }

  TemporaryFolder folder_;
  std::filesystem::path before_;
  std::set<std::string> keys_;
  std::set<std::string> expected_{"rows.csv", "log.csv", "runs", "cache"};
  int64_t trained_ = 0, unplaced_ = 0;
};

TEST_F(RunOptionsFuzz, whatever_is_asked_is_done_or_refused_in_one_line_beside_nothing) {
  const std::vector<config::OptionKey> keys = config::OptionKeys::of<train::RunOptions>();
  for (const config::OptionKey& key : keys)
    keys_.insert(!key.list.empty()     ? key.list
                 : key.section.empty() ? key.key
                                       : key.section + "." + key.key);
  const auto configs = configurations();
  for (size_t c = 0; c < configs.size(); ++c) {
    const std::string file = fmt::format("c{}.toml", c);
    ASSERT_TRUE(write_atomically(posix_files(), file, configs[c]).ok());
    expected_.insert(file);
    const Status status = outcome_of(file, {}, 0);
    ASSERT_TRUE(status.ok()) << configs[c] << status.message();
  }
  int64_t counts[3] = {};
  for (int64_t number = 0; number < g_cases && !HasFailure(); ++number) {
    Changes draw(static_cast<uint64_t>(number));
    const std::string file = fmt::format("c{}.toml", draw.below(configs.size()));
    const auto sets = changes_of(draw, keys);
    std::string said = fmt::format("--seed={} case {}: {}", g_seed, number, file);
    for (const std::string& set : sets) said += " --set " + set;
    SCOPED_TRACE(said);
    if (g_shown) std::cerr << said << std::endl;
    const Status status = outcome_of(file, sets, number);
    ++counts[static_cast<int>(status.code())];
    expect_one_clear_line(status, file);
    expect_nothing_beside_the_run();
  }
  std::cout << fmt::format(
      "seed {}: {} cases, of which {} done ({} trained), {} failed, {} refused, {} of these "
      "without "
      "a key\n",
      g_seed, g_cases, counts[0], trained_, counts[1], counts[2], unplaced_);
}

}  // namespace
}  // namespace recmill::cli

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with("--cases=")) recmill::cli::g_cases = std::atoll(argv[i] + 8);
    if (word == "--show") recmill::cli::g_shown = true;
    if (word.starts_with("--seed=")) recmill::cli::g_seed = std::strtoull(argv[i] + 7, nullptr, 10);
  }
  return RUN_ALL_TESTS();
}
