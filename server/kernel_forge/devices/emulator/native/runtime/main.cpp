// One run: read the job, make the buffers, launch, check, hand the contents back.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "dispatch.h"
#include "report.h"
#include "state.h"
#include "texture.h"

using namespace kf;

namespace {

constexpr uint64_t kBufferSalt = 0xb0ff;

struct BufferItem {
  Region region;
  bool symbol = false;
  unsigned long long texture = 0;  // its object; such an item has no memory of its own
  std::string output;
};

struct LaunchItem {
  Launch launch;
  std::vector<std::vector<unsigned char>> values;
  std::vector<void*> args;
  unsigned kernel = 0;
};

[[noreturn]] void bad_job(const std::string& message) {
  Line("bad-job").text("message", message.c_str()).write();
  end_run();
}

[[noreturn]] void refuse(const std::string& message) {
  Line("configuration").text("message", message.c_str()).write();
  end_run();
}

void read_all(const std::string& path, char* into, size_t bytes) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) bad_job("cannot read " + path);
  for (size_t done = 0; done < bytes;) {
    ssize_t n = read(fd, into + done, bytes - done);
    if (n <= 0) bad_job("short input " + path);
    done += static_cast<size_t>(n);
  }
  close(fd);
}

void write_all(const std::string& path, const char* from, size_t bytes) {
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) bad_job("cannot write " + path);
  for (size_t done = 0; done < bytes;) {
    ssize_t n = write(fd, from + done, bytes - done);
    if (n <= 0) bad_job("cannot write " + path);
    done += static_cast<size_t>(n);
  }
  close(fd);
}

