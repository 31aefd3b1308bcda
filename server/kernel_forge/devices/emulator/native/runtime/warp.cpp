// Lanes that meet: shuffles, votes, __syncwarp and __activemask.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "report.h"
#include "state.h"

namespace kf {

namespace {

std::string lanes_text(unsigned lanes) {
  std::string text;
  for (int first = 0; first < 32; ++first) {
    if (!(lanes >> first & 1)) continue;
    int last = first;
    while (last < 31 && lanes >> (last + 1) & 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(first);
    if (last > first) text += "-" + std::to_string(last);
    first = last;
  }
  return text;
}

[[noreturn]] void report_mask(Worker& w, const char* message, unsigned mask, unsigned lanes, Site site) {
  claim_end();
  char hex[16];
  snprintf(hex, sizeof hex, "0x%08x", mask);
  Thread& t = w.threads[w.current < 0 ? 0 : w.current];
  Line line("warp-mask");
  line.text("message", message).text("mask", hex).text("lanes", lanes_text(lanes).c_str());
  line.thread(block_index(*w.launch, w.block), t.index).open_list("sites");
  line.site(site.file, site.line, __builtin_popcount(mask & ~lanes), t.index);
  // Where the absent lanes are instead, when they wait at all.
  for (int lane = 0; lane < 32; ++lane) {
    if (!(lanes >> lane & 1)) continue;
    size_t i = static_cast<size_t>(t.warp) * 32 + static_cast<size_t>(lane);
    if (i < w.threads.size() && w.threads[i].state != State::kDone && w.threads[i].site.file &&
        w.threads[i].site != site) {
      line.site(w.threads[i].site.file, w.threads[i].site.line, 1, w.threads[i].index);
      break;
    }
  }
  line.close_list().write();
  end_run();
}

Meeting& meeting_of(Warp& warp, unsigned mask) {
  for (auto* m : warp.meetings)
    if (m->mask == mask) return *m;
  warp.meetings.push_back(new Meeting);
  warp.meetings.back()->mask = mask;
  return *warp.meetings.back();
}

// Lets the lanes of `lanes` go on, in the order of the schedule.
void release_lanes(Worker& w, unsigned warp, unsigned lanes) {
  // In random order a rotation with an odd stride: no table, and every pair of lanes occurs in both orders.
  uint64_t random = settings.order == Order::kRandom ? mix(++w.random) : 0;
  unsigned first = settings.order == Order::kReverse ? 31 : random & 31;
  unsigned stride = settings.order == Order::kReverse ? 31 : (random >> 5 & 31) | 1;
  for (unsigned n = 0; n < 32; ++n) {
    unsigned lane = (first + stride * n) & 31;
    if (!(lanes >> lane & 1)) continue;
    ++w.warps[warp].runnable;
    make_ready(w, warp * 32 + lane);
  }
}

// Everybody who can come has come.
void close_meeting(Worker& w, unsigned warp, Meeting& m) {
  for (int lane = 0; lane < 32; ++lane)
    if (m.arrived >> lane & 1) m.outgoing[lane] = m.incoming[lane];
  m.published = m.arrived;
  m.arrived = 0;
  release_lanes(w, warp, m.published);
}

const Meeting& meet(unsigned mask, const void* value, unsigned size, Site site) {
  Worker& w = *worker;
  Thread& t = w.threads[w.current];
  Warp& warp = w.warps[t.warp];
  unsigned bit = 1u << t.lane;
  if (!(mask & bit)) report_mask(w, "the calling lane is not in the mask", mask, bit, site);
  mask &= warp.existing;
  Meeting& m = meeting_of(warp, mask);
  if (m.arrived && m.site != site && (m.size != 0 || size != 0)) {
    // Lanes of one mask must execute the same intrinsic (CUDA C++ guide, warp shuffle functions). For __syncwarp any
    // call with the same mask is the same (volta and later).
    t.site = site;
    report_mask(w, "lanes of one mask are at different intrinsics", mask, mask & ~m.arrived, m.site);
  }
  if (size) memcpy(m.incoming[t.lane].bytes, value, size);
  m.arrived |= bit;
  m.size = size;
  m.site = site;
  t.site = site;
  pass_time(w, 1);
  t.state = State::kAtWarp;
  --warp.runnable;
  if ((mask & ~warp.done) == m.arrived)
    close_meeting(w, t.warp, m);
  else if (warp.runnable == 0)
    settle_active_masks(w, t.warp);
  yield_to_others(w);
  return m;
}

}  // namespace

void reset_meetings(Warp& warp) {
  for (auto* m : warp.meetings) m->arrived = m->published = 0;
}

void leave_warp_runnable(Worker& w, Thread& t) {
  if (--w.warps[t.warp].runnable == 0) settle_active_masks(w, t.warp);
}

bool settle_active_masks(Worker& w, unsigned warp) {
  // Of the lanes that ask, those at the earliest line go first, so that lagging lanes catch up: this is how
  // reconvergence behaves on hardware for structured code.
  int base = static_cast<int>(warp) * 32;
  Site best;
  unsigned lanes = 0;
  for (int lane = 0; lane < 32; ++lane) {
    size_t i = static_cast<size_t>(base + lane);
    if (i >= w.threads.size() || w.threads[i].state != State::kAtMask) continue;
    const Site& site = w.threads[i].site;
    if (!lanes || site.line < best.line) best = site, lanes = 0;
    if (site == best) lanes |= 1u << lane;
  }
  for (int lane = 0; lane < 32; ++lane)
    if (lanes >> lane & 1) w.threads[base + lane].active = lanes;
  release_lanes(w, warp, lanes);
  return lanes != 0;
}

void lane_exited(Worker& w, Thread& t) {
  Warp& warp = w.warps[t.warp];
  warp.done |= 1u << t.lane;
  for (auto* m : warp.meetings)
    if (m->arrived && (m->mask & ~warp.done) == m->arrived) close_meeting(w, t.warp, *m);
  leave_warp_runnable(w, t);
}

void report_stall(Worker& w) {
  // Nobody can go on. A lane that waits for lanes of its mask that wait elsewhere is a mask error; the rest
  // is a deadlock between barriers.
  for (size_t i = 0; i < w.threads.size(); ++i) {
    Thread& t = w.threads[i];
    if (t.state != State::kAtWarp) continue;
    for (auto* m : w.warps[t.warp].meetings)
      if (m->arrived >> t.lane & 1) {
        w.current = static_cast<int>(i);
        unsigned absent = m->mask & ~m->arrived & ~w.warps[t.warp].done;
        report_mask(w, "lanes of the mask never arrive", m->mask, absent, m->site);
      }
  }
  claim_end();
  Line line("deadlock");
  line.thread(block_index(*w.launch, w.block), {}).open_list("sites");
  std::vector<Site> seen;
  for (auto& t : w.threads) {
    if (t.state == State::kDone || std::find(seen.begin(), seen.end(), t.site) != seen.end()) continue;
    seen.push_back(t.site);
    int count = static_cast<int>(std::count_if(w.threads.begin(), w.threads.end(), [&](const Thread& o) {
      return o.state != State::kDone && o.site == t.site;
    }));
    line.site(t.site.file, t.site.line, count, t.index);
  }
  line.close_list().write();
  end_run();
}

}  // namespace kf

using namespace kf;

extern "C" {

const void* kf_warp_exchange(unsigned mask, const void* value, unsigned size, unsigned* arrived, int line,
                             const char* file) {
  Inside inside;
  const Meeting& m = meet(mask, value, size, {file, line});
  *arrived = m.published;
  return m.outgoing;
}

void kf_warp_barrier(unsigned mask, int line, const char* file) {
  Inside inside;
  meet(mask, nullptr, 0, {file, line});
}

void kf_warp_absent(unsigned mask, unsigned lane, void* value, unsigned size, int line, const char* file) {
  Inside inside;
  Worker& w = *worker;
  Thread& t = w.threads[w.current];
  if (lane < 32 && mask >> lane & 1 && w.warps[t.warp].done >> lane & 1)
    report_mask(w, "the value of a lane is read that has exited", mask, 1u << lane, {file, line});
  fill_poison(value, size, 0x1a7e + lane);
}

unsigned kf_active_mask(int line, const char* file) {
  Inside inside;
  Worker& w = *worker;
  Thread& t = w.threads[w.current];
  int self = w.current;
  pass_time(w, 1);
  t.state = State::kAtMask;
  t.site = {file, line};
  leave_warp_runnable(w, t);
  yield_to_others(w);
  return w.threads[self].active;
}
}
