/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GUESTS_KERNELS_H
#define GUESTS_KERNELS_H

/*
 * The kernels that guests run: a real device compiles this text, the simulated
 * one has kernels of the same names built in.
 *
 *     fill(u64 pointer, u32 value, u64 n)   n words
 *     add(u64 pointer, u32 value, u64 n)    to each of n words
 *     busy(u64 microseconds)
 */

#define KERNEL_INDEX                                                                       \
        " mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"             \
        " mul.wide.u32 %rd3, %r2, %r3; cvt.u64.u32 %rd4, %r4; add.u64 %rd3, %rd3, %rd4;\n" \
        " mov.u32 %r5, %nctaid.x; mul.wide.u32 %rd5, %r5, %r3;\n"

#define KERNEL_ARRAY(name, body)                                                    \
        ".visible .entry " name "(.param .u64 p, .param .u32 v, .param .u64 n) {\n" \
        " .reg .pred %q; .reg .b32 %r<8>; .reg .b64 %rd<8>;\n"                      \
        " ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [v]; ld.param.u64 %rd2, [n];\n" \
        " cvta.to.global.u64 %rd1, %rd1;\n" KERNEL_INDEX "again:\n"                 \
        " setp.ge.u64 %q, %rd3, %rd2; @%q bra done;\n"                              \
        " shl.b64 %rd6, %rd3, 2; add.u64 %rd6, %rd1, %rd6;\n" body                  \
        " add.u64 %rd3, %rd3, %rd5; bra again;\n"                                   \
        "done: ret;\n}\n"

static const char kernels[] = ".version 7.0\n.target sm_75\n.address_size 64\n" KERNEL_ARRAY(
        "fill", " st.global.u32 [%rd6], %r1;\n")
        KERNEL_ARRAY(
                "add",
                " ld.global.u32 %r6, [%rd6]; add.u32 %r6, %r6, %r1; st.global.u32 [%rd6], %r6;\n") ".visible .entry busy(.param .u64 us) {\n"
                                                                                                   " .reg .pred %q; .reg .b64 %rd<6>;\n"
                                                                                                   " ld.param.u64 %rd1, [us]; mul.lo.u64 %rd1, %rd1, 1000;\n"
                                                                                                   " mov.u64 %rd2, %globaltimer;\n"
                                                                                                   "again:\n"
                                                                                                   " mov.u64 %rd3, %globaltimer; sub.u64 %rd4, %rd3, %rd2;\n"
                                                                                                   " setp.lt.u64 %q, %rd4, %rd1; @%q bra again;\n"
                                                                                                   " ret;\n}\n";

#endif
