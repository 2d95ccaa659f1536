// SPDX-License-Identifier: Apache-2.0
// `recmill tune` and what a run makes of its record.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/json/json.h"
#include "cli/testing/bags.h"
#include "cli/testing/program.h"
#include "kernels/codegen/testing/documented_template.h"
#include "kernels/codegen/testing/kernel_folder.h"
#include "kernels/tune/record.h"

namespace recmill::cli {
namespace {

/// Bags of several lengths and dimensions.
std::string bags(const std::string& kernels) {
  return bags_config("rows = 100\ndims = [4, 8, 16]\n",
                     "mean = 20\ndeviation = 9\nlongest = 50\ncoverage = 0.6\nrows = 400\n",
                     "slices = 4\n[tune]\nbatch_sizes = [64, 1, 200]\n[kernels]\ncache = '" +
                         kernels::codegen::kernel_folder() +
                         "'\ncompiler = '" RECMILL_COMPILER "'\n" + kernels);
}

/// Of tunings whose record need not be a good one: a batch, few values and rounds.
constexpr const char* kBriefly = "--budget=1s";

class Tune : public Program {
 protected:
  /// Puts a record of bags("") there, tuned once for all cases.
  void put_record(const std::string& name) {
    static const std::string record = tuned();
    ASSERT_TRUE(posix_files().make_folder(path("tuned")).ok());
    write("tuned/" + name + ".json", record);
  }

