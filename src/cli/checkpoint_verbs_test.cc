// SPDX-License-Identifier: Apache-2.0
// recmill inspect, export and import as a user meets them.
#include <gmock/gmock.h>

#include "base/json/json.h"
#include "cli/testing/program.h"

namespace recmill::cli {
namespace {

using testing::HasSubstr;

class CheckpointVerbs : public Program {
 protected:
  void SetUp() override {
    write("a.toml",
          config("kind = 'dlrm'\nbottom = [16, 8]\ntop = [16, 1]",
                 "mapping = 'dictionary'\nout_of_range = 'clamp'", "iterations = 12\nranks = 2"));
    ASSERT_EQ(run({"train", "a.toml", "--quiet"}).status, 0);
  }

  // One line on stderr that says `message`, nothing on stdout, and an exit status.
  void expect_failure(const std::vector<std::string>& arguments, int status,
                      const std::string& message) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }

  std::vector<std::string> names_in(const std::string& folder) {
    const auto names = posix_files().list(path(folder));
    return names.ok() ? *names : std::vector<std::string>();
  }

  const std::string step_ = "step-000000000012";
};

}  // namespace

TEST_F(CheckpointVerbs, inspect_says_what_a_checkpoint_holds_and_names_a_damaged_file) {
  const Json all = run_json({"inspect", "runs/a", "--verify"});
  EXPECT_EQ(all.value("step", 0), 12);
  EXPECT_TRUE(all.value("verified", false));
  EXPECT_EQ(all["properties"].value("iteration", 0), 12);
  std::map<std::string, std::string> shapes;
  for (const Json& entry : all["entries"]) shapes[entry["name"]] = entry["shape"];
  EXPECT_EQ(shapes["table/C1/weight"], "float32 [500, 8]");
  EXPECT_EQ(shapes["dense/top.0.weight"], "float32 [16, 359]");
  EXPECT_EQ(shapes.count("dictionary/C26"), 1u);
  EXPECT_THAT(run({"inspect", "runs/a"}).out, HasSubstr("dense/top.0.weight"));

  const std::string checkpoint = "runs/a/checkpoints/" + step_;
  expect_failure({"inspect", "nowhere"}, 2, "nowhere: is not a folder");
  expect_failure({"inspect", "runs/a/events"}, 2, "runs/a/events: holds no whole checkpoint");
  for (const char* part : {"part-0", "part-1"}) {
    const std::string file = checkpoint + "/" + part;
    const std::string bytes = *read_text(posix_files(), path(file));
    std::string flipped = bytes;
    for (size_t i = 0; i < flipped.size(); i += 64) {
      flipped[i] = static_cast<char>(flipped[i] ^ 16);
    }
    write(file, flipped);
    expect_failure({"inspect", checkpoint, "--verify"}, 1, file + ": the block at byte ");
    expect_failure({"export", checkpoint, "--out", "exported"}, 1, file + ": the block at byte ");
    EXPECT_TRUE(names_in("exported").empty() && names_in("exported.tmp").empty());
    write(file, bytes.substr(0, bytes.size() - 1));
    expect_failure({"inspect", checkpoint}, 1, file);
    write(file, bytes);
  }
  write(checkpoint + "/manifest", "recmill-checkpoint 1 ");
  expect_failure({"inspect", checkpoint}, 1, checkpoint + "/manifest: ");
}

TEST_F(CheckpointVerbs, export_and_import_are_a_round_trip_in_both_formats) {
  const Json folder = run_json({"export", "runs/a", "--out", "exported"});
  const auto names = names_in("exported");
  EXPECT_EQ(folder.value("files", size_t{0}), names.size());
  // The names of the equivalent PyTorch state_dict.
  for (const char* name : {"bottom.0.weight", "bottom.0.bias", "bottom.2.weight", "top.0.weight",
                           "top.2.bias", "embeddings.C1.weight", "dictionaries.C26"}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), std::string(name) + ".npy"), 1) << name;
  }
  ASSERT_EQ(run({"export", "runs/a", "--out", "model.safetensors"}).status, 0);
  // What other weights become when these are imported: a run's of another seed.
  write("b.toml", *read_text(posix_files(), path("a.toml")));
  ASSERT_EQ(run({"train", "b.toml", "--quiet", "--set", "train.seed=2"}).status, 0);
  // Dictionaries grow with the data's order: their lengths are the checkpoint's own.
  for (const std::string& name : names) {
    if (name.starts_with("dictionaries.")) {
      ASSERT_TRUE(posix_files().remove(path("exported/" + name)).ok());
    }
  }
  const Json imported = run_json({"import", "runs/b", "exported", "--out", "new"});
  EXPECT_EQ(imported.value("replaced", size_t{0}), names_in("exported").size());
  ASSERT_EQ(run({"export", "new/" + step_, "--out", "again"}).status, 0);
  for (const std::string& name : names_in("exported")) {
    EXPECT_EQ(*read_text(posix_files(), path("again/" + name)),
              *read_text(posix_files(), path("exported/" + name)))
        << name;
  }
  ASSERT_EQ(run({"import", "runs/a", "model.safetensors", "--out", "same"}).status, 0);
  const Outcome same =
      run({"verify", "--checkpoints", "runs/a/checkpoints/" + step_, "same/" + step_});
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_NE(same.out.find(" entries are the same\n"), std::string::npos) << same.out;
}

