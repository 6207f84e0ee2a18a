/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jump stubs: one for each entry point of the driver, all made from one
 * macro and the table abi/cuda.abi.
 *
 * A stub knows neither the arguments nor the result of its function. It takes
 * the return address off the stack, so that arguments on the stack are where the
 * function expects them, calls the function, puts the address back and returns.
 * In between, the address and rbx are in a frame of the thread's struct caller,
 * and rbx points to the frame. "top" of the caller points behind its last frame:
 * a thread is inside a driver call exactly when it has a frame, so pushing the
 * frame is the mark that the drain waits for, and costs no extra store.
 *
 * The mark is made before gate_closed is read. There is no fence between the
 * two: whoever closes the gate runs membarrier(2) between setting the flag and
 * reading the marks (drain.c), which puts the cost on the rare side.
 *
 * So no thread slips through, wherever it is preempted. Up to the mark it has not
 * looked at the flag: it will see it set, as it was set before the marks were
 * read. From the mark on it is seen, and waited for, until it takes the mark back:
 * because of the flag, and then it waits at the gate, or because the function has
 * returned. What is in between is one instruction each, and a thread that was
 * preempted there has its barrier from the switch. test-stub.c stops a thread at
 * every instruction. Driver calls of ours on a guest's thread that come before
 * the mark (idle.c) take one of their own: caller_begin().
 *
 * A jump (instead of call and return) would be 2 ns cheaper and could not tell
 * when the function has returned, which is what the drain has to know.
 *
 * Everything unusual goes to entrance_enter() with the arguments saved and the
 * stack as at the stub's entry; it answers where to jump: to this stub again, to
 * the function itself, or to one that refuses.
 */

#include "gate/caller-layout.h"

/* The mark that the code bears indirect-branch tracking and shadow stacks; for want of it in one
 * object the linker takes it off the whole library. A shadow stack has the same return address
 * on top whenever a stub returns, for what is between is a call and its return. */
#ifdef __CET__
#include <cet.h>
#endif

        .text

        .hidden caller_self
        .hidden entrance_enter
        .hidden entry_target
        .hidden gate_closed
        .hidden gate_watch
        .hidden stub_address
        .hidden stub_past_watch

/* Return address at the address in a register: DW_CFA_expression(rip, DW_OP_breg 0). */
.macro cfi_return_in_frame_r10
        .cfi_escape 0x10, 16, 2, 0x7a, 0
.endm
.macro cfi_return_in_frame_rbx
        .cfi_escape 0x10, 16, 2, 0x73, FRAME_RETURN
        .cfi_escape 0x10, 3, 2, 0x73, FRAME_RBX
.endm

/* Calls that give the device work; who watches for that (turns.c) has set gate_watch. */
.macro watch_submit
        cmpl    $0, gate_watch(%rip)
        jne     7f
.endm
.macro watch_launch
        watch_submit
.endm
.macro watch_forward
.endm
.macro watch_own
.endm
.macro watch_wait
.endm
.macro watch_waited
.endm
.macro watched_submit
7:      movl    $(entry + ENTRY_WATCHED), %r11d
        jmp     stub_unusual
.endm
.macro watched_launch
        watched_submit
.endm
.macro watched_forward
.endm
.macro watched_own
.endm
.macro watched_wait
.endm
.macro watched_waited
.endm

.macro count_forward
.endm
.macro count_submit
.endm
.macro count_own
.endm
.macro count_launch
        incl    CALLER_LAUNCHES(%r11)
.endm
.macro count_wait
.endm
.macro count_waited
.endm

/* What is counted reaches the instance page in batches, and whenever the thread waits anyway. */
.macro flush_forward
.endm
.macro flush_submit
.endm
.macro flush_own
.endm
.macro flush_launch
        cmpl    $CALLER_LAUNCHES_MAX, CALLER_LAUNCHES(%r11)
        jae     8f
.endm
.macro flush_wait
        cmpl    $0, CALLER_LAUNCHES(%r11)
        jne     8f
.endm
.macro flush_waited
        flush_wait
.endm

        .set    entry, 0

.macro stub name, kind
        .globl  \name
        .type   \name, @function
        .p2align 5
\name:
.Lstub_\name:
        .cfi_startproc
        endbr64
        watch_\kind
.Lpast_\name: /* jumped to by its address */
        endbr64
        movq    caller_self@gottpoff(%rip), %r11
        movq    %fs:(%r11), %r11
        movq    CALLER_TOP(%r11), %r10
        testl   $(CALLER_SIZE - 1), %r10d /* no room for a frame, or no caller yet */
        jz      8f
        flush_\kind
        movl    $entry, FRAME_ENTRY(%r10)
        movq    %rsp, FRAME_STACK(%r10)
        addq    $FRAME_SIZE, CALLER_TOP(%r11) /* the mark */
        cmpl    $0, gate_closed(%rip)
        jne     9f
        count_\kind
        popq    FRAME_RETURN(%r10)
        .cfi_def_cfa_offset 0
        cfi_return_in_frame_r10
        movq    %rbx, FRAME_RBX(%r10)
        movq    %r10, %rbx
        cfi_return_in_frame_rbx
        call    *(entry_target + 8 * entry)(%rip)
        movq    %rbx, %r10
        cfi_return_in_frame_r10
        pushq   FRAME_RETURN(%r10)
        .cfi_def_cfa_offset 8
        .cfi_offset 16, -8
        movq    FRAME_RBX(%r10), %rbx
        .cfi_restore 3
        movq    %r10, %r11
        andq    $-CALLER_SIZE, %r11
        movq    %r10, CALLER_TOP(%r11) /* the mark is gone */
        ret
