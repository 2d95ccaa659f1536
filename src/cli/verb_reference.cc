// SPDX-License-Identifier: Apache-2.0
// recmill reference: the pages of docs/reference, from the same descriptions that read the
// configuration and the command line.
#include <CLI/CLI.hpp>
#include <map>
#include <memory>

#include "cli/verb.h"
#include "config/option_binder.h"
#include "reader/synthetic/generate.h"
#include "run/options/run_options.h"

namespace recmill::cli {
namespace {

using Pages = std::map<std::string, std::string>;  // file name to text

/// Visits RunOptions: a page for each section, a row of the first page for each key outside.
class SectionPages {
 public:
  explicit SectionPages(Pages& pages) : pages_(pages) {}

  template <typename T, typename... Rest>
  void operator()(std::string_view key, T& field, std::string_view documentation, Rest...) {
    const std::string name(key), text(documentation);
    if constexpr (internal::OptionStruct<T>) {
      section(name, "[" + name + "]", text, config::OptionReference::markdown<T>(name));
    } else if constexpr (internal::is_vector<T>) {
      using Item = typename T::value_type;
      section(name, "[[" + name + "]]", text, config::OptionReference::markdown<Item>(name));
    } else {
      keys_ += config::OptionReference::row(name, field, text);
    }
  }

  /// The first page: keys outside the sections, and the list of these.
  std::string index() const {
    return "# Configuration\n\nA file in TOML. `--set key=value` replaces a key of the "
           "file.\n\n| key | default | meaning |\n|---|---|---|\n" +
           keys_ + "\n| section | about |\n|---|---|\n" + sections_;
  }

 private:
  void section(const std::string& name, const std::string& title, const std::string& text,
               const std::string& table) {
    pages_[name + ".md"] = "# " + title + ": " + text + "\n\n" + table;
    sections_ += "| [" + name + "](" + name + ".md) | " + text + " |\n";
  }
  Pages& pages_;
  std::string keys_, sections_;
};

/// What --help says of each verb, and of each verb of a verb.
std::string help_of_verbs(const CLI::App& app, const std::string& program) {
  std::string page;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App* any) {
         return !any->get_group().empty();  // others are for programs alone
       })) {
    const std::string name = program + " " + verb->get_name();
    page += "\n## " + name + "\n\n```\n" + verb->help(program) + "```\n";
    page += help_of_verbs(*verb, name);
  }
  return page;
}

std::string verbs_page(const CLI::App& app) {
  return "# The program\n\nExit status: 0 done; 1 failed while running; 2 the request was "
         "wrong.\n" +
         help_of_verbs(app, "recmill");
}

Pages reference_pages(const CLI::App& app) {
  Pages pages;
  SectionPages sections(pages);
  train::RunOptions options;
  describe(sections, options);
  pages["configuration.md"] = sections.index();
  pages["synth.md"] = "# Configuration of recmill synth\n\n" +
                      config::OptionReference::markdown<reader::GenerateOptions>("");
  pages["verbs.md"] = verbs_page(app);
  return pages;
}

struct ReferenceArguments {
  std::string out = "docs/reference";
  bool check = false;
};

Status compare_pages(const Pages& pages, const std::string& folder) {
  RECMILL_ASSIGN_OR_RETURN(const auto names, posix_files().list(folder));
  for (const std::string& name : names) {
    if (!pages.contains(name)) return Status::Failed(folder + "/" + name + ": is no page");
  }
  for (const auto& [name, text] : pages) {
    RECMILL_ASSIGN_OR_RETURN(const auto there, read_text(posix_files(), folder + "/" + name));
    if (there != text) {
      return Status::Failed(folder + "/" + name + ": is out of date; recmill reference writes it");
    }
  }
  return {};
}

Status write_pages(const CLI::App& app, const ReferenceArguments& arguments) {
  const Pages pages = reference_pages(app);
  if (arguments.check) return compare_pages(pages, arguments.out);
  RECMILL_RETURN_IF_ERROR(posix_files().make_folder(arguments.out));
  for (const auto& [name, text] : pages) {
    RECMILL_RETURN_IF_ERROR(write_atomically(posix_files(), arguments.out + "/" + name, text));
  }
  return {};
}

}  // namespace

void add_reference(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<ReferenceArguments>();
  CLI::App* verb = app.add_subcommand("reference", "write the reference of options and verbs");
  verb->add_option("--out", arguments->out, "folder of the pages")->capture_default_str();
  verb->add_flag("--check", arguments->check, "compare with the pages that are there instead");
  verb->callback([arguments, &app, &chosen] {
    chosen.action = [arguments, &app] { return write_pages(app, *arguments); };
  });
}

}  // namespace recmill::cli
