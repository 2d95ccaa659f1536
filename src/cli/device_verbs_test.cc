// SPDX-License-Identifier: Apache-2.0
// Runs whose rows are stored on a GPU: the emulated one, and what is said where there is none.
#include "base/json/json.h"
#include "cli/testing/bags.h"
#include "cli/testing/program.h"
#include "kernels/codegen/testing/kernel_folder.h"

namespace recmill::cli {
namespace {

const std::string kSharedKernels = "kernels.cache=" + kernels::codegen::kernel_folder();

std::string on_device(const std::string& text, const std::string& device) {
  return "device = '" + device + "'\n" + text;
}

/// Features of one id and of bags.
std::string bags_run(const std::string& rest) {
  return bags_config("rows = 100\ndims = [4, 8, 16]\n",
                     "mean = 20\ndeviation = 9\nlongest = 50\nrows = 400\n", rest);
}

TEST_F(Program, on_an_emulated_gpu_training_gives_the_bits_of_the_cpu) {
  write("cpu.toml", config(kDlrm, "", "iterations = 20"));
  write("gpu.toml", on_device(config(kDlrm, "", "iterations = 20"), "emulated"));
  for (const char* name : {"cpu.toml", "gpu.toml"}) {
    const Outcome outcome = run({"train", name, "--set", kSharedKernels});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  }
  const Outcome same =
      run({"verify", "--checkpoints", newest_checkpoint("cpu"), newest_checkpoint("gpu")});
  EXPECT_EQ(same.status, 0) << same.out << same.err;
  // What one device has trained, the other goes on with.
  const Outcome resumed = run({"train", "gpu.toml", "--resume", "--set", kSharedKernels, "--set",
                               "device=cpu", "--set", "train.iterations=30"});
  EXPECT_EQ(resumed.status, 0) << resumed.err;
}

TEST_F(Program, on_an_emulated_gpu_every_model_and_optimizer_is_bitwise_the_plain_run) {
  const std::vector<std::string> configs{
      config(kDlrm, "optimizer.kind = 'sgd'\npooling = 'mean'", ""),
      config(kDlrm, "precision = 'bfloat16'\noptimizer.kind = 'adam'", ""),
      config("kind = 'deep_fm'\ndeep = [16, 1]", "optimizer.kind = 'adagrad'", "slices = 4"),
      config("kind = 'wide_and_deep'\ndeep = [16]", "optimizer.kind = 'ftrl'", ""),
      config("kind = 'deep_cross'\nbottom = [8]\nover = [16, 1]", "precision = 'float16'", "")};
  for (std::string text : configs) {
    if (const size_t twice = text.find("slices = 4"); twice != std::string::npos)
      text.erase(text.find("slices = 8\n"), 11);
    write("a.toml", on_device(text, "emulated"));
    const Outcome outcome = run({"verify", "a.toml", "--iterations", "6", "--set", kSharedKernels});
    EXPECT_EQ(outcome.status, 0) << text << outcome.err;
    EXPECT_NE(outcome.err.find("bitwise the same"), std::string::npos) << outcome.err;
  }
}

TEST_F(Program, a_cache_on_an_emulated_gpu_is_bitwise_the_plain_run) {
  const auto cached = [](const std::string& text, const std::string& lookahead) {
    return on_device(text, "emulated") + "[lookahead]\n" + lookahead;
  };
  const std::vector<std::string> configs{
      cached(config(kDlrm, "store = 'cached'\noptimizer.kind = 'adam'", ""), "batches = 0\n"),
      cached(
          config(
              kDlrm,
              "store = 'cached'\nprecision = 'bfloat16'\nmapping = 'dictionary'\nunseen = 'mean'\n"
              "optimizer.kind = 'rowwise_adagrad'",
              "evaluate_every = 2"),
          "batches = 1\nprefetch = 1\n"),
      cached(config("kind = 'deep_cross'\nbottom = [8]\nover = [16, 1]",
                    "store = 'cached'\nprecision = 'float16'", "evaluate_every = 3"),
             "batches = 7\nprefetch = 4\n"),
      cached(bags_run("[embedding]\nstore = 'cached'\n"), "batches = 200\nprefetch = 1\n")};
  for (const std::string& text : configs) {
    write("a.toml", text);
    const Outcome outcome = run({"verify", "a.toml", "--iterations", "6", "--set", kSharedKernels});
    EXPECT_EQ(outcome.status, 0) << text << outcome.err;
    EXPECT_NE(outcome.err.find("bitwise the same"), std::string::npos) << outcome.err;
  }
}

/// Layers on the GPU, so that steps are enqueued and gone on from.
TEST_F(Program, a_cache_on_an_emulated_gpu_trains_and_goes_on_as_other_stores) {
  const auto train = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> words{"train", "gpu.toml", "--set", kSharedKernels};
    for (const std::string& set : more) {
      words.emplace_back("--set");
      words.push_back(set);
    }
    words.insert(words.end(), {"--set", "name=" + name});
    if (posix_files().exists(path("runs/" + name))) words.emplace_back("--resume");
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  };
  write("gpu.toml", on_device(config(kDlrm, "precision = 'bfloat16'",
                                     "iterations = 12\nevaluate_every = 5\ndeterministic = false"),
                              "emulated"));
  train("local", {});
  train("local", {"train.iterations=20"});
  train("cached", {"embedding.store=cached", "lookahead.batches=3"});
  train("cached", {"embedding.store=cached", "train.iterations=20"});
  train("mixed", {"embedding.store=cached"});
  train("mixed", {"train.iterations=20"});
  for (const char* name : {"cached", "mixed"}) {
    const Outcome same =
        run({"verify", "--checkpoints", newest_checkpoint("local"), newest_checkpoint(name)});
    EXPECT_EQ(same.status, 0) << same.out << same.err;
  }
}

TEST_F(Program, ranks_with_an_emulated_gpu_each_are_bitwise_the_plain_run) {
  const std::vector<std::string> configs{
      config(kDlrm, "optimizer.kind = 'sgd'\npooling = 'mean'", "") +
          "[[tables]]\nname = 'C3'\nrows = 70\nfrozen = true\n",
      config("kind = 'deep_cross'\nbottom = [8]\nover = [16, 1]", "precision = 'bfloat16'",
             "transport = 'nccl_emulated'")};
  for (const std::string& text : configs) {
    write("a.toml", on_device(text, "emulated"));
    const Outcome outcome =
        run({"verify", "a.toml", "--iterations", "6", "--ranks", "1,2,3", "--set", kSharedKernels});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("ranks 3: bitwise the same"), std::string::npos) << outcome.err;
  }
}

