// What an emulated run may ask of the operating system. A kernel has no business there, but where no CUDA compiler has
// judged the code, a function of the host may be called by mistake: it must not start a process, reach the network or
// change a file outside the private folder of the run. This guards against accidents; it is no wall against an attack.
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

// From the kernel's interface (Documentation/userspace-api/landlock.rst); older systems have no header for it.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr uint32_t kRulePathBeneath = 1, kAskVersion = 1;
constexpr uint64_t kWriteFile = 1u << 1, kRemoveAndMake = ((1u << 13) - 1) & ~((1u << 4) - 1), kRefer = 1u << 13,
                   kTruncate = 1u << 14, kBindTcp = 1, kConnectTcp = 2;
struct Ruleset {
  uint64_t files, network;
};
struct __attribute__((packed)) PathBeneath {
  uint64_t allowed;
  int32_t folder;
};

// Files can be changed below the working directory only. Does nothing where the system has no Landlock.
void confine_files() {
  long version = syscall(kCreateRuleset, nullptr, 0, kAskVersion);
  if (version < 1) return;
  Ruleset handled{kWriteFile | kRemoveAndMake, kBindTcp | kConnectTcp};
  if (version >= 2) handled.files |= kRefer;
  if (version >= 3) handled.files |= kTruncate;
  int ruleset = static_cast<int>(syscall(kCreateRuleset, &handled, version >= 4 ? sizeof handled : sizeof handled.files, 0));
  int folder = open(".", O_PATH | O_CLOEXEC);
  if (ruleset >= 0 && folder >= 0) {
    PathBeneath rule{handled.files, folder};
    if (syscall(kAddRule, ruleset, kRulePathBeneath, &rule, 0) == 0) syscall(kRestrictSelf, ruleset, 0);
  }
  if (ruleset >= 0) close(ruleset);
  if (folder >= 0) close(folder);
}

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

// Ended with SIGSYS at the call.
constexpr uint32_t kRefused[] = {
    SYS_execve, SYS_execveat, SYS_socket, SYS_socketpair, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev,
    SYS_mount, SYS_umount2, SYS_setns, SYS_unshare, SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_utimensat,
    SYS_setxattr, SYS_reboot,
#ifdef SYS_fork
    SYS_fork, SYS_vfork, SYS_chmod, SYS_chown, SYS_lchown, SYS_utime, SYS_utimes,
#endif
#ifdef SYS_io_uring_setup
    SYS_io_uring_setup,
#endif
};

void refuse_calls() {
  std::vector<sock_filter> code;
  auto add = [&](uint16_t operation, uint32_t value, uint8_t yes = 0, uint8_t no = 0) {
    code.push_back({operation, yes, no, value});
  };
  auto load = [&](size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); };
  auto answer = [&](uint32_t what) { add(BPF_RET | BPF_K, what); };
  auto unless_equal_skip = [&](uint32_t value, uint8_t count) { add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count); };

  load(offsetof(seccomp_data, arch));
  unless_equal_skip(kArchitecture, 1);
  add(BPF_JMP | BPF_JA, 1);
  answer(SECCOMP_RET_KILL_PROCESS);
  load(offsetof(seccomp_data, nr));
  for (uint32_t call : kRefused) {
    unless_equal_skip(call, 1);
    answer(SECCOMP_RET_KILL_PROCESS);
  }
#ifdef SYS_clone3
  unless_equal_skip(SYS_clone3, 1);  // its flags are out of reach; the C library falls back on clone
  answer(SECCOMP_RET_ERRNO | ENOSYS);
#endif
  // A new thread is welcome, a new process is not.
  unless_equal_skip(SYS_clone, 3);
  load(offsetof(seccomp_data, args[0]));  // the low half, on a little-endian machine
  add(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0);
  answer(SECCOMP_RET_KILL_PROCESS);
  // Signals are for this process. 
  load(offsetof(seccomp_data, nr));
  for (uint32_t call : {SYS_kill, SYS_tgkill}) {
    unless_equal_skip(call, 4);
    load(offsetof(seccomp_data, args[0]));
    unless_equal_skip(static_cast<uint32_t>(getpid()), 1);
    answer(SECCOMP_RET_ALLOW);
    answer(SECCOMP_RET_KILL_PROCESS);
  }
  answer(SECCOMP_RET_ALLOW);

  sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

// Before main, so that every thread has it; main itself does nothing of what is refused.
__attribute__((constructor)) void enter_sandbox() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return;
  confine_files();
  refuse_calls();
}

}  // namespace
