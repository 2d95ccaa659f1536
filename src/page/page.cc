// SPDX-License-Identifier: Apache-2.0
#include "page/page.h"

#include <fmt/format.h>

namespace recmill::page {
namespace {

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--ink:#1b1f24;--dim:#59636e;--page:#fff;--panel:#f4f6f8;--line:#d0d7de;
--c0:#2f6fb5;--c1:#c2571a;--c2:#2b8a4b;--c3:#8a4fb0;--c4:#a8323e;--c5:#6b7280}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ed;--dim:#9aa4af;--page:#14171a;--panel:#1e2226;
--line:#3a4149;--c0:#6aa9ec;--c1:#f0935a;--c2:#63c787;--c3:#c294e6;--c4:#ee7d87;--c5:#a3abb5}}
body{font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--page);margin:0 auto;
max-width:1340px;padding:clamp(.6em,2vw,1.5em)}
h1{font-size:1.5em;margin:0}h2{font-size:1.25em;margin:2em 0 .4em}h3{font-size:1em;margin:1.4em 0 .3em}
p,figcaption{color:var(--dim);margin:.3em 0;max-width:62em}figure{margin:0;min-width:0}
figure.narrow{max-width:46em}figure h3{margin:.2em 0}
svg{width:100%;height:auto;background:var(--panel);border-radius:6px}
svg text{fill:var(--ink);font-size:13px}svg .dim{fill:var(--dim)}svg .grid{stroke:var(--line)}
.figures{display:flex;flex-wrap:wrap;gap:.8em;padding:0;list-style:none;margin:.6em 0}
.figures li{background:var(--panel);border-radius:6px;padding:.5em .9em}
.figures b{display:block;font-size:1.25em}
.panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));gap:1em}
.panels.small{grid-template-columns:repeat(auto-fit,minmax(min(100%,180px),1fr))}
.legend span{margin-right:1em;white-space:nowrap}
.legend i{display:inline-block;width:.75em;height:.75em;margin-right:.35em}
.bars{display:grid;grid-template-columns:minmax(6em,max-content) 1fr minmax(5em,max-content);
gap:.25em .7em;align-items:center;font-size:13px;margin:.4em 0}
.bars .label{text-align:right}.bars .bar{display:flex;height:1.15em;background:var(--panel)}
.bars .bar i{height:100%}
@media(max-width:640px){.bars{grid-template-columns:1fr max-content}
.bars .label{grid-column:1/-1;text-align:left;margin-top:.35em}}
.lane{margin:.35em 0}.lane svg{display:block;height:22px;border-radius:2px}
.ticks{display:flex;justify-content:space-between;color:var(--dim);font-size:12px}
details pre{overflow:auto;background:var(--panel);padding:.8em;border-radius:6px;font-size:12px}
.advice{border-left:4px solid var(--c2);background:var(--panel);padding:.6em .9em;color:var(--ink)}
.scroll{overflow:auto;max-height:34em;border:1px solid var(--line);border-radius:6px}
table{border-collapse:collapse;width:100%;font-size:13px;white-space:nowrap}
th,td{padding:.3em .6em;text-align:right;border-bottom:1px solid var(--line)}
th{position:sticky;top:0;background:var(--panel);white-space:normal;vertical-align:bottom}
td.text,th.text{text-align:left}td.names{max-width:11em;overflow:hidden;text-overflow:ellipsis}
td code{display:inline-block;max-width:22em;white-space:normal}
code{font-size:12px})";

}  // namespace

std::string page_head(const std::string& title) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{0}</title><style>{1}</style></head>"
      "<body>\n<h1>{0}</h1>\n",
      escaped(title), kStyle);
}

std::string escaped(const std::string& text) {
  std::string made;
  for (const char c : text) {
    switch (c) {
      case '&':
        made += "&amp;";
        break;
      case '<':
        made += "&lt;";
        break;
      case '>':
        made += "&gt;";
        break;
      case '"':
        made += "&quot;";
        break;
      default:
        made += c;
    }
  }
  return made;
}

std::string time_text(double nanoseconds) {
  if (nanoseconds == 0.0) return "0";
  if (nanoseconds >= 1e9) return fmt::format("{:.3g} s", nanoseconds * 1e-9);
  if (nanoseconds >= 1e6) return fmt::format("{:.3g} ms", nanoseconds * 1e-6);
  return fmt::format("{:.3g} µs", nanoseconds * 1e-3);
}

}  // namespace recmill::page