TEST_F(Program, what_ranks_with_gpus_have_trained_goes_on_at_any_number_of_them) {
  const auto train = [&](const std::string& name, std::vector<std::string> sets) {
    std::vector<std::string> words{"train", "a.toml"};
    sets.insert(sets.end(), {"name=" + name, kSharedKernels});
    for (const std::string& set : sets) {
      if (!set.starts_with("--")) words.push_back("--set");
      words.push_back(set);
    }
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  };
  write("a.toml", config(kDlrm, "", "iterations = 20"));
  const std::string gpu = "device=emulated", on = "train.iterations=30";
  train("cpu", {on});
  train("three", {gpu, "train.ranks=3"});
  train("one", {gpu});
  train("three", {"--resume", gpu, "train.ranks=2", "gpu.exchange=windows", on});
  train("one", {"--resume", gpu, "train.ranks=2", "train.transport=nccl_emulated", on});
  for (const char* name : {"one", "three"}) {
    const Outcome same =
        run({"verify", "--checkpoints", newest_checkpoint("cpu"), newest_checkpoint(name)});
    EXPECT_EQ(same.status, 0) << name << same.out << same.err;
  }
}

TEST_F(Program, on_an_emulated_gpu_whole_steps_are_as_near_to_float64_as_the_plain_run) {
  const std::vector<std::string> sets{"--set", kSharedKernels, "--set",
                                      "train.deterministic=false"};
  const auto with_sets = [&](std::vector<std::string> words) {
    words.insert(words.end(), sets.begin(), sets.end());
    return words;
  };
  write("cpu.toml", config(kDlrm, "", "iterations = 20"));
  write("gpu.toml", on_device(config(kDlrm, "", "iterations = 20"), "emulated"));
  const Outcome near = run(with_sets({"verify", "gpu.toml", "--against", "float64", "--iterations",
                                      "20", "--json", "--set", "gpu.graphs=on"}));
  ASSERT_EQ(near.status, 0) << near.err;
  EXPECT_EQ(Json::parse(near.out)["iterations"], 20);
  const Outcome bits = run(with_sets({"verify", "gpu.toml"}));
  EXPECT_EQ(bits.status, 2);
  EXPECT_NE(bits.err.find("train.deterministic: false has the GPU compute dense layers"),
            std::string::npos)
      << bits.err;
  // What the GPU has trained and evaluated, it and the CPU go on with.
  const Outcome trained = run(with_sets({"train", "gpu.toml"}));
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_NE(trained.err.find("the GPU computes the dense layers"), std::string::npos);
  for (const char* device : {"emulated", "cpu"}) {
    const Outcome resumed =
        run(with_sets({"train", "gpu.toml", "--resume", "--set", std::string("device=") + device,
                       "--set", "train.iterations=30"}));
    EXPECT_EQ(resumed.status, 0) << device << resumed.err;
  }
}

