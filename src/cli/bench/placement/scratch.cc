#include <cstdio>
#include <cstdlib>
#include "base/clock.h"
#include "cli/bench/placement/frozen_shapes.h"
#include "placement/planners.h"
#include "placement/rater.h"
using namespace recmill;
using namespace recmill::placement;
Problem problem_of(const cli::FrozenShape& shape, AccessCounts counts, int devices) {
  Problem p;
  for (const TableSpec& t : shape.spec().tables) p.tables.push_back({t, t.dim * 4});
  p.counts = std::move(counts);
  p.cluster = equal_devices(devices, 2 * p.total_bytes() / devices, 0.05);
  p.samples = 16384; p.training = false; p.dedup_fetch = false;
  return p;
}
int main(int argc, char** argv) {
  Pool pool(2);
  const auto shape = *cli::frozen_shape(argv[1]);
  const double zipf = atof(argv[2]);
  const int64_t lookups = atoll(argv[3]);
  Stopwatch w;
  Problem p = problem_of(shape, *cli::draw_counts(shape, zipf, 1, lookups, pool), 8);
  std::printf("drawn %.1f s\n", w.seconds());
  Problem q = p; 
  q.counts = *cli::draw_counts(shape, zipf, 2, lookups, pool);
  int64_t hot = 0; for (auto& t : p.counts.tables) hot += t.hot_rows.size();
  std::printf("hot rows %ld of %ld\n", hot, shape.total_rows());
  for (int i = 4; i < argc; ++i) {
    PlannerOptions o; o.extra_memory = atof(argv[i]);
    Stopwatch s;
    const auto r = plan_placement(p, PlannerKind::oper, o);
    const double t = s.seconds();
    if (!r.ok()) { std::printf("%s\n", r.status().message().c_str()); continue; }
    int64_t listed = 0, runs = 0; for (auto& x : r->plan.tables) listed += x.listed_rows.size(), runs += x.runs.size();
    Stopwatch s2;
    for (const Problem* x : {&p, &q}) {
      const Rating a = rate(*x, r->plan);
      std::printf("extra %.2f time %.2f: memory %.4f lookups %.4f comm %.4f pair %.4f mean pair %.4f MiB var %.2g copies %.4f%% partitions %ld listed %ld runs %ld paths %zu acc %.3f mem %.3f rate %.2fs\n", o.extra_memory, t,
        a.memory.degree(), a.lookups.degree(), a.communication.degree(), a.pair_bytes.degree(), a.pair_bytes.mean/1048576, a.pair_bytes.variance/1048576/1048576, 100.0*a.extra_copies/shape.total_rows(), r->partitions, listed, runs, r->plan.paths.size(), r->access_bounded_share, r->access_bounded_memory, s2.seconds());
    }
    for (auto& n : r->notes) std::printf("   %s\n", n.c_str());
  }
}