TEST_F(CheckpointVerbs, a_run_whose_tables_were_split_by_column_reads_as_any_other) {
  const std::string wide = "[[tables]]\nname = 'C1'\ndim = 40\n";
  const std::string model = "kind = 'mlp'\ntop = [8, 1]";
  write("rows.toml", config(model, "", "iterations = 12") + wide);
  write("columns.toml", config(model, "sharding = 'column'", "iterations = 12\nranks = 4") + wide);
  run_json({"train", "rows.toml"});
  run_json({"train", "columns.toml"});
  EXPECT_EQ(run({"verify", "--checkpoints", "runs/rows", "runs/columns"}).status, 0);
  const auto entries = [&](const std::string& name) {
    return run_json({"inspect", "runs/" + name}).value("entries", Json());
  };
  EXPECT_FALSE(entries("rows").empty());
  EXPECT_EQ(entries("columns"), entries("rows"));
  for (const std::string name : {"rows", "columns"})
    ASSERT_EQ(run({"export", "runs/" + name, "--out", name + ".safetensors"}).status, 0);
  EXPECT_EQ(*read_text(posix_files(), path("columns.safetensors")),
            *read_text(posix_files(), path("rows.safetensors")));
  ASSERT_EQ(run({"import", "runs/columns", "rows.safetensors", "--out", "imported"}).status, 0);
  EXPECT_EQ(run({"verify", "--checkpoints", "runs/rows", "imported/" + step_}).status, 0);
}

TEST_F(CheckpointVerbs, overwrite_replaces_an_export_and_nothing_else) {
  ASSERT_EQ(run({"export", "runs/a", "--out", "exported"}).status, 0);
  const auto names = names_in("exported");
  write("exported/embeddings.OLD.weight.npy", "of an earlier model");
  expect_failure({"export", "runs/a", "--out", "exported"}, 2,
                 "exported: is there already; --overwrite");
  ASSERT_EQ(run({"export", "runs/a", "--out", "exported", "--overwrite"}).status, 0);
  EXPECT_EQ(names_in("exported"), names);
  expect_failure({"export", "runs/a", "--out", "runs", "--overwrite"}, 2,
                 "runs: holds 'a', which no export wrote");
  EXPECT_EQ(names_in("runs"), std::vector<std::string>{"a"});
  ASSERT_TRUE(posix_files().make_folder(path("other.tmp")).ok());
  write("other.tmp/a.npy", "of an export that was killed");
  write("other.tmp/notes", "of the user");
  expect_failure({"export", "runs/a", "--out", "other"}, 2, "other.tmp: holds 'notes', which no");
  EXPECT_EQ(names_in("other.tmp"), (std::vector<std::string>{"a.npy", "notes"}));
  ASSERT_TRUE(posix_files().remove(path("other.tmp/notes")).ok());
  EXPECT_EQ(run({"export", "runs/a", "--out", "other"}).status, 0);
  EXPECT_EQ(names_in("other"), names);

  ASSERT_EQ(run({"import", "runs/a", "exported/top.0.bias.npy", "--out", "new"}).status, 0);
  expect_failure({"import", "runs/a", "exported", "--out", "new"}, 2,
                 "new/" + step_ + ": is there already; --overwrite");
  EXPECT_EQ(run({"import", "runs/a", "exported", "--out", "new", "--overwrite"}).status, 0);
  expect_failure({"import", "runs/a", "exported", "--out", "runs/a/checkpoints", "--overwrite"}, 2,
                 "--out: would replace the checkpoint that is read");
}

