// Small kernels in PTX, written for the tests of twins. Each takes one pointer, `out`, and adds to
// or writes words of it, so that a block task that is lost or repeated changes the result.

#ifndef GPUSHARE_TESTS_PTX_KERNELS_H_
#define GPUSHARE_TESTS_PTX_KERNELS_H_

#include <string>
#include <string_view>

namespace gpushare::ptx {

inline std::string KernelText(std::string_view body, std::string_view directives = "") {
  return ".version 8.0\n.target sm_90a\n.address_size 64\n\n// a comment\n.visible .entry k(\n"
         "\t.param .u64 .ptr .global .align 1 out\n)\n" +
         std::string(directives) +
         "\n{\n\t.reg .pred %p<9>;\n\t.reg .b32 %r<20>;\n\t.reg .b64 %rd<9>;\n"
         "\t.shared .align 4 .b8 area[256];\n\tld.param.u64 %rd1, [out];\n" +
         std::string(body) + "}\n";
}

// out[place of the block in a 3-D grid * threads + thread] += 1 + place
inline constexpr std::string_view kThreeDimensions = R"(
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ctaid.y;
  mov.u32 %r3, %ctaid.z;
  mov.u32 %r4, %nctaid.x;
  mov.u32 %r5, %nctaid.y;
  mad.lo.u32 %r6, %r3, %r5, %r2;
  mad.lo.u32 %r6, %r6, %r4, %r1;
  mov.u32 %r7, %tid.x;
  mov.u32 %r8, %ntid.x;
  mad.lo.u32 %r9, %r6, %r8, %r7;
  mul.wide.u32 %rd2, %r9, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r10, [%rd3];
  add.u32 %r11, %r10, %r6;
  add.u32 %r11, %r11, 1;
  st.global.u32 [%rd3], %r11;
  ret;
)";

// A sum over the block through shared memory, in a loop of barriers.
inline constexpr std::string_view kBlockSum = R"(
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  add.u32 %r3, %r1, %r2;
  shl.b32 %r4, %r2, 2;
  mov.u32 %r5, area;
  add.u32 %r5, %r5, %r4;
  st.shared.u32 [%r5], %r3;
  mov.u32 %r6, 16;
$loop:
  bar.sync 0;
  setp.ge.u32 %p1, %r2, %r6;
  @%p1 bra $skip;
  shl.b32 %r7, %r6, 2;
  add.u32 %r7, %r5, %r7;
  ld.shared.u32 %r8, [%r7];
  ld.shared.u32 %r9, [%r5];
  add.u32 %r9, %r9, %r8;
  st.shared.u32 [%r5], %r9;
$skip:
  shr.u32 %r6, %r6, 1;
  setp.ne.u32 %p2, %r6, 0;
  @%p2 bra $loop;
  setp.ne.u32 %p3, %r2, 0;
  @%p3 ret;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r10, [%rd3];
  add.u32 %r10, %r10, %r9;
  st.global.u32 [%rd3], %r10;
  ret;
)";

// Some threads leave before two barriers that the others meet; another leaves between them.
inline constexpr std::string_view kEarlyReturn = R"(
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  add.u32 %r3, %r1, %r2;
  and.b32 %r4, %r3, 3;
  setp.eq.u32 %p1, %r4, 0;
  @%p1 ret;
  shl.b32 %r5, %r2, 2;
  mov.u32 %r6, area;
  add.u32 %r6, %r6, %r5;
  st.shared.u32 [%r6], %r3;
  bar.sync 0;
  setp.eq.u32 %p2, %r4, 1;
  @%p2 exit;
  ld.shared.u32 %r7, [%r6];
  bar.sync 0;
  add.u32 %r8, %r7, 7;
  st.shared.u32 [%r6], %r8;
  bar.sync 0;
  mov.u32 %r9, %ntid.x;
  mad.lo.u32 %r10, %r1, %r9, %r2;
  mul.wide.u32 %rd2, %r10, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.shared.u32 %r11, [%r6];
  ld.global.u32 %r12, [%rd3];
  add.u32 %r12, %r12, %r11;
  st.global.u32 [%rd3], %r12;
  ret;
)";

}  // namespace gpushare::ptx

#endif  // GPUSHARE_TESTS_PTX_KERNELS_H_