9:      movq    %r10, CALLER_TOP(%r11)
8:      movl    $entry, %r11d
        jmp     stub_unusual
        watched_\kind
        .cfi_endproc
        .size   \name, . - \name
        .set    entry, entry + 1
.endm

#define GATE_ENTRY(name, kind) stub name, kind
#include "gate-entries.inc"
#undef GATE_ENTRY

/* Numbered in octal, which needs no macro that calls itself (clang's assembler allows 20 levels). */
.irp eights, 0, 1, 2, 3, 4, 5, 6, 7
.irp ones, 0, 1, 2, 3, 4, 5, 6, 7
        .hidden stub_spare_\eights\ones
        stub    stub_spare_\eights\ones, forward
.endr
.endr

/*
 * The rest of a stub's way for a thread that has its mark already, from C: a call that a step of the
 * closed gate lets through (step.h). The frame tells which. Arguments and stack are as at the stub's entry.
 */
        .globl  stub_marked
        .hidden stub_marked
        .type   stub_marked, @function
        .p2align 5
stub_marked:
        .cfi_startproc
        endbr64
        movq    caller_self@gottpoff(%rip), %r11
        movq    %fs:(%r11), %r11
        movq    CALLER_TOP(%r11), %r10
        subq    $FRAME_SIZE, %r10
        popq    FRAME_RETURN(%r10)
        .cfi_def_cfa_offset 0
        cfi_return_in_frame_r10
        movq    %rbx, FRAME_RBX(%r10)
        movq    %r10, %rbx
        cfi_return_in_frame_rbx
        movl    FRAME_ENTRY(%r10), %r10d
        leaq    entry_target(%rip), %r11
        call    *(%r11, %r10, 8)
        movq    %rbx, %r10
        cfi_return_in_frame_r10
        pushq   FRAME_RETURN(%r10)
        .cfi_def_cfa_offset 8
        .cfi_offset 16, -8
        movq    FRAME_RBX(%r10), %rbx
        .cfi_restore 3
        movq    %r10, %r11
        andq    $-CALLER_SIZE, %r11
        movq    %r10, CALLER_TOP(%r11)
        ret
        .cfi_endproc
        .size   stub_marked, . - stub_marked

/* All registers that may hold arguments, and rax for the sake of variadic functions. */
        .type   stub_unusual, @function
stub_unusual:
        .cfi_startproc
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset 6, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register 6
        subq    $192, %rsp
        andq    $-16, %rsp
        movq    %rdi, 0(%rsp)
        movq    %rsi, 8(%rsp)
        movq    %rdx, 16(%rsp)
        movq    %rcx, 24(%rsp)
        movq    %r8, 32(%rsp)
        movq    %r9, 40(%rsp)
        movq    %rax, 48(%rsp)
        movaps  %xmm0, 64(%rsp)
        movaps  %xmm1, 80(%rsp)
        movaps  %xmm2, 96(%rsp)
        movaps  %xmm3, 112(%rsp)
        movaps  %xmm4, 128(%rsp)
        movaps  %xmm5, 144(%rsp)
        movaps  %xmm6, 160(%rsp)
        movaps  %xmm7, 176(%rsp)
        movl    %r11d, %edi
        call    entrance_enter
        movq    %rax, %r11
        movq    0(%rsp), %rdi
        movq    8(%rsp), %rsi
        movq    16(%rsp), %rdx
        movq    24(%rsp), %rcx
        movq    32(%rsp), %r8
        movq    40(%rsp), %r9
        movq    48(%rsp), %rax
        movaps  64(%rsp), %xmm0
        movaps  80(%rsp), %xmm1
        movaps  96(%rsp), %xmm2
        movaps  112(%rsp), %xmm3
        movaps  128(%rsp), %xmm4
        movaps  144(%rsp), %xmm5
        movaps  160(%rsp), %xmm6
        movaps  176(%rsp), %xmm7
        leave
        .cfi_def_cfa 7, 8
        jmp     *%r11
        .cfi_endproc
        .size   stub_unusual, . - stub_unusual

/* The stubs' addresses, in the order of enum entry_index. */
        .section .data.rel.ro.local, "aw"
        .p2align 3
        .globl  stub_address
        .type   stub_address, @object
stub_address:
#define GATE_ENTRY(name, kind) .quad .Lstub_##name
#include "gate-entries.inc"
#undef GATE_ENTRY
.irp eights, 0, 1, 2, 3, 4, 5, 6, 7
.irp ones, 0, 1, 2, 3, 4, 5, 6, 7
        .quad   .Lstub_stub_spare_\eights\ones
.endr
.endr
        .size   stub_address, . - stub_address

        .p2align 3
        .globl  stub_past_watch
        .type   stub_past_watch, @object
stub_past_watch:
#define GATE_ENTRY(name, kind) .quad .Lpast_##name
#include "gate-entries.inc"
#undef GATE_ENTRY
.irp eights, 0, 1, 2, 3, 4, 5, 6, 7
.irp ones, 0, 1, 2, 3, 4, 5, 6, 7
        .quad   .Lpast_stub_spare_\eights\ones
.endr
.endr
        .size   stub_past_watch, . - stub_past_watch

        .section .note.GNU-stack, "", @progbits