TEST_F(Program, whole_steps_on_the_gpus_of_several_ranks_come_as_near_as_on_one) {
  write("a.toml", on_device(config(kDlrm, "", "iterations = 20"), "emulated"));
  const auto train = [&](std::vector<std::string> sets) {
    std::vector<std::string> words{"train", "a.toml", "--quiet"};
    sets.insert(sets.end(), {kSharedKernels, "train.deterministic=false"});
    for (const std::string& set : sets) {
      if (!set.starts_with("--")) words.push_back("--set");
      words.push_back(set);
    }
    return run_json(words).value("log_loss", -1.0);
  };
  const double one = train({"name=one"});
  EXPECT_NEAR(train({"name=two", "train.ranks=2"}), one, 1e-5);
  EXPECT_NEAR(train({"name=three", "train.ranks=3", "train.transport=nccl_emulated"}), one, 1e-5);
  // What several have trained goes on at any number, and on the CPU.
  const std::string on = "train.iterations=30";
  const double further = train({"name=one", "--resume", on});
  EXPECT_NEAR(train({"name=three", "--resume", on, "train.ranks=2", "gpu.exchange=windows"}),
              further, 1e-5);
  EXPECT_NEAR(train({"name=two", "--resume", on, "device=cpu"}), further, 1e-5);
}

TEST_F(Program, on_an_emulated_gpu_rows_are_scored_to_the_bits_of_the_cpu) {
  write("ids.toml", config(kDlrm, "", "iterations = 20"));
  write("bags.toml", bags_run("iterations = 10\n"));
  for (const std::string name : {"ids", "bags"}) {
    const Outcome trained = run({"train", name + ".toml", "--quiet"});
    ASSERT_EQ(trained.status, 0) << trained.err;
    const auto predict = [&](const std::string& device) {
      const std::string file = name + "." + device + ".parquet";
      const Outcome outcome = run({"predict", "runs/" + name, "--out", file, "--set",
                                   "device=" + device, "--set", "kernels.cache=" + device});
      EXPECT_EQ(outcome.status, 0) << outcome.err;
      return read_text(posix_files(), path(file));
    };
    const auto expected = predict("cpu"), found = predict("emulated");
    ASSERT_TRUE(expected.ok() && found.ok());
    EXPECT_TRUE(*found == *expected) << name;
  }
  // Whose kernels were compiled.
  EXPECT_FALSE(posix_files().exists(path("cpu")));
  EXPECT_TRUE(posix_files().exists(path("emulated")));
}

TEST_F(Program, on_an_emulated_gpu_that_computes_layers_too_scores_are_near_those_of_the_cpu) {
  write("a.toml", config(kDlrm, "", "iterations = 20"));
  ASSERT_EQ(run({"train", "a.toml", "--quiet"}).status, 0);
  const Json expected = run_json({"eval", "runs/a", "--quiet"});
  const Json found =
      run_json({"eval", "runs/a", "--quiet", "--set", "device=emulated", "--set", kSharedKernels,
                "--set", "train.deterministic=false", "--set", "gpu.preprocess=true"});
  for (const char* metric : {"log_loss", "auc"})
    EXPECT_NEAR(found.value(metric, -1.0), expected.value(metric, -2.0), 1e-5) << metric;
}

