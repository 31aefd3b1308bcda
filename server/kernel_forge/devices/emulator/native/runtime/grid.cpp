// The barrier of all blocks of a cooperative launch.
#include "dispatch.h"
#include "report.h"

namespace kf {

void grid_deadlock(const Launch& launch, uint64_t block, Site site, size_t count) {
  claim_end();
  Line line("deadlock");
  line.thread(block_index(launch, block), {}).open_list("sites");
  line.site(site.file, site.line, static_cast<int>(count), {}).close_list().write();
  end_run();
}

}  // namespace kf

using namespace kf;

extern "C" void kf_grid_barrier(int line, const char* file) {
  Inside inside;
  Worker& w = *worker;
  Site site{file, line};
  if (!w.launch->cooperative) {
    claim_end();
    Line("configuration").text("message", "grid.sync() needs a cooperative launch (cooperative = true)").write();
    end_run();
  }
  // The block meets; its thread (0,0,0) meets the other blocks; the block goes on. It is that thread in CUDA's own
  // header (cooperative_groups/details/sync.h): where it has exited, a GPU hangs. Other threads may have exited.
  block_barrier(0, 1, site);
  if (w.threads[0].state == State::kDone) grid_deadlock(*w.launch, w.block, site, w.threads.size() - w.done);
  if (w.current == 0) w.launch->dispatcher->meet_grid(w, site);
  block_barrier(0, 1, site);
}
