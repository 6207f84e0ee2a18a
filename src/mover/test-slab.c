/* SPDX-License-Identifier: Apache-2.0 */
/* A slab gets its pages, and keeps its words. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"
#include "base/test.h"
#include "mover/slab.h"

#define SIZE (8 * MIB)

static int make_file(void)
{
        int fd = memfd_create("slab", MFD_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, SIZE), 0);
        assert_int_equal(pwrite(fd, "words", 5, SIZE / 2), 5);
        return fd;
}

static uint64_t get_pages_of(int fd)
{
        struct stat status;

        assert_int_equal(fstat(fd, &status), 0);
        return (uint64_t)status.st_blocks * 512;
}

/* Where mappings ask for huge pages, filling leaves it to them. */
static void skip_where_mappings_ask(void)
{
        int fd = open("/sys/kernel/mm/transparent_hugepage/shmem_enabled", O_RDONLY);
        char line[128] = "";

        if (fd < 0)
                return;
        (void)!read(fd, line, sizeof(line) - 1);
        close(fd);
        if (strstr(line, "[advise]"))
                skip();
}

static void test_it_gets_what_it_lacks(void **state)
{
        char words[5] = "", zeros[5] = "words";
        int fd = make_file();

        (void)state;
        skip_where_mappings_ask();
        assert_true(get_pages_of(fd) < SIZE);
        slab_fill(fd, SIZE);
        assert_int_equal(get_pages_of(fd), SIZE);
        assert_int_equal(pread(fd, words, 5, SIZE / 2), 5);
        assert_memory_equal(words, "words", 5);
        assert_int_equal(pread(fd, zeros, 5, 0), 5);
        assert_memory_equal(zeros, "\0\0\0\0\0", 5);
        close(fd);
}

/* One that is smaller than it is said to be is refused later; it does not grow here. */
static void test_one_that_is_smaller_stays_so(void **state)
{
        int fd = make_file();
        uint64_t before = get_pages_of(fd);

        (void)state;
        slab_fill(fd, 2 * SIZE);
        assert_int_equal(get_pages_of(fd), before);
        slab_fill(-1, SIZE);
        close(fd);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_it_gets_what_it_lacks),
                cmocka_unit_test(test_one_that_is_smaller_stays_so),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