TEST_F(Program, preprocessing_on_an_emulated_gpu_is_bitwise_the_plain_run) {
  const std::string dense =
      "\n[preprocess]\ndense = ['fill_null', 'clamp', 'log']\nclamp_high = 50\n";
  for (const char* mapping : {"hash", "dictionary", "modulo"}) {
    const std::string embedding = std::string("mapping = '") + mapping + "'\nmax_length = 1";
    write("a.toml", on_device(config(kDlrm, embedding, "") + dense, "emulated"));
    const Outcome outcome = run({"verify", "a.toml", "--iterations", "6", "--ranks", "1,3,8",
                                 "--set", kSharedKernels, "--set", "gpu.preprocess=true"});
    EXPECT_EQ(outcome.status, 0) << mapping << outcome.err;
    for (const char* ranks : {"1", "3", "8"})
      EXPECT_NE(outcome.err.find(std::string("ranks ") + ranks + ": bitwise the same"),
                std::string::npos)
          << mapping << outcome.err;
  }
}

TEST_F(Program, rows_in_host_memory_are_trained_to_the_bits_of_the_cpu) {
  // Batches of evaluation are as large: all that is counted of them is certain.
  const std::string options = "iterations = 20\neval_batch_size = 128";
  write("cpu.toml", config(kDlrm, "", options));
  ASSERT_EQ(run({"train", "cpu.toml"}).status, 0);
  const auto train = [&](const std::string& name, std::vector<std::string> sets) {
    write(name + ".toml", on_device(config(kDlrm, "", options), "emulated"));
    std::vector<std::string> words{"train", name + ".toml", "--set", kSharedKernels};
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const Outcome same =
        run({"verify", "--checkpoints", newest_checkpoint("cpu"), newest_checkpoint(name)});
    EXPECT_EQ(same.status, 0) << same.out << same.err;
    return outcome.err;
  };
  EXPECT_NE(train("host", {"gpu.rows=host"})
                .find("gpu.rows = \"host\": rows of 0 tables (0.0 MiB) are in the GPU's memory, of "
                      "26 ("),
            std::string::npos);
  write("fit.toml", on_device(config(kDlrm, "", options), "emulated"));
  // Room for about the half of a rank's rows.
  const auto half = [](const Json& ledger, const std::string& gpu, int& tables) {
    int64_t rows = 0;
    for (int table = 1; table <= 26; ++table) {
      const auto of = ledger.find(gpu + ": table C" + std::to_string(table));
      if (of == ledger.end()) continue;
      ++tables;
      rows += of->get<int64_t>();
    }
    return static_cast<double>(ledger.value("total bytes of " + gpu, int64_t{0}) - rows / 2) /
           (1 << 30);
  };
  int tables = 0;
  const Json one = run_json({"train", "fit.toml", "--dry-run"});
  const double of_all = half(one, "gpu 0", tables);
  const std::string memory = "gpu.memory_gib=" + std::to_string(of_all);
  // Without what may not be needed.
  const auto may_be =
      one.at("gpu 0: offsets of bags that are not of one lookup each").get<double>();
  const std::string certain_memory =
      "gpu.memory_gib=" + std::to_string(of_all - may_be / (1 << 30));
  ASSERT_EQ(tables, 26);
  const std::string said = train("fit", {"gpu.rows=fit", memory});
  EXPECT_NE(said.find("gpu.rows = \"fit\": rows of "), std::string::npos) << said;
  EXPECT_EQ(said.find("rows of 0 tables"), std::string::npos) << said;
  EXPECT_EQ(said.find("rows of 26 tables"), std::string::npos) << said;
  // Of two ranks each has other tables.
  const Json two = run_json({"train", "fit.toml", "--dry-run", "--set", "train.ranks=2"});
  tables = 0;
  const double of_one = std::max(half(two, "gpu 0", tables), half(two, "gpu 1", tables));
  EXPECT_EQ(tables, 26) << two.dump(1);
  const std::string said_by_two =
      train("two", {"gpu.rows=fit", "gpu.memory_gib=" + std::to_string(of_one), "train.ranks=2"});
  EXPECT_NE(said_by_two.find("rank 1: gpu.rows = \"fit\": rows of "), std::string::npos)
      << said_by_two;
  const Outcome refused = run({"train", "fit.toml", "--overwrite", "--set", certain_memory});
  EXPECT_EQ(refused.status, 2) << refused.err;
  EXPECT_NE(refused.err.find("gpu.rows = \"device\": the run takes "), std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find("; the largest table: table C"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("with \"fit\" or \"host\" rows are stored in the host's memory\n"),
            std::string::npos)
      << refused.err;
  EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
}

TEST_F(Program, what_a_gpu_does_not_have_is_refused_in_one_line) {
  const auto refused = [&](const std::vector<std::string>& sets) {
    write("a.toml", config(kDlrm, "", ""));
    std::vector<std::string> words{"train", "a.toml", "--set", "device=emulated"};
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    return outcome.err;
  };
  EXPECT_EQ(refused({"embedding.sharding=row_range"}),
            "recmill: --set embedding.sharding=row_range: embedding.sharding: \"row_range\" is not "
            "supported "
            "on device = \"emulated\"; use \"table\"\n");
  EXPECT_NE(refused({"embedding.store=placed"})
                .find("embedding.store: \"placed\" is not supported on device = \"emulated\"; use "
                      "\"local\"\n"),
            std::string::npos);
  EXPECT_NE(refused({"kernels.templates=['own.cc']"})
                .find("kernels.templates: templates of your own run on device = \"cpu\"\n"),
            std::string::npos);
  EXPECT_NE(refused({"gpu.kernel_seconds=0"}).find("gpu.kernel_seconds: must be above 0"),
            std::string::npos);
  EXPECT_NE(refused({"device=cpu", "gpu.preprocess=true"})
                .find("gpu.preprocess: device = \"cpu\" has no GPU to preprocess on\n"),
            std::string::npos);
  EXPECT_NE(refused({"gpu.graphs=on"})
                .find("gpu.graphs: \"on\" needs a GPU as device and train.deterministic = false"),
            std::string::npos);
  EXPECT_NE(refused({"gpu.graphs=on", "gpu.synchronous=true", "train.deterministic=false"})
                .find("gpu.graphs: gpu.synchronous ends each kernel before the next\n"),
            std::string::npos);
  EXPECT_NE(refused({"device=gpu"}).find("device must be one of cpu, cuda, emulated, not 'gpu'\n"),
            std::string::npos);
}

TEST_F(Program, without_a_driver_there_is_no_cuda_and_no_other_device_instead) {
  if (posix_files().exists("/dev/nvidiactl")) GTEST_SKIP() << "there is a GPU";
  write("a.toml", on_device(config(kDlrm, "", ""), "cuda"));
  const Outcome outcome = run({"train", "a.toml", "--set", "kernels.cache=cache"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err.rfind("recmill: device = \"cuda\": no CUDA driver: libcuda.so.1", 0), 0u)
      << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_EQ(newest_checkpoint("a"), "");
  const Outcome on_gpu = run(
      {"train", "a.toml", "--set", "kernels.cache=cache", "--set", "train.deterministic=false"});
  EXPECT_EQ(on_gpu.status, 1);
  EXPECT_EQ(std::count(on_gpu.err.begin(), on_gpu.err.end(), '\n'), 1) << on_gpu.err;
}

TEST_F(Program, without_a_driver_every_verb_says_so_in_one_line_and_writes_nothing) {
  if (posix_files().exists("/dev/nvidiactl")) GTEST_SKIP() << "there is a GPU";
  write("a.toml", config(kDlrm, "", "iterations = 3"));
  ASSERT_EQ(run({"train", "a.toml"}).status, 0);
  const std::vector<std::vector<std::string>> all{{"verify", "a.toml"},
                                                  {"eval", "runs/a", "--quiet"},
                                                  {"predict", "runs/a", "--out", "scores.csv"},
                                                  {"tune", "a.toml", "--quiet"}};
  for (std::vector<std::string> words : all) {
    words.insert(words.end(), {"--set", "device=cuda", "--set", "kernels.cache=cache"});
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, 1) << words[0];
    EXPECT_NE(outcome.err.find("no CUDA driver: libcuda.so.1"), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "") << words[0];
  }
  for (const char* file : {"scores.csv", "tuned/a.cuda.json"})
    EXPECT_FALSE(posix_files().exists(path(file))) << file;
}

// ---- messages between GPUs

TEST_F(Program, over_the_stand_in_of_nccl_training_gives_the_bits_of_one_rank) {
  write("one.toml", config(kDlrm, "", "iterations = 20"));
  write("four.toml", config(kDlrm, "", "iterations = 20\ntransport = 'nccl_emulated'\nranks = 4"));
  for (const char* name : {"one.toml", "four.toml"}) {
    const Outcome outcome = run({"train", name});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err.find("a stand-in for NCCL, over threads") != std::string::npos,
              name == std::string("four.toml"))
        << outcome.err;
  }
  const Outcome same =
      run({"verify", "--checkpoints", newest_checkpoint("one"), newest_checkpoint("four")});
  EXPECT_EQ(same.status, 0) << same.out << same.err;
}

