// Small kernels of which fused twins move what the kernels of kernels.h do not have: dynamic shared
// memory, named barriers with a count, blocks of three dimensions, and variables of the module.

#ifndef GPUSHARE_TESTS_PTX_FUSED_KERNELS_H_
#define GPUSHARE_TESTS_PTX_FUSED_KERNELS_H_

#include <string_view>

namespace gpushare::ptx {

// 64 threads and 256 bytes of dynamic shared memory. Each warp turns its words round behind one
// barrier, then the block does behind another; out[block * 64 + thread] += the word.
inline constexpr std::string_view kTurnRound = R"(.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 words[];
.visible .entry turn(.param .u64 .ptr .global .align 4 out, .param .u32 addend)
.reqntid 64
{
  .reg .pred %p<3>;
  .reg .b32 %r<20>;
  .reg .b64 %rd<9>;
  .shared .align 16 .b8 sum[16];
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [addend];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ctaid.x;
  mad.lo.u32 %r4, %r3, 64, %r2;
  add.u32 %r5, %r4, %r1;
  mov.b32 %r6, words;
  shl.b32 %r7, %r2, 2;
  add.u32 %r8, %r6, %r7;
  st.shared.b32 [%r8], %r5;
  bar.sync 2, 64;
  and.b32 %r9, %r2, 32;
  and.b32 %r10, %r2, 31;
  sub.u32 %r11, 31, %r10;
  or.b32 %r11, %r11, %r9;
  shl.b32 %r11, %r11, 2;
  add.u32 %r12, %r6, %r11;
  ld.shared.b32 %r13, [%r12];
  bar.sync 0;
  st.shared.b32 [%r8], %r13;
  setp.ne.u32 %p2, %r2, 5;
  @%p2 bra $summed;
  st.shared.b32 [sum+4], %r13;
$summed:
  bar.sync 0;
  sub.u32 %r14, 63, %r2;
  shl.b32 %r14, %r14, 2;
  add.u32 %r14, %r6, %r14;
  ld.shared.b32 %r15, [%r14];
  ld.shared.b32 %r16, [words+8];
  add.u32 %r15, %r15, %r16;
  ld.shared.b32 %r16, [sum+4];
  add.u32 %r15, %r15, %r16;
  mul.wide.u32 %rd2, %r4, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r17, [%rd3];
  add.u32 %r17, %r17, %r15;
  st.global.u32 [%rd3], %r17;
  ret;
}
)";

// Blocks of 8 x 4 x 2 threads: out[block * 64 + thread] += every register that says where a thread
// is, and a count of the threads by a reduction.
inline constexpr std::string_view kDeepBlock = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry deep(.param .u64 out)
.reqntid 8, 4, 2
{
  .reg .pred %p<3>;
  .reg .b32 %r<20>;
  .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %tid.y;
  mov.u32 %r3, %tid.z;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %ntid.y;
  mov.u32 %r6, %ntid.z;
  mad.lo.u32 %r7, %r3, %r5, %r2;
  mad.lo.u32 %r7, %r7, %r4, %r1;
  mov.u32 %r8, %ctaid.y;
  mov.u32 %r9, %nctaid.x;
  mov.u32 %r10, %ctaid.x;
  mad.lo.u32 %r8, %r8, %r9, %r10;
  mad.lo.u32 %r11, %r8, 64, %r7;
  setp.lt.u32 %p1, %r1, 3;
  setp.ge.u32 %p2, %r7, 20;
  barrier.sync 7;
  @%p2 bra $late;
  add.u32 %r11, %r11, 0;
$late:
  bar.red.or.pred %p2, 7, %p1;
  selp.u32 %r12, 100, 0, %p2;
  mad.lo.u32 %r12, %r1, 3, %r12;
  mad.lo.u32 %r12, %r2, 50, %r12;
  mad.lo.u32 %r12, %r3, 700, %r12;
  add.u32 %r12, %r12, %r6;
  mul.wide.u32 %rd2, %r11, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r13, [%rd3];
  add.u32 %r13, %r13, %r12;
  st.global.u32 [%rd3], %r13;
  ret;
}
)";

}  // namespace gpushare::ptx

#endif  // GPUSHARE_TESTS_PTX_FUSED_KERNELS_H_
