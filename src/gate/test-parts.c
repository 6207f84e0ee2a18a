/* SPDX-License-Identifier: Apache-2.0 */
/* Exports, and their undo, by a program that may have few open files. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/size.h"
#include "base/test.h"
#include "gate/entry.h"
#include "gate/fake-guest.h"

/* So many descriptors are left; those of a batch that has gone are left again. */
#define FEW 16

static __typeof__(&cuMemExportToShareableHandle) export_one;
static unsigned int n_exports, n_parts;
static bool are_all_taken;

static CUresult export_few(void *fd, CUmemGenericAllocationHandle handle, int type,
                           unsigned long long flags)
{
        are_all_taken = ++n_exports % (FEW + 1) == 0;
        n_parts += are_all_taken;
        return are_all_taken ? CUDA_ERROR_OPERATING_SYSTEM : export_one(fd, handle, type, flags);
}

int __real_fcntl64(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...);

int __wrap_fcntl64(int fd, int command, ...)
{
        va_list arguments;
        int argument;

        va_start(arguments, command);
        argument = va_arg(arguments, int);
        va_end(arguments);
        if (command == F_DUPFD_CLOEXEC && are_all_taken) {
                errno = EMFILE;
                return -1;
        }
        return __real_fcntl64(fd, command, argument);
}

FAKE_TEST(test_a_batch_for_which_there_are_too_few_descriptors_goes_in_parts)
{
        entry_function few = (entry_function)export_few;

        fake_guest_start(GIB);
        fake_guest_fill();
        export_one = DRIVER(cuMemExportToShareableHandle);
        memcpy(&entry_real[ENTRY_cuMemExportToShareableHandle], &few, sizeof(few));
        fake_guest_move();
        check(n_parts > 0);
        fake_guest_check();
}

/* So many more descriptors than now. */
static void allow_more(rlim_t n)
{
        struct rlimit limit;
        int next = dup(STDIN_FILENO);

        check(next >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0);
        close(next);
        limit.rlim_cur = (rlim_t)next + n;
        check(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

FAKE_TEST(test_memory_for_whose_descriptors_there_is_no_room_comes_back_in_parts)
{
        fake_guest_start(GIB);
        fake_guest_fill();
        fake_guest_close();
        fake_guest_command(GATE_EXPORT);
        fake_guest_command(GATE_RELEASE);
        allow_more(8);
        check(fake_memory.n > 8);
        check(fake_map().error == EMFILE);
        check(fake_map_in_parts(4).error == 0);
        fake_guest_command(GATE_OPEN);
        fake_guest_check();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(
                        test_a_batch_for_which_there_are_too_few_descriptors_goes_in_parts),
                cmocka_unit_test(
                        test_memory_for_whose_descriptors_there_is_no_room_comes_back_in_parts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