TEST_F(Program, over_the_stand_in_of_nccl_stores_are_bitwise_the_plain_run) {
  write("a.toml", config(kDlrm, "", "transport = 'nccl_emulated'"));
  for (const char* store : {"local", "placed"}) {
    const Outcome outcome = run({"verify", "a.toml", "--iterations", "6", "--ranks", "1,2,4",
                                 "--set", std::string("embedding.store=") + store});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("ranks 4: bitwise the same"), std::string::npos) << outcome.err;
  }
}

TEST_F(Program, nccl_that_cannot_be_had_is_said_in_one_line) {
  write("a.toml", config(kDlrm, "", "transport = 'nccl'\nranks = 2"));
  EXPECT_NE(run({"train", "a.toml", "--set", "device=emulated", "--set", "train.ranks=1"})
                .err.find("train.transport: \"nccl\" is between other GPUs than those of device = "
                          "\"emulated\"\n"),
            std::string::npos);
  if (posix_files().exists("/dev/nvidiactl")) GTEST_SKIP() << "there is a GPU";
  const Outcome outcome = run({"train", "a.toml"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_NE(outcome.err.find("train.transport: no "), std::string::npos) << outcome.err;
}

TEST_F(Program, tune_compiles_kernels_for_gpus_once_and_says_what_they_take) {
  write("a.toml", config(kDlrm, "", ""));
  const std::vector<std::string> words{
      "tune",           "a.toml",  "--device", "cuda",
      "--compile-only", "--quiet", "--set",    "kernels.cache=cache"};
  const Json first = run_json(words), second = run_json(words);
  EXPECT_EQ(first["architecture"], "sm_90");
  EXPECT_EQ(first["features"], 26);
  EXPECT_EQ(first["distinct_schedules"], 1);
  EXPECT_EQ(first["candidates"], 4);  // of one lookup each, at dimension 8
  ASSERT_EQ(first["fused"].size(), 1u);
  EXPECT_GT(first["fused"][0]["registers"], 16);
  EXPECT_EQ(first["fused"][0]["spilled"], 0);
  EXPECT_GT(first["fused"][0]["occupancy"], 0.1);
  EXPECT_EQ(first["schedules"], "default");
  ASSERT_EQ(first["candidate_kernels"].size(), 6u);  // with 7, a thread has 36 registers
  for (int64_t blocks = 1; blocks <= 6; ++blocks)
    EXPECT_EQ(first["candidate_kernels"][blocks - 1]["blocks"], blocks);
  ASSERT_EQ(first["beside"].size(), 8u);  // distinct rows in seven steps, updates
  for (const Json& kernel : first["beside"]) {
    EXPECT_EQ(kernel["spilled"], 0) << kernel;
    EXPECT_GT(kernel["registers"], 8) << kernel;
    EXPECT_GT(kernel["occupancy"], 0.1) << kernel;
  }
  EXPECT_EQ(first["training"]["compiled"], 3);  // steps have one text
  EXPECT_EQ(first["compiled"], 9);
  EXPECT_EQ(second["training"]["compiled"], 0);
  EXPECT_EQ(second["compiled"], 0);
  EXPECT_EQ(second["fused"], first["fused"]);
  EXPECT_EQ(second["beside"], first["beside"]);
  const std::string shown = run(words).out;
  EXPECT_NE(shown.find("\nbeside               kernel distinct_rows_"), std::string::npos) << shown;
}

TEST_F(Program, schedules_tuned_on_a_gpu_train_to_the_same_bits) {
  const std::vector<std::string> sets{"--set",        "device=emulated", "--set",
                                      kSharedKernels, "--set",           "kernels.mode=tuned"};
  const auto with_sets = [&](std::vector<std::string> words) {
    words.insert(words.end(), sets.begin(), sets.end());
    return words;
  };
  write("a.toml", config(kDlrm, "", ""));
  const Outcome untuned = run(with_sets({"verify", "a.toml", "--iterations", "3"}));
  EXPECT_EQ(untuned.status, 1);
  EXPECT_NE(untuned.err.find("tuned/a.emulated.json: no such tuning record"), std::string::npos)
      << untuned.err;
  const Outcome tuned =
      run(with_sets({"tune", "a.toml", "--json", "--quiet", "--html", "tuned.html"}));
  ASSERT_EQ(tuned.status, 0) << tuned.err;
  const Json json = Json::parse(tuned.out);
  EXPECT_GE(json["embedding_pool"]["speedup"], 1.0) << tuned.out;
  EXPECT_EQ(run({"tune", "--replay", "tuned/a.emulated.json"}).status, 0);
  const Outcome verified =
      run(with_sets({"verify", "a.toml", "--iterations", "6", "--ranks", "1,2", "--set",
                     "gpu.synchronous=true", "--set", "gpu.check_nan=true"}));
  EXPECT_EQ(verified.status, 0) << verified.err;
  EXPECT_NE(verified.err.find("bitwise the same"), std::string::npos) << verified.err;
  const Outcome foreign =
      run({"verify", "a.toml", "--iterations", "3", "--set", "kernels.mode=tuned", "--set",
           "kernels.record=tuned/a.emulated.json"});
  EXPECT_EQ(foreign.status, 1);
}

class RefusedTuning : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    write("a.toml", config(kDlrm, "", ""));
  }
  std::string refused(std::vector<std::string> words) {
    words.insert(words.begin(), {"tune", "a.toml"});
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    return outcome.err;
  }
};

