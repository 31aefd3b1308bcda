// Encoding: Intel 64 manual, volume 2, chapter 2 (prefixes, ModR/M, SIB) and appendix A (opcode maps).
#include "instruction.h"

#include <cstdint>
#include <cstring>

#include <ucontext.h>

namespace kf {

#if defined(__x86_64__)

namespace {

constexpr int kRegisters[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

bool one_of(const char* codes, unsigned char code) { return code && strchr(codes, static_cast<char>(code)); }

struct Decoder {
  const unsigned char* p;
  const greg_t* registers;
  bool word = false;  // prefix 66: operands of 16 bits
  unsigned rex = 0;

  // False where a prefix rules the instruction out: lock, and segments (the emulator's own variables).
  bool prefixes() {
    for (;; ++p) {
      if (*p == 0x66) word = true;
      else if (!one_of("\xf2\xf3\x2e\x36\x3e\x26", *p)) break;
    }
    if (one_of("\xf0\x64\x65", *p)) return false;
    if ((*p & 0xf0) == 0x40) rex = *p++;
    return true;
  }

  // Address of the ModR/M operand in memory; `immediate` bytes follow it. False where it is a register.
  bool operand(unsigned immediate, char*& address) {
    unsigned mode = *p >> 6, low = *p & 7;
    ++p;
    if (mode == 3) return false;
    greg_t sum = 0;
    bool relative = false;
    if (low == 4) {
      unsigned scale = *p >> 6, index = (*p >> 3 & 7) | (rex & 2) << 2, base = *p & 7;
      ++p;
      if (index != 4) sum += registers[kRegisters[index]] << scale;
      if (base == 5 && mode == 0) mode = 2;  // a displacement alone
      else sum += registers[kRegisters[base | (rex & 1) << 3]];
    } else if (low == 5 && mode == 0) {
      relative = true, mode = 2;
    } else {
      sum += registers[kRegisters[low | (rex & 1) << 3]];
    }
    if (mode == 1) {
      sum += static_cast<int8_t>(*p++);
    } else if (mode == 2) {
      int32_t displacement;
      memcpy(&displacement, p, 4);
      p += 4;
      sum += displacement;
    }
    if (relative) sum += reinterpret_cast<greg_t>(p) + immediate;
    address = reinterpret_cast<char*>(sum);
    return true;
  }
};

}  // namespace

bool next_write(void* context, MemoryWrite& write) {
  const greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  Decoder d{reinterpret_cast<const unsigned char*>(registers[REG_RIP]), registers};
  if (!d.prefixes()) return false;
  unsigned char code = *d.p++;
  write.modifies = false;
  if (code == 0x0f) {
    code = *d.p++;
    return one_of("\x11\x13\x17\x29\x2b\x7e\x7f\xc3\xd6\xe7", code) && d.operand(0, write.address);
  }
  unsigned field = *d.p >> 3 & 7;  // of the ModR/M byte: further bits of the opcode
  unsigned immediate = code & 1 ? (d.word ? 2 : 4) : 1;
  if (one_of("\x88\x89", code)) return d.operand(0, write.address);
  if (one_of("\xc6\xc7", code)) return field == 0 && d.operand(immediate, write.address);
  bool arithmetic = code < 0x38 && (code & 7) <= 1;
  if (!arithmetic) {
    if (one_of("\x80\x81\x83", code)) arithmetic = field != 7;  // 7 compares
    else if (one_of("\xfe\xff", code)) arithmetic = field <= 1;
    else if (one_of("\xf6\xf7", code)) arithmetic = field == 2 || field == 3;
    else arithmetic = one_of("\xc0\xc1\xd0\xd1\xd2\xd3", code);
    if (!one_of("\x80\x81\x83\xc0\xc1", code)) immediate = 0;
    else if (code != 0x81) immediate = 1;
  } else {
    immediate = 0;
  }
  write.modifies = true;
  write.bytes = !(code & 1) ? 1 : d.rex & 8 ? 8 : d.word ? 2 : 4;
  return arithmetic && d.operand(immediate, write.address);
}

#else

bool next_write(void*, MemoryWrite&) { return false; }

#endif

}  // namespace kf