 private:
  std::string tuned() {
    write("all.toml", bags(""));
    const Json result = run_json({"tune", "all.toml", "--rounds", "2", "--quiet"});
    EXPECT_TRUE(result.contains("embedding_pool"));
    EXPECT_TRUE(result.contains("row_update"));
    if (HasFailure()) return "";
    EXPECT_EQ(result["embedding_pool"]["features"], 6);
    EXPECT_GT(result["embedding_pool"]["measured_ms"].get<double>(), 0.0);
    for (const char* code : {"prebuilt_ms", "branches_ms", "pointers_ms"})
      EXPECT_GT(result["embedding_pool"][code].get<double>(), 0.0) << code;
    EXPECT_EQ(result["row_update"]["tables"], 6);
    EXPECT_GT(result["row_update"]["measured_ms"].get<double>(), 0.0);
    EXPECT_FALSE(posix_files().exists(path("tuned/all.json.partial")));
    return *read_text(posix_files(), path("tuned/all.json"));
  }
};

TEST_F(Tune, chooses_schedules_that_training_verifies_and_ends_with_in_the_same_rows) {
  write("plain.toml", bags(""));
  write("tuned.toml", bags("mode = 'tuned'\nrecord = 'tuned/plain.json'\n"));
  put_record("plain");
  EXPECT_EQ(run({"verify", "tuned.toml", "--iterations", "3", "--ranks", "1,2"}).status, 0);
  EXPECT_EQ(run({"train", "plain.toml", "--quiet"}).status, 0);
  EXPECT_EQ(run({"train", "tuned.toml", "--quiet"}).status, 0);
  const Outcome same = run({"verify", "--checkpoints", "runs/plain", "runs/tuned"});
  EXPECT_EQ(same.status, 0) << same.err;
}

TEST_F(Tune, replaces_no_record_unless_told_to) {
  write("plain.toml", bags(""));
  ASSERT_TRUE(posix_files().make_folder(path("tuned")).ok());
  write("tuned/plain.json", "mine");
  const Outcome refused = run({"tune", "plain.toml", "--quiet"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("tuned/plain.json"), std::string::npos) << refused.err;
  EXPECT_EQ(*read_text(posix_files(), path("tuned/plain.json")), "mine");
  EXPECT_EQ(run({"tune", "plain.toml", "--quiet", kBriefly, "--overwrite"}).status, 0);
  EXPECT_EQ(run({"tune", "--replay", "tuned/plain.json"}).status, 0);
}

TEST_F(Tune, replays_its_times_to_the_same_bytes) {
  write("plain.toml", bags(""));
  put_record("plain");
  const Outcome again = run({"tune", "--replay", "tuned/plain.json"});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_NE(again.out.find("\nembedding_pool.features "), std::string::npos) << again.out;
  EXPECT_EQ(again.out.find('{'), std::string::npos) << again.out;
  std::string text = *read_text(posix_files(), path("tuned/plain.json"));
  text[text.size() / 2] ^= 1;
  write("tuned/plain.json", text);
  const Outcome damaged = run({"tune", "--replay", "tuned/plain.json"});
  EXPECT_EQ(damaged.status, 1);
  EXPECT_EQ(damaged.err,
            "recmill: tuned/plain.json: damaged, its checksum does not hold; tune again\n");
}

TEST_F(Tune, without_a_good_record_a_run_ends_in_one_line_or_with_the_defaults) {
  write("other.toml", bags(""));
  put_record("other");
  const std::string wanted = bags("mode = 'tuned'\n");
  write("a.toml", wanted);
  const Outcome missing = run({"train", "a.toml", "--quiet"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_EQ(missing.err, "recmill: " + path("tuned/a.json") +
                             ": no such tuning record; run `recmill tune` first\n");
  // One for other tables.
  std::string text = wanted + "record = 'tuned/other.json'\n";
  text.replace(text.find("dims = [8, 32, 5]"), 17, "dims = [8, 32, 6]");
  write("a.toml", text);
  const Outcome foreign = run({"train", "a.toml", "--quiet"});
  EXPECT_EQ(foreign.status, 1);
  EXPECT_EQ(foreign.err.find("recmill: tuned/other.json: it was tuned for tables and features '"),
            0u)
      << foreign.err;
  EXPECT_EQ(std::count(foreign.err.begin(), foreign.err.end(), '\n'), 1);
  write("a.toml", text + "on_missing_schedule = 'default'\n");
  const Outcome allowed = run({"train", "a.toml", "--quiet"});
  EXPECT_EQ(allowed.status, 0) << allowed.err;
  EXPECT_NE(allowed.err.find("default schedules run instead"), std::string::npos) << allowed.err;
}

// One line's bags grow from 20 lookups to 45.
std::string drifted_bags(const std::string& kernels) {
  std::string text = bags(kernels);
  text.replace(text.find("mean = 20"), 9, "mean = 45");
  return text;
}

TEST_F(Tune, training_on_other_bags_than_were_tuned_for_warns_once) {
  const std::string tuned = "mode = 'tuned'\nrecord = 'tuned/plain.json'\n";
  write("plain.toml", bags(""));
  put_record("plain");
  write("same.toml", bags(tuned));
  const Outcome same = run({"train", "same.toml", "--quiet"});
  EXPECT_EQ(same.status, 0);
  EXPECT_EQ(same.err.find("drifted"), std::string::npos) << same.err;
  write("other.toml", drifted_bags(tuned));
  const Outcome other = run({"train", "other.toml", "--quiet"});
  EXPECT_EQ(other.status, 0);
  const size_t at = other.err.find("warning: tuned/plain.json: feature 'f");
  ASSERT_NE(at, std::string::npos) << other.err;
  EXPECT_NE(other.err.find("and 2 more features"), std::string::npos) << other.err;
  EXPECT_EQ(other.err.find("tuned/plain", at + 20), std::string::npos) << other.err;
}

TEST_F(Tune, training_on_a_gpu_on_other_bags_than_were_tuned_for_warns_once) {
  const auto train = [&](const std::string& text) {
    write("tuned.toml", "device = 'emulated'\n" + text);
    return run({"train", "tuned.toml", "--quiet", "--overwrite", "--set", "train.iterations=8",
                "--set", "train.batch_size=128"});
  };
  const std::string tuned = "mode = 'tuned'\nrecord = 'tuned/plain.emulated.json'\n";
  write("plain.toml", bags(""));
  const Outcome tuning = run({"tune", "plain.toml", "--device", "emulated", "--quiet"});
  ASSERT_EQ(tuning.status, 0) << tuning.err;
  const Outcome same = train(bags(tuned));
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_EQ(same.err.find("drifted"), std::string::npos) << same.err;
  const Outcome other = train(drifted_bags(tuned));
  EXPECT_EQ(other.status, 0) << other.err;
  const size_t at = other.err.find("warning: tuned/plain.emulated.json: feature 'f");
  ASSERT_NE(at, std::string::npos) << other.err;
  EXPECT_NE(other.err.find("; `recmill tune --overwrite` tunes again", at), std::string::npos)
      << other.err;
  EXPECT_EQ(other.err.find("tuned/plain", at + 20), std::string::npos) << other.err;
}

TEST_F(Tune, again_only_what_has_drifted) {
  const std::string record = "record = 'tuned/plain.json'\n";
  write("plain.toml", bags(""));
  put_record("plain");
  const std::string before = *read_text(posix_files(), path("tuned/plain.json"));
  const Outcome nothing = run({"tune", "plain.toml", "--if-drifted", "--rounds", "1", "--quiet"});
  EXPECT_EQ(nothing.status, 0) << nothing.err;
  EXPECT_NE(nothing.err.find("row_update: nothing has drifted"), std::string::npos) << nothing.err;
  EXPECT_EQ(*read_text(posix_files(), path("tuned/plain.json")), before);
  write("other.toml", drifted_bags(record + "generated = 'never'\n"));
  const Outcome moved = run({"tune", "other.toml", "--if-drifted", "--rounds", "1", "--quiet"});
  EXPECT_EQ(moved.status, 0) << moved.err;
  for (const char* what : {"embedding_pool: feature 'f", "row_update: table 'f"})
    EXPECT_NE(moved.err.find(what), std::string::npos) << moved.err;
  EXPECT_EQ(run({"tune", "--replay", "tuned/plain.json"}).status, 0);
  // What did not move has the times that it had.
  const auto times_of = [](const std::string& text) {
    return Json::parse(text.substr(text.find('\n') + 1))["families"][0]["times"];
  };
  const Json old = times_of(before),
             now = times_of(*read_text(posix_files(), path("tuned/plain.json")));
  size_t kept = 0;
  for (size_t c = 0; c < old["classes"].size(); ++c) {
    if (old["classes"][c]["mean"] != 1.0) continue;
    EXPECT_EQ(now["classes"][kept], old["classes"][c]);
    EXPECT_EQ(now["values"][0]["classes"][kept], old["values"][0]["classes"][c]);
    ++kept;
  }
  EXPECT_GT(kept, 0u);
  const Outcome again = run({"tune", "other.toml", "--if-drifted", "--quiet"});
  EXPECT_NE(again.err.find("embedding_pool: nothing has drifted"), std::string::npos) << again.err;
  write("other.toml", drifted_bags("record = 'tuned/none.json'\n"));
  EXPECT_EQ(run({"tune", "other.toml", "--if-drifted"}).err,
            "recmill: " + path("tuned/none.json") +
                ": no such tuning record; run `recmill tune` first\n");
}

TEST_F(Tune, generated_code_trains_the_same_rows_and_is_compiled_once) {
  write("plain.toml", bags(""));
  put_record("plain");
  write("compiler", "#!/bin/sh\necho \"$@\" >> calls\nexec " RECMILL_COMPILER " \"$@\"\n");
  ASSERT_EQ(chmod(path("compiler").c_str(), 0755), 0);
  const std::string always = "mode = 'tuned'\nrecord = 'tuned/plain.json'\ngenerated = 'always'\n";
  const std::vector<std::string> counting = {"--set", "kernels.compiler=" + path("compiler"),
                                             "--set", "kernels.cache=" + path("other")};
  write("branches.toml", bags(always));
  write("pointers.toml", bags(always + "dispatch = 'pointers'\n"));
  write("renamed.toml", bags(always));
  EXPECT_EQ(run({"train", "plain.toml", "--quiet"}).status, 0);
  for (const std::string name : {"branches", "pointers"}) {
    const std::string file = name + ".toml";
    const Outcome verified = run({"verify", file, "--iterations", "3", "--ranks", "1,2"});
    EXPECT_EQ(verified.status, 0) << verified.err;
    std::vector<std::string> train = {"train", file, "--quiet"};
    train.insert(train.end(), counting.begin(), counting.end());
    EXPECT_EQ(run(train).status, 0);
    train.push_back("--overwrite");
    EXPECT_EQ(run(train).status, 0);
    const Outcome same = run({"verify", "--checkpoints", "runs/plain", "runs/" + name});
    EXPECT_EQ(same.status, 0) << same.err;
  }
  std::vector<std::string> renamed = {"train", "renamed.toml", "--quiet"};
  renamed.insert(renamed.end(), counting.begin(), counting.end());
  EXPECT_EQ(run(renamed).status, 0);
  // One compilation for each way of dispatch, though each was trained twice and one by another
  // name.
  const std::string calls = *read_text(posix_files(), path("calls"));
  const size_t first = calls.find("-shared"), second = calls.find("-shared", first + 1);
  ASSERT_NE(second, std::string::npos) << calls;
  EXPECT_EQ(calls.find("-shared", second + 1), std::string::npos) << calls;
}

TEST_F(Tune, without_generated_code_a_run_ends_in_one_line_or_with_pre_built_kernels) {
  write("plain.toml", bags("generated = 'never'\n"));
  const Json tuned = run_json({"tune", "plain.toml", kBriefly, "--quiet", "--set",
                               "kernels.cache=cache"})["embedding_pool"];
  EXPECT_TRUE(tuned["branches_ms"].is_null());  // not measured
  EXPECT_NE(run({"tune", "--replay", "tuned/plain.json"})
                .out.find("embedding_pool.branches_ms    not measured\n"),
            std::string::npos);
  EXPECT_FALSE(posix_files().exists(path("cache")));
  write("tuned.toml", bags("mode = 'tuned'\nrecord = 'tuned/plain.json'\ngenerated = 'always'\n"));
  write("failing", "#!/bin/sh\n[ \"$1\" = --version ] && echo 1 && exit\necho no >&2\nexit 3\n");
  ASSERT_EQ(chmod(path("failing").c_str(), 0755), 0);
  write("file", "");
  const auto damage = [&] {
    EXPECT_EQ(run({"train", "tuned.toml", "--quiet", "--set", "kernels.cache=damaged"}).status, 0);
    const auto entries = *posix_files().list(path("damaged"));
    for (const std::string& entry : entries) {
      const std::string library = "damaged/" + entry + "/library.so";
      std::string bytes = *read_text(posix_files(), path(library));
      bytes[bytes.size() / 2] ^= 1;
      write(library, bytes);
    }
  };
  damage();
  const std::pair<std::string, std::string> wrong[] = {
      {"compiler=" + path("none"), "cannot start the compiler '" + path("none") + "'"},
      {"compiler=" + path("failing"), "fails with status 3; what it says is in "},
      {"cache=file/cache", "file/cache"},
      {"cache=damaged", "damaged, its checksum does not hold; remove damaged/"}};
  for (const auto& [set, message] : wrong) {
    std::vector<std::string> arguments = {"train",       "tuned.toml", "--quiet",
                                          "--overwrite", "--set",      "kernels." + set};
    const Outcome failed = run(arguments);
    EXPECT_EQ(failed.status, 1) << set;
    EXPECT_NE(failed.err.find(message), std::string::npos) << failed.err;
    EXPECT_EQ(std::count(failed.err.begin(), failed.err.end(), '\n'), 1) << failed.err;
    arguments.insert(arguments.end(), {"--set", "kernels.on_failed_compilation=prebuilt"});
    const Outcome allowed = run(arguments);
    EXPECT_EQ(allowed.status, 0) << allowed.err;
    EXPECT_NE(allowed.err.find("; pre-built kernels run instead"), std::string::npos)
        << allowed.err;
  }
}

/// The record with the times of schedules of template `of` as the best ones, which `features` of
/// its features then have.
std::string preferring(const std::string& text, const std::string& of, int64_t features) {
  using namespace kernels::tune;
  auto record = *parse_record(text, "record");
  FamilyTuning& pool = record.families.front();
  for (ValueTimes& value : pool.times.values) {
    // The local stage decides, at a value that has others than the default schedules.
    value.fused_nanoseconds = value.value.defaults ? 2.0 : 1.0;
    value.shared_nanoseconds = value.refined_nanoseconds = value.beside_nanoseconds = 0.0;
    for (ClassTimes& classes : value.classes) {
      for (CandidateTime& candidate : classes.candidates) {
        if (candidate.schedule.of == of) candidate.nanoseconds *= 1e-6;
      }
    }
  }
  pool.choice = *choose(pool.times);
  for (size_t c = 0; c < pool.choice.schedules.size(); ++c)
    if (pool.choice.schedules[c].schedule.of == of)
      features -= std::ssize(pool.times.classes[c].features);
  EXPECT_EQ(features, 0);
  return *record_text(record);
}

TEST_F(Tune, training_says_which_lookups_add_rows_in_another_order) {
  const auto said = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"free.toml", "--set", "train.deterministic=false"});
    const Outcome ended = run(arguments);
    EXPECT_EQ(ended.status, 0) << ended.err;
    return ended.err;
  };
  write("free.toml", bags("generated = 'never'\n"));
  said({"tune", kBriefly, "--quiet"});
  const std::string record = *read_text(posix_files(), path("tuned/free.json"));
  write("tuned/free.json", preferring(record, "bags", 6));
  const std::vector<std::string> train = {
      "train", "--overwrite", "--set", "train.iterations=1", "--set", "kernels.mode=tuned"};
  EXPECT_NE(said(train).find("train.deterministic = false: ways that reorder sums may be chosen; "
                             "none was, so the results are those of true"),
            std::string::npos);
  write("tuned/free.json", preferring(record, "ids_grouped", 3));
  EXPECT_NE(said(train).find("train.deterministic = false: tuned schedules pool the bags of 3 of 6 "
                             "features, which adds rows in another order"),
            std::string::npos);
}

TEST_F(Tune, takes_the_documented_template_of_a_users_own) {
  using kernels::codegen::replaced;
  const std::string own = kernels::codegen::documented_template();
  write("own.cc", own);
  write("plain.toml", bags(""));
  write("tune.toml", bags("templates = ['own.cc']\ngenerated = 'never'\n"));
  const std::string tuned = "mode = 'tuned'\nrecord = 'tuned/tune.json'\n";
  write("with.toml", bags(tuned + "templates = ['own.cc']\n"));
  write("code.toml", bags(tuned + "templates = ['own.cc']\ngenerated = 'always'\n"));
  write("without.toml", bags(tuned));
  EXPECT_EQ(run({"tune", "tune.toml", kBriefly, "--quiet"}).status, 0);
  write("tuned/tune.json",
        preferring(*read_text(posix_files(), path("tuned/tune.json")), "bags_by_column", 6));
  EXPECT_EQ(run({"train", "plain.toml", "--quiet"}).status, 0);
  for (const std::string name : {"with", "code"}) {
    const Outcome verified = run({"verify", name + ".toml", "--iterations", "3"});
    EXPECT_EQ(verified.status, 0) << verified.err;
    EXPECT_EQ(run({"train", name + ".toml", "--quiet"}).status, 0);
    const Outcome same = run({"verify", "--checkpoints", "runs/plain", "runs/" + name});
    EXPECT_EQ(same.status, 0) << same.err;
  }
  const Outcome unknown = run({"train", "without.toml", "--quiet"});
  EXPECT_EQ(unknown.status, 1);
  EXPECT_EQ(unknown.err.find("recmill: tuned/tune.json: schedule 'bags_by_column ahead="), 0u)
      << unknown.err;
  EXPECT_NE(unknown.err.find("there is no template 'bags_by_column'\n"), std::string::npos);
  // A record is of the file as it was: one that leaves the last id out of a bag has another answer.
  write("own.cc", replaced(own, "const int64_t bag_end = piece->offsets[i + 1];",
                           "const int64_t bag_end = piece->offsets[i + 1] - 1;"));
  const Outcome edited = run({"verify", "with.toml", "--iterations", "3"});
  EXPECT_EQ(edited.status, 1);
  EXPECT_NE(edited.err.find("tuned/tune.json: it was tuned for kernels.templates of the digest '"),
            std::string::npos)
      << edited.err;
  // And tuning refuses that one by name.
  const Outcome refused = run({"tune", "tune.toml", kBriefly, "--quiet", "--overwrite"});
  EXPECT_EQ(refused.status, 0) << refused.err;
  EXPECT_NE(refused.err.find("schedule 'bags_by_column ahead=16' is refused: its answer is not the "
                             "reference's"),
            std::string::npos)
      << refused.err;
  const auto record =
      *kernels::tune::parse_record(*read_text(posix_files(), path("tuned/tune.json")), "record");
  for (const auto& chosen : record.families.front().choice.schedules)
    EXPECT_NE(chosen.schedule.of, "bags_by_column");
}

TEST_F(Tune, broken_off_goes_on_with_the_same_templates_and_rounds_alone) {
  using kernels::codegen::replaced;
  const std::string own = kernels::codegen::documented_template();
  write("own.cc", own);
  write("tune.toml", bags("templates = ['own.cc']\ngenerated = 'never'\n"));
  // All is measured, and the record cannot be written.
  ASSERT_TRUE(posix_files().make_folder(path("tuned/tune.json")).ok());
  const auto said = [&](const std::string& rounds) {
    const Outcome broken_off =
        run({"tune", "tune.toml", "--rounds", rounds, "--quiet", "--overwrite"});
    EXPECT_EQ(broken_off.status, 1);
    EXPECT_TRUE(posix_files().exists(path("tuned/tune.json.partial"))) << broken_off.err;
    return broken_off.err;
  };
  const std::string goes_on = "embedding_pool goes on after ";
  EXPECT_EQ(said("1").find(goes_on), std::string::npos);
  EXPECT_NE(said("1").find(goes_on), std::string::npos);
  EXPECT_EQ(said("2").find(goes_on), std::string::npos);
  write("own.cc", replaced(own, "const int64_t bag_end = piece->offsets[i + 1];",
                           "const int64_t bag_end = piece->offsets[i + 1] - 1;"));
  const std::string edited = said("2");
  EXPECT_EQ(edited.find(goes_on), std::string::npos) << edited;
  EXPECT_NE(edited.find("schedule 'bags_by_column ahead=16' is refused"), std::string::npos)
      << edited;
}

TEST_F(Tune, writes_a_page_of_a_fresh_record_and_of_the_one_that_is_there) {
  write("plain.toml", bags("generated = 'never'\n"));
  EXPECT_EQ(run({"tune", "plain.toml", kBriefly, "--quiet", "--html", "a.html"}).status, 0);
  const std::string record = *read_text(posix_files(), path("tuned/plain.json"));
  const std::string page = *read_text(posix_files(), path("a.html"));
  EXPECT_EQ(page.find("<!DOCTYPE html>"), 0u);
  for (const char* told : {"Lookups", "Backward and optimizer", "<svg", ">f0", "rowwise_adagrad"})
    EXPECT_NE(page.find(told), std::string::npos) << told;
  EXPECT_EQ(run({"tune", "plain.toml", "--quiet", "--html", "b.html"}).status, 0);
  EXPECT_EQ(*read_text(posix_files(), path("b.html")), page);
  EXPECT_EQ(*read_text(posix_files(), path("tuned/plain.json")), record);
  const Outcome both = run({"tune", "--replay", "tuned/plain.json", "--html", "c.html"});
  EXPECT_EQ(both.status, 2);
  EXPECT_EQ(both.err, "recmill: --html: name the configuration of the record, not --replay\n");
  EXPECT_EQ(
      run({"tune", "plain.toml", "--quiet", "--html", "d.html", "--seed", "7"}).err,
      "recmill: --seed: has no effect on the record that is there, tuned/plain.json, whose page is "
      "made; --overwrite tunes again\n");
  EXPECT_EQ(run({"tune", "plain.toml", "--seed", "-1"}).err,
            "recmill: tune: --seed: must be at least 0, is -1; see recmill tune --help\n");
  EXPECT_EQ(
      run({"tune", "--replay", "tuned/plain.json", "--rounds", "1"}).err,
      "recmill: --rounds: does not go with --replay, which chooses from the times in a record\n");
}

TEST_F(Tune, measures_nothing_for_a_page_that_cannot_be_written) {
  write("plain.toml", bags(""));
  const Outcome outcome = run({"tune", "plain.toml", "--quiet", "--html", "nowhere/a.html"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err,
            "recmill: --html nowhere/a.html: there is no folder " + path("nowhere") + "\n");
  EXPECT_FALSE(posix_files().exists(path("tuned")));
}

TEST_F(Tune, says_what_a_budget_is_too_short_for) {
  write("plain.toml", bags("generated = 'never'\n"));
  const Outcome brief = run({"tune", "plain.toml", "--budget", "0.000001s", "--quiet"});
  EXPECT_EQ(brief.status, 0) << brief.err;
  for (const char* family : {"embedding_pool", "row_update"})
    EXPECT_NE(brief.err.find(std::string("warning: ") + family +
                             ": 0s of the budget are left, "
                             "but to compare all schedules takes about "),
              std::string::npos)
        << brief.err;
  write("wide.toml", bags("record = 'tuned/wide.json'\ngenerated = 'never'\n"));
  const Outcome wide = run({"tune", "wide.toml", "--budget", "1h", "--rounds", "1", "--quiet"});
  EXPECT_EQ(wide.status, 0) << wide.err;
  EXPECT_EQ(wide.err.find("of the budget"), std::string::npos) << wide.err;
}

TEST_F(Tune, refuses_what_it_cannot_do_in_one_line) {
  write("plain.toml", bags(""));
  const std::pair<std::vector<std::string>, std::string> wrong[] = {
      {{"tune"}, "recmill: tune: name a configuration or a workload, or --replay RECORD\n"},
      {{"tune", "plain.toml", "--budget", "soon"},
       "recmill: --budget soon: must be a time, as 90s, 5m or 1h\n"},
      {{"tune", "plain.toml", "--rounds", "0"}, "recmill: --rounds: must be 1 or more\n"}};
  for (const auto& [arguments, message] : wrong) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.err, message);
  }
  EXPECT_FALSE(posix_files().exists(path("tuned")));
}

}  // namespace
}  // namespace recmill::cli