std::vector<unsigned char> from_hex(const std::string& hex) {
  std::vector<unsigned char> bytes(hex.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(strtoul(hex.substr(2 * i, 2).c_str(), nullptr, 16));
  return bytes;
}

// Limits of every compute capability from 7.0 on (CUDA C++ guide, technical specifications).
void check_launch(const Launch& l) {
  uint64_t threads = uint64_t{l.block.x} * l.block.y * l.block.z;
  auto text = [](kf_dim3 d) {
    return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
  };
  if (threads == 0 || l.blocks == 0) refuse("grid " + text(l.grid) + " and block " + text(l.block) + " must not have a zero");
  if (threads > 1024) refuse("block " + text(l.block) + " has " + std::to_string(threads) + " threads; the most is 1024");
  if (l.block.z > 64) refuse("block " + text(l.block) + ": z is at most 64");
  if (l.grid.x > 0x7fffffffu || l.grid.y > 65535 || l.grid.z > 65535)
    refuse("grid " + text(l.grid) + ": x is at most 2147483647, y and z 65535");
  if (l.shared_bytes > 227 * 1024)
    refuse(std::to_string(l.shared_bytes) + " bytes of dynamic shared memory; the largest GPU has 232448");
  if (l.cooperative && (l.blocks > kMostResidentBlocks || l.blocks * threads > kMostResidentThreads))
    refuse(std::to_string(l.blocks) + " blocks of " + std::to_string(threads) +
           " threads in a cooperative launch; a GPU must hold them all at once, and the largest holds " +
           std::to_string(kMostResidentBlocks) + " blocks and " + std::to_string(kMostResidentThreads) + " threads");
}

struct Job {
  std::vector<std::unique_ptr<BufferItem>> buffers;
  std::vector<std::unique_ptr<LaunchItem>> launches;
  int watch_buffer = -1;
  size_t watch_offset = 0, watch_bytes = 0;
};

void read_buffer(std::istringstream& in, Job& job) {
  auto item = std::make_unique<BufferItem>();
  size_t index, bytes;
  int writable;
  std::string input;
  in >> index >> bytes >> writable >> input >> item->output;
  if (!in || index != job.buffers.size()) bad_job("malformed buffer");
  item->region = allocate_guarded(bytes, 16);
  item->region.buffer = static_cast<int>(index);
  item->region.writable = writable != 0;
  poison_outside(item->region, kBufferSalt + index);
  if (bytes) read_all(input, item->region.base, bytes);
  job.buffers.push_back(std::move(item));
}

void read_symbol(std::istringstream& in, Job& job) {
  auto item = std::make_unique<BufferItem>();
  size_t index, bytes;
  std::string name, input;
  in >> index >> name >> bytes >> input >> item->output;
  if (!in || index != job.buffers.size()) bad_job("malformed symbol");
  item->symbol = true;
  for (unsigned i = 0; i < kf_symbol_count; ++i)
    if (name == kf_symbols[i].name) {
      if (bytes > kf_symbols[i].bytes)
        refuse("the variable " + name + " has " + std::to_string(kf_symbols[i].bytes) + " bytes, the spec gives it " +
               std::to_string(bytes));
      item->region.base = static_cast<char*>(kf_symbols[i].address);
      item->region.bytes = bytes;
    }
  if (!item->region.base) bad_job("no symbol " + name);
  if (bytes) read_all(input, item->region.base, bytes);
  job.buffers.push_back(std::move(item));
}

void read_texture(std::istringstream& in, Job& job) {
  auto item = std::make_unique<BufferItem>();
  Texture texture;
  size_t index;
  unsigned kind, address;
  std::string input;
  in >> index >> input >> kind >> texture.lanes >> texture.dimensions >> texture.extent[0] >> texture.extent[1] >>
      texture.extent[2] >> texture.is_linear >> address >> texture.is_normalized >> texture.is_scaled >>
      texture.in_memory;
  if (!in || index != job.buffers.size() || kind > kf_uint32 || address > 3) bad_job("malformed texture");
  texture.kind = static_cast<kf_texel>(kind);
  texture.address = static_cast<Address>(address);
  size_t count = static_cast<size_t>(texture.extent[0] * texture.extent[1] * texture.extent[2]) * texture.lanes;
  texture.texels.resize(count * element_bytes(texture.kind));
  read_all(input, reinterpret_cast<char*>(texture.texels.data()), texture.texels.size());
  item->output = "-";
  item->texture = add_texture(std::move(texture));
  job.buffers.push_back(std::move(item));
}

void read_launch(std::istringstream& in, Job& job) {
  auto item = std::make_unique<LaunchItem>();
  Launch& l = item->launch;
  in >> item->kernel >> l.grid.x >> l.grid.y >> l.grid.z >> l.block.x >> l.block.y >> l.block.z >> l.shared_bytes >>
      l.cooperative;
  if (!in || item->kernel >= kf_kernel_count) bad_job("malformed launch");
  l.blocks = uint64_t{l.grid.x} * l.grid.y * l.grid.z;
  check_launch(l);
  l.invoke = kf_kernels[item->kernel].invoke;
  job.launches.push_back(std::move(item));
}

void read_argument(std::istringstream& in, Job& job) {
  std::string kind, value;
  in >> kind >> value;
  if (!in || job.launches.empty()) bad_job("malformed argument");
  LaunchItem& launch = *job.launches.back();
  std::vector<unsigned char> bytes;
  if (kind == "buffer") {
    BufferItem& item = *job.buffers.at(strtoul(value.c_str(), nullptr, 10));
    bytes.resize(sizeof item.region.base);
    if (item.texture) memcpy(bytes.data(), &item.texture, sizeof item.texture);
    else memcpy(bytes.data(), &item.region.base, sizeof item.region.base);
  } else {
    bytes = from_hex(value);
  }
  const kf_kernel& kernel = kf_kernels[launch.kernel];
  size_t position = launch.values.size();
  if (position >= kernel.parameter_count) refuse(std::string(kernel.name) + " has fewer parameters than the launch gives");
  if (bytes.size() != kernel.parameter_sizes[position])
    refuse("parameter " + std::to_string(position + 1) + " of " + kernel.name + " has " +
           std::to_string(kernel.parameter_sizes[position]) + " bytes, the launch gives " + std::to_string(bytes.size()));
  bytes.resize(bytes.size() + 16);
  launch.values.push_back(std::move(bytes));
}

void read_setting(const std::string& key, std::istringstream& in, Job& job) {
  std::string word;
  if (key == "report") {
    in >> word;
    open_report(word.c_str());
  } else if (key == "text") {
    in >> word;
    open_text(word.c_str());
  } else if (key == "schedule") {
    in >> word >> settings.order_seed;
    settings.order = word == "reverse" ? Order::kReverse : word == "random" ? Order::kRandom : Order::kForward;
  } else if (key == "poison") {
    in >> settings.poison_seed;
  } else if (key == "workers") {
    in >> settings.workers;
  } else if (key == "time_limit") {
    in >> settings.time_limit;
  } else if (key == "output_limit") {
    in >> settings.output_limit;
  } else if (key == "memory_limit") {
    in >> settings.memory_limit;
  } else if (key == "watch") {
    in >> job.watch_buffer >> job.watch_offset >> job.watch_bytes;
  } else {
    bad_job("unknown item " + key);
  }
  if (in.fail()) bad_job("malformed item " + key);
}

Job read_job(const char* path) {
  Job job;
  std::ifstream file(path);
  if (!file) bad_job("no job file");
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string key;
    in >> key;
    if (key == "buffer") read_buffer(in, job);
    else if (key == "symbol") read_symbol(in, job);
    else if (key == "texture") read_texture(in, job);
    else if (key == "launch") read_launch(in, job);
    else if (key == "arg") read_argument(in, job);
    else if (!key.empty()) read_setting(key, in, job);
  }
  for (auto& launch : job.launches) {
    const kf_kernel& kernel = kf_kernels[launch->kernel];
    if (launch->values.size() != kernel.parameter_count)
      refuse(std::string(kernel.name) + " has " + std::to_string(kernel.parameter_count) + " parameters, the launch gives " +
             std::to_string(launch->values.size()));
    for (auto& value : launch->values) launch->args.push_back(value.data());
    launch->launch.args = launch->args.data();
  }
  return job;
}

