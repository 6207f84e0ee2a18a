/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GUESTS_KERNEL_MEET_H
#define GUESTS_KERNEL_MEET_H

/*
 * meet(u64 pointer, u32 n): adds 1 to a word and waits for the next multiple of n. For one thread. The
 * simulated device has it built in (src/sim/kernel.h).
 */
static const char kernel_meet[] =
        ".version 7.0\n.target sm_75\n.address_size 64\n"
        ".visible .entry meet(.param .u64 p, .param .u32 n) {\n"
        " .reg .pred %q; .reg .b32 %r<8>; .reg .b64 %rd<2>;\n"
        " ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n];\n"
        " cvta.to.global.u64 %rd1, %rd1;\n"
        " membar.sys; atom.sys.global.add.u32 %r2, [%rd1], 1;\n"
        " div.u32 %r3, %r2, %r1; mul.lo.u32 %r3, %r3, %r1; add.u32 %r3, %r3, %r1;\n"
        "again:\n"
        " ld.volatile.global.u32 %r4, [%rd1]; sub.s32 %r5, %r4, %r3;\n"
        " setp.lt.s32 %q, %r5, 0; @%q bra again;\n"
        " membar.sys; ret;\n}\n";

#endif