TEST_F(RefusedTuning, says_what_it_cannot_compile_for) {
  EXPECT_EQ(refused({"--device", "cuda", "--compile-only", "--arch", "sm_20"}),
            "recmill: architecture 'sm_20' is none of sm_80, sm_86, sm_89, sm_90, sm_100\n");
  EXPECT_EQ(refused({"--compile-only"}), "recmill: --compile-only: needs --device cuda\n");
  EXPECT_NE(refused({"--device", "tpu"}).find("device must be one of cpu, cuda, emulated"),
            std::string::npos);
  EXPECT_NE(refused({"--device", "emulated", "--budget", "5m"}).find("--budget: needs device"),
            std::string::npos);
}

TEST_F(RefusedTuning, says_what_it_would_not_look_at) {
  EXPECT_EQ(refused({"--arch", "sm_1"}), "recmill: --arch: needs --compile-only\n");
  EXPECT_EQ(
      refused({"--device", "emulated", "--rounds", "3"}),
      "recmill: --rounds: does not go with device = \"emulated\", which counts, with the same "
      "result each time\n");
  const std::vector<std::string> measured[] = {{"--budget", "5m"},      {"--rounds", "3"},
                                               {"--html", "page.html"}, {"--replay", "a.json"},
                                               {"--if-drifted"},        {"--overwrite"}};
  for (std::vector<std::string> words : measured) {
    const std::string option = words[0];
    words.insert(words.end(), {"--device", "cuda", "--compile-only"});
    EXPECT_EQ(refused(words),
              "recmill: " + option + ": does not go with --compile-only, which measures nothing\n");
  }
}

TEST_F(Program, tune_on_a_gpu_measures_nothing_for_a_record_that_cannot_be_written) {
  write("a.toml", on_device(config(kDlrm, "", ""), "emulated"));
  write("file", "");
  const Outcome outcome = run({"tune", "a.toml", "--quiet", "--set", "kernels.cache=cache", "--set",
                               "kernels.record=file/a.json"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("file"), std::string::npos) << outcome.err;
  EXPECT_FALSE(posix_files().exists(path("cache")));
}

TEST_F(Program, bench_of_kernels_on_a_gpu_has_no_figures_and_is_not_quick) {
  const std::vector<std::string> of_cpu[] = {{"--quick"}, {"--figure", "9"}};
  for (std::vector<std::string> words : of_cpu) {
    const std::string option = words[0];
    words.insert(words.begin(), {"bench", "kernels", "--device", "emulated"});
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.err, "recmill: " + option + ": needs bench kernels --device cpu\n");
  }
}

}  // namespace
}  // namespace recmill::cli