TEST_F(CheckpointVerbs, a_tensor_that_does_not_fit_is_one_line_and_nothing_is_written) {
  ASSERT_EQ(run({"export", "runs/a", "--out", "exported"}).status, 0);
  const auto import = [](const std::string& tensors) {
    return std::vector<std::string>{"import", "runs/a", tensors, "--out", "new"};
  };
  const auto named = [&](const std::string& tensors, const std::string& name) {
    auto arguments = import(tensors);
    arguments.insert(arguments.end(), {"--name", name});
    return arguments;
  };
  expect_failure(import("missing.npy"), 2, "missing.npy: no such file");
  expect_failure(import("missing"), 2, "missing: no such file");
  expect_failure(import("a.toml"), 2, "a.toml: must be a .safetensors file, a .npy file or");
  expect_failure(import("runs/a/events"), 2, "is not a .npy file");
  expect_failure(named("exported", "top.0.bias"), 2, "--name: is for one .npy file");
  expect_failure(named("exported/top.0.bias.npy", "embeddings.C99.weight"), 2,
                 "has no tensor 'embeddings.C99.weight' to replace");
  expect_failure(named("exported/top.0.bias.npy", "embeddings.C1.weight"), 2,
                 "exported/top.0.bias.npy: tensor 'embeddings.C1.weight' is float32 [16], and in ");
  expect_failure(named("exported/dictionaries.C1.npy", "top.0.bias"), 2,
                 "tensor 'top.0.bias' is uint64 [");
  const std::string bytes = *read_text(posix_files(), path("exported/top.0.bias.npy"));
  write("top.0.bias.npy", bytes.substr(0, bytes.size() - 4));
  expect_failure(import("top.0.bias.npy"), 1,
                 "top.0.bias.npy: 60 bytes of elements where its shape needs 64");
  write("top.0.bias.npy", "no array");
  expect_failure(import("top.0.bias.npy"), 1, "top.0.bias.npy: is not a .npy file");
  EXPECT_FALSE(posix_files().exists(path("new")));
}

TEST_F(CheckpointVerbs, values_that_are_not_finite_end_training_and_import_with_1_and_their_name) {
  // One iteration, whose step overflows, and no evaluation that would see it.
  write("b.toml", *read_text(posix_files(), path("a.toml")));
  const Outcome outcome =
      run({"train", "b.toml", "--quiet", "--set", "data.synthetic.eval_rows=0", "--set",
           "train.iterations=1", "--set", "optimizer.learning_rate=1e30", "--set",
           "optimizer.weight_decay=1e30"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("not finite: layer bottom.0."));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_TRUE(names_in("runs/b/checkpoints").empty());

  ASSERT_EQ(run({"export", "runs/a", "--out", "exported"}).status, 0);
  std::string bytes = *read_text(posix_files(), path("exported/embeddings.C1.weight.npy"));
  bytes.replace(bytes.size() - 4, 4, std::string("\0\0\xc0\x7f", 4));
  write("exported/embeddings.C1.weight.npy", bytes);
  expect_failure({"import", "runs/a", "exported", "--out", "new"}, 1,
                 "embeddings.C1.weight.npy: not finite: table C1, row 499, weight; a checkpoint "
                 "holds finite values alone");
  EXPECT_FALSE(posix_files().exists(path("new")));
}

TEST_F(CheckpointVerbs, a_rate_that_decays_to_0_leaves_finite_weights_of_every_optimizer) {
  for (const std::string kind : {"sgd", "adagrad", "rowwise_adagrad", "adam", "ftrl"}) {
    const Outcome outcome =
        run({"train", "a.toml", "--quiet", "--overwrite", "--set", "train.decay.kind=linear",
             "--set", "train.decay.iterations=4", "--set", "train.decay.end=0", "--set",
             "embedding.optimizer.kind=" + kind});
    EXPECT_EQ(outcome.status, 0) << kind << ": " << outcome.err;
  }
}

TEST_F(CheckpointVerbs, a_plain_export_is_whole_or_not_there_and_leaves_no_run_in_the_way) {
  // Two ranks cannot be exported: no folder of a run stays that the next attempt would meet.
  write("b.toml", *read_text(posix_files(), path("a.toml")));
  expect_failure({"train", "b.toml", "--quiet", "--export-plain", "plain"}, 2, "train.ranks");
  EXPECT_FALSE(posix_files().exists(path("runs/b")));
  EXPECT_FALSE(posix_files().exists(path("plain")));
  ASSERT_TRUE(posix_files().make_folder(path("plain/tables")).ok());
  write("plain/tables/99.npy", "of an earlier model");
  ASSERT_EQ(run({"train", "b.toml", "--quiet", "--export-plain", "plain", "--set", "train.ranks=1"})
                .status,
            0);
  EXPECT_EQ(names_in("plain"),
            (std::vector<std::string>{"eval", "model.json", "parameters", "tables", "train"}));
  EXPECT_EQ(names_in("plain/tables").size(), 26u);
  expect_failure({"train", "c.toml"}, 2, "c.toml");
  write("c.toml", *read_text(posix_files(), path("a.toml")));
  expect_failure({"train", "c.toml", "--quiet", "--set", "train.ranks=1", "--export-plain", "runs"},
                 2, "runs: holds 'a', which no export wrote");
}

}  // namespace recmill::cli
