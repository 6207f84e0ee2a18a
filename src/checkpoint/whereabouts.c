/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/whereabouts.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "base/cleanup.h"

/* How much of a stack is searched for return addresses. */
#define STACK_MAX ((size_t)256 << 10)

static bool is_driver(const char *path)
{
        const char *base = strrchr(path, '/');

        return base && strncmp(base, "/libcuda.so", 11) == 0;
}

static int read_ranges(struct whereabouts *where)
{
        char name[32], line[512], access[8], path[400];
        uint64_t begin, end;
        FILE *file;

        snprintf(name, sizeof(name), "/proc/%d/maps", (int)where->pid);
        file = fopen(name, "re");
        if (!file)
                return -ESRCH;
        while (fgets(line, sizeof(line), file)) {
                path[0] = '\0';
                if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %399[^\n]", &begin, &end, access, path) <
                            3 ||
                    access[2] != 'x' || !is_driver(path) ||
                    where->n_ranges == WHEREABOUTS_RANGES_MAX)
                        continue;
                where->range[where->n_ranges].begin = begin;
                where->range[where->n_ranges++].end = end;
        }
        fclose(file);
        return 0;
}

int whereabouts_init(struct whereabouts *where, pid_t pid)
{
        char path[32];

        *where = WHEREABOUTS_NONE;
        where->pid = pid;
        snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
        where->memory = open(path, O_RDONLY | O_CLOEXEC);
        return where->memory < 0 ? -errno : read_ranges(where);
}

void whereabouts_deinit(struct whereabouts *where)
{
        where->memory = fd_close(where->memory);
}

static bool is_in_driver(const struct whereabouts *where, uint64_t address)
{
        for (size_t i = 0; i < where->n_ranges; i++)
                if (address >= where->range[i].begin && address < where->range[i].end)
                        return true;
        return false;
}

static int read_registers(pid_t thread, uint64_t *ret_pc, uint64_t *ret_sp)
{
        struct user_regs_struct registers;
        struct iovec iov = { &registers, sizeof(registers) };

        if (ptrace(PTRACE_GETREGSET, thread, (void *)NT_PRSTATUS, &iov) < 0)
                return -errno;
#if defined(__x86_64__)
        *ret_pc = registers.rip;
        *ret_sp = registers.rsp;
#else
        *ret_pc = registers.pc;
        *ret_sp = registers.sp;
#endif
        return 0;
}

/*
 * Is the instruction before @address a call? Else the word is no return address but, say, the address
 * of a function that the program has looked up.
 */
static bool follows_call(const struct whereabouts *where, uint64_t address)
{
        unsigned char code[8] = { 0 };

        if (pread(where->memory, code, sizeof(code), (off_t)(address - sizeof(code))) !=
            (ssize_t)sizeof(code))
                return true;
#if defined(__x86_64__)
        if (code[3] == 0xe8) /* call with a displacement of 32 bits */
                return true;
        for (int length = 2; length <= 7; length++) /* call through a register or memory */
                if (code[8 - length] == 0xff && (code[9 - length] & 0x38) == 0x10)
                        return true;
        return false;
#else
        return true;
#endif
}

static bool has_driver_on_stack(const struct whereabouts *where, uint64_t sp, bool if_unsure)
{
        CLEANUP(freep) uint64_t *words = malloc(STACK_MAX);
        ssize_t n = words ? pread(where->memory, words, STACK_MAX, (off_t)sp) : -1;

        if (n < 0)
                return if_unsure;
        for (size_t i = 0; i < (size_t)n / sizeof(*words); i++)
                if (is_in_driver(where, words[i]) && follows_call(where, words[i]))
                        return true;
        return false;
}

bool whereabouts_is_inside(const struct whereabouts *where, pid_t thread)
{
        uint64_t pc = 0, sp = 0;

        if (read_registers(thread, &pc, &sp) < 0)
                return true;
        return is_in_driver(where, pc) || has_driver_on_stack(where, sp, true);
}

/* "202 0x7f.. 0x189 0x3 0x0 0x0 0xff.. SP PC"; "running" when it does. */
bool whereabouts_is_asleep_inside(const struct whereabouts *where, pid_t thread)
{
        char path[64], text[256] = "";
        uint64_t sp;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)where->pid, (int)thread);
        file = fopen(path, "re");
        if (!file)
                return false;
        (void)!fgets(text, sizeof(text), file);
        fclose(file);
        return sscanf(text, "%*d %*s %*s %*s %*s %*s %*s %lx", &sp) == 1 &&
               has_driver_on_stack(where, sp, false);
}

bool whereabouts_has_driver(pid_t pid)
{
        CLEANUP(whereabouts_deinitp) struct whereabouts where = WHEREABOUTS_NONE;

        return whereabouts_init(&where, pid) == 0 && where.n_ranges > 0;
}