void limit_resources(const Job& job) {
  rlimit core{0, 0};
  // No file may grow beyond what this run itself writes: its outputs, its text and its report.
  rlim_t largest = settings.output_limit + (1 << 20);
  for (auto& item : job.buffers) largest = std::max<rlim_t>(largest, item->region.bytes);
  rlimit files{largest, largest};
  setrlimit(RLIMIT_FSIZE, &files);
  setrlimit(RLIMIT_CORE, &core);
  // Address space is not memory: stacks are reserved for every thread that could wait. The clock watches the memory.
  rlimit space{};
  getrlimit(RLIMIT_AS, &space);
  space.rlim_cur = space.rlim_max;
  setrlimit(RLIMIT_AS, &space);
}

}  // namespace

int main(int count, char** arguments) {
  pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) return 2;  // it died before it could have taken us along
  if (count != 2) {
    fprintf(stderr, "usage: kernel JOB (started by Kernel Forge)\n");
    return 2;
  }
  install_fault_handlers();
  install_clock_handlers();
  Job job = read_job(arguments[1]);
  for (auto& item : job.buffers)
    if (!item->symbol && !item->texture) {
      buffer_regions().push_back(item->region);
      if (!item->region.writable)
        protect(item->region.map + kGuardBytes, item->region.map_bytes - 2 * kGuardBytes, PROT_READ);
      if (item->region.bytes == 0) protect(item->region.map, item->region.map_bytes, PROT_NONE);
    }
  if (job.watch_buffer >= 0) {
    settings.workers = 1;
    auto& watched = *job.buffers.at(static_cast<size_t>(job.watch_buffer));
    set_watch(watched.region.base + job.watch_offset, job.watch_bytes);
  }
  limit_resources(job);
  start_clock();
  auto start = std::chrono::steady_clock::now();
  for (auto& item : job.launches) run_launch(item->launch);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  stop_clock();  // it must not interrupt what is only handing its results over
  claim_end();
  for (size_t i = 0; i < job.buffers.size(); ++i) {
    auto& item = *job.buffers[i];
    if (!item.symbol && !item.texture && item.region.bytes) {
      long long offset = changed_outside(item.region, kBufferSalt + i);
      if (offset != no_change)
        Line("guard").number("buffer", static_cast<long long>(i)).number("offset", offset).write();
    }
    if (item.output != "-") write_all(item.output, item.region.base, item.region.bytes);
  }
  report_watch();
  Line("done").seconds("seconds", seconds).write();
  _exit(0);
}
