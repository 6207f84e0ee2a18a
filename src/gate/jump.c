/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longjmp() and its other names as the program finds them, because the gate is loaded before libc: see leave.h. The jump
 * itself is the C library's. So is the end of a thread: what lies on its stack is undone before anything runs there.
 */
/* Else one name stands for another. */
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "gate/caller.h"
#include "gate/leave.h"
#include "gate/section.h"

typedef void (*jump_function)(struct __jmp_buf_tag *buffer, int value);

/* Where the C library on x86-64 keeps the stack pointer, and how it hides it there. */
#define AT_STACK 6

static uintptr_t get_stack(const struct __jmp_buf_tag *buffer)
{
        uintptr_t stack = (uintptr_t)buffer->__jmpbuf[AT_STACK];

        __asm__("rorq $17, %0\n\txorq %%fs:0x30, %0" : "+r"(stack));
        return stack;
}

/* Is it the stack pointer, in this C library? */
static int knows_buffers(void)
{
        struct __jmp_buf_tag buffer[1];
        uintptr_t here = (uintptr_t)__builtin_frame_address(0), there;

        if (_setjmp(buffer) != 0)
                return 0;
        there = get_stack(buffer);
        return there <= here && here - there < 4096;
}

static void find_function(const char *name, void *ret_function)
{
        void *symbol = dlsym(RTLD_NEXT, name);

        memcpy(ret_function, &symbol, sizeof(symbol));
}

static jump_function find(const char *name)
{
        jump_function found;

        find_function(name, &found);
        return found;
}

static int is_known;
static void (*next_pthread_exit)(void *result);
static void (*next_thrd_exit)(int result);
static jump_function next_longjmp, next__longjmp, next_siglongjmp, next___longjmp_chk;

/* At once: dlsym() is nothing for a signal handler. */
static __attribute__((constructor)) void prepare(void)
{
        next_longjmp = find("longjmp");
        next__longjmp = find("_longjmp");
        next_siglongjmp = find("siglongjmp");
        next___longjmp_chk = find("__longjmp_chk");
        find_function("pthread_exit", &next_pthread_exit);
        find_function("thrd_exit", &next_thrd_exit);
        is_known = knows_buffers();
}

static void leave(uintptr_t target)
{
        struct leave_jump jump;

        if (!leave_is_any() && !(caller_is_registered() && caller_is_inside(caller_self)))
                return;
        section_begin();
        jump = leave_jump_to(target);
        leave_undo(&jump);
        caller_leave(&jump);
        section_end();
}

static _Noreturn void jump(jump_function next, const char *name, struct __jmp_buf_tag *buffer,
                           int value)
{
        if (is_known)
                leave(get_stack(buffer));
        if (!next) /* from a constructor before ours */
                next = find(name);
        next(buffer, value);
        __builtin_unreachable();
}

#define JUMP(name)                                                                                 \
        __attribute__((visibility("default"), noreturn)) void name(struct __jmp_buf_tag buffer[1], \
                                                                   int value);                     \
        void name(struct __jmp_buf_tag buffer[1], int value)                                       \
        {                                                                                          \
                jump(next_##name, #name, buffer, value);                                           \
        }

#undef longjmp
#undef _longjmp
#undef siglongjmp
JUMP(longjmp)
JUMP(_longjmp)
JUMP(siglongjmp)
JUMP(__longjmp_chk)

/* All of the thread's stacks is given up. */
#define EXIT(name, type)                                                         \
        __attribute__((visibility("default"), noreturn)) void name(type result); \
        void name(type result)                                                   \
        {                                                                        \
                leave(UINTPTR_MAX);                                              \
                if (!next_##name) /* from a constructor before ours */           \
                        find_function(#name, &next_##name);                      \
                next_##name(result);                                             \
                __builtin_unreachable();                                         \
        }

EXIT(pthread_exit, void *)
EXIT(thrd_exit, int)
