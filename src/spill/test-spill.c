/* SPDX-License-Identifier: Apache-2.0 */
/* What goes to the spill comes back, to whom it belongs and to nobody else, or the copy says why not. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/size.h"
#include "base/test.h"
#include "spill/spill-directory.h"
#include "spill/spill-reserve.h"
#include "spill/spill.h"

#define SLAB  (2 * MIB)
#define SLABS 2

/* Not in order, and not whole: as a reservation is. */
#define EXTENTS(slab)                                              \
        {                                                          \
                { slab[1], 4096, SLAB / 2 }, { slab[0], 0, SLAB }, \
                {                                                  \
                        slab[1], SLAB - 8192, 4096                 \
                }                                                  \
        }
#define N_EXTENTS 3
#define BYTES     (SLAB / 2 + SLAB + 4096)

static const struct spill_mark alice = { "alice", 1, 2, 3 };

struct fixture {
        char path[64];
        sd_event *event;
        struct spill *spill;
        int slab[SLABS], file;
        bool is_done;
        struct spill_result result;
        uint64_t begin;
};

static unsigned char *map(int fd)
{
        unsigned char *address = mmap(NULL, SLAB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        assert_ptr_not_equal(address, MAP_FAILED);
        return address;
}

static void fill(const struct fixture *fixture, unsigned char seed)
{
        for (size_t i = 0; i < SLABS; i++) {
                unsigned char *bytes = map(fixture->slab[i]);

                for (size_t k = 0; k < SLAB; k++)
                        bytes[k] = seed ? (unsigned char)(seed + i + k / 4096 + k % 251) : 0;
                munmap(bytes, SLAB);
        }
}

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        struct failure failure = { 0 };
        int directory = -1;

        strcpy(fixture->path, "/tmp/test-spill-XXXXXX");
        assert_non_null(mkdtemp(fixture->path));
        assert_int_equal(spill_directory_open(&directory, fixture->path, &failure), 0);
        assert_true(sd_event_new(&fixture->event) >= 0);
        assert_int_equal(spill_new(&fixture->spill, fixture->event, directory), 0);
        for (size_t i = 0; i < SLABS; i++) {
                fixture->slab[i] = memfd_create("slab", MFD_CLOEXEC);
                assert_int_equal(ftruncate(fixture->slab[i], SLAB), 0);
        }
        assert_int_equal(spill_make_file(fixture->spill, &fixture->file), 0);
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;

        spill_free(fixture->spill);
        sd_event_unref(fixture->event);
        for (size_t i = 0; i < SLABS; i++)
                close(fixture->slab[i]);
        close(fixture->file);
        assert_int_equal(rmdir(fixture->path), 0); /* nothing was left in it */
        free(fixture);
        return 0;
}

static void on_done(const struct spill_result *result, void *userdata)
{
        struct fixture *fixture = userdata;

        assert_false(fixture->is_done);
        fixture->is_done = true;
        fixture->result = *result;
}

static struct spill_copy *begin(struct fixture *fixture, bool is_read,
                                const struct spill_mark *mark)
{
        const struct spill_extent extents[] = EXTENTS(fixture->slab);
        const struct spill_order order = { .is_read = is_read,
                                           .fd = fixture->file,
                                           .begin = fixture->begin,
                                           .mark = *mark,
                                           .extents = extents,
                                           .n_extents = N_EXTENTS };
        struct spill_copy *copy;

        fixture->is_done = false;
        assert_int_equal(spill_begin(fixture->spill, &copy, &order, on_done, fixture), 0);
        return copy;
}

static int finish(struct fixture *fixture)
{
        while (!fixture->is_done)
                assert_true(sd_event_run(fixture->event, UINT64_MAX) >= 0);
        return fixture->result.error;
}

static int copy(struct fixture *fixture, bool is_read, const struct spill_mark *mark)
{
        (void)begin(fixture, is_read, mark);
        return finish(fixture);
}

/* All of the extents is as @seed made it; what is between them was not touched. */
static void check(const struct fixture *fixture, unsigned char seed)
{
        const struct spill_extent extents[] = EXTENTS(fixture->slab);

        for (size_t i = 0; i < N_EXTENTS; i++) {
                unsigned char *bytes = map(extents[i].fd);
                size_t slab = extents[i].fd == fixture->slab[1];

                for (size_t k = extents[i].offset; k < extents[i].offset + extents[i].length; k++)
                        assert_int_equal(bytes[k],
                                         (unsigned char)(seed + slab + k / 4096 + k % 251));
                if (slab)
                        assert_int_equal(bytes[SLAB - 1], 0);
                munmap(bytes, SLAB);
        }
}

static void test_what_was_written_comes_back(void **state)
{
        struct fixture *fixture = *state;

        fill(fixture, 7);
        assert_int_equal(copy(fixture, false, &alice), 0);
        fill(fixture, 0);
        assert_int_equal(copy(fixture, true, &alice), 0);
        check(fixture, 7);
        assert_true(fixture->result.took_ns > 0);
}

static void test_the_file_has_no_name_and_is_nobody_elses(void **state)
{
        struct fixture *fixture = *state;
        struct stat status;

        assert_int_equal(fstat(fixture->file, &status), 0);
        assert_int_equal(status.st_nlink, 0);
        assert_int_equal(status.st_mode & 0777, 0600);
}

static void test_where_files_have_names_first(void **state)
{
        struct fixture *fixture = *state;
        int directory = open(fixture->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct stat status;

        close(fixture->file);
        assert_int_equal(spill_file_new_unlinked(&fixture->file, directory), 0);
        close(directory);
        assert_int_equal(fstat(fixture->file, &status), 0);
        assert_int_equal(status.st_nlink, 0);
        assert_int_equal(status.st_mode & 0777, 0600);
        fill(fixture, 7);
        assert_int_equal(copy(fixture, false, &alice), 0);
        fill(fixture, 0);
        assert_int_equal(copy(fixture, true, &alice), 0);
        check(fixture, 7);
}

static void test_nobody_gets_the_memory_of_another(void **state)
{
        struct fixture *fixture = *state;
        struct spill_mark other = alice;

        fill(fixture, 7);
        assert_int_equal(copy(fixture, false, &alice), 0);
        fill(fixture, 0);
        other.generation++;
        assert_int_equal(copy(fixture, true, &other), -EBADMSG);
        other = alice;
        strcpy(other.vgpu, "bob");
        assert_int_equal(copy(fixture, true, &other), -EBADMSG);
        assert_non_null(strstr(fixture->result.reason.message, "spill"));
}

static void test_a_file_that_was_altered_or_cut_off_is_refused(void **state)
{
        struct fixture *fixture = *state;
        char page[4096] __attribute__((aligned(4096)));

        fill(fixture, 7);
        assert_int_equal(copy(fixture, false, &alice), 0);
        assert_int_equal(pread(fixture->file, page, sizeof(page), 0), sizeof(page));
        page[100] ^= 1;
        assert_int_equal(pwrite(fixture->file, page, sizeof(page), 0), sizeof(page));
        assert_int_equal(copy(fixture, true, &alice), -EBADMSG);
        page[100] ^= 1;
        assert_int_equal(pwrite(fixture->file, page, sizeof(page), 0), sizeof(page));
        assert_int_equal(copy(fixture, true, &alice), 0);
        assert_int_equal(ftruncate(fixture->file, BYTES), 0);
        assert_int_equal(copy(fixture, true, &alice), -EBADMSG);
        assert_int_equal(ftruncate(fixture->file, 0), 0);
        assert_int_equal(copy(fixture, true, &alice), -EBADMSG);
}

/* Two processes have parts of one file, and what each has is its own. */
static void test_parts_of_what_is_held(void **state)
{
        struct fixture *fixture = *state;
        const struct spill_mark bob = { "bob", 4, 5, 6 };
        const uint64_t second = SPILL_FILE_BEGIN_MIN + spill_file_get_room(BYTES);
        struct failure failure = { 0 };
        struct stat status;

        assert_int_equal(spill_reserve(fixture->spill, "here", &fixture->file,
                                       second + spill_file_get_room(BYTES), &failure),
                         0);
        fill(fixture, 7);
        fixture->begin = SPILL_FILE_BEGIN_MIN;
        assert_int_equal(copy(fixture, false, &alice), 0);
        fill(fixture, 9);
        fixture->begin = second;
        assert_int_equal(copy(fixture, false, &bob), 0);
        assert_int_equal(copy(fixture, true, &alice), -EBADMSG);
        fill(fixture, 0);
        assert_int_equal(copy(fixture, true, &bob), 0);
        check(fixture, 9);
        fixture->begin = SPILL_FILE_BEGIN_MIN;
        assert_int_equal(copy(fixture, true, &alice), 0);
        check(fixture, 7);
        assert_int_equal(fstat(fixture->file, &status), 0);
        assert_int_equal(status.st_size, second + spill_file_get_room(BYTES));
        assert_false(spill_reserve_is_stuck(fixture->spill));
}

static void test_room_that_is_not_there_is_not_held(void **state)
{
        struct fixture *fixture = *state;
        struct failure failure = { 0 };
        int fd = -1;

        assert_int_equal(
                spill_reserve(fixture->spill, "/a/disk", &fd, (uint64_t)1 << 52, &failure) < 0,
                true);
        assert_int_equal(fd, -1);
        assert_string_equal(failure.name, "NoRoom");
        assert_non_null(strstr(failure.message, "/a/disk"));
}

/* As on a disk that is full: the kernel takes no more. */
static void test_a_part_of_the_disk_is_kept_free(void **state)
{
        (void)state;
        assert_int_equal(spill_get_kept(0), 0);
        assert_int_equal(spill_get_kept(600 * MIB), 60 * MIB);
        assert_int_equal(spill_get_kept(15 * GIB), 1 * GIB);
        assert_int_equal(spill_get_kept(100 * GIB), 5 * GIB);
}

static void test_without_room_it_says_so(void **state)
{
        struct fixture *fixture = *state;
        struct rlimit before, limit;

        signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
        limit = before;
        limit.rlim_cur = SLAB;
        fill(fixture, 7);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        assert_int_equal(copy(fixture, false, &alice), -EFBIG);
        assert_true(fixture->result.reason.message[0] != '\0');
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(copy(fixture, true, &alice), -EBADMSG);
}

static void test_a_copy_may_be_cancelled(void **state)
{
        struct fixture *fixture = *state;
        int r;

        fill(fixture, 7);
        spill_cancel(begin(fixture, false, &alice));
        r = finish(fixture);
        assert_true(r == -ECANCELED || r == 0);
        (void)begin(fixture, false, &alice); /* and at the end of all */
}

static void test_a_directory_that_others_may_enter_is_refused(void **state)
{
        static const mode_t modes[] = { 0701, 0750, 0755, 0777, 0720 };
        struct fixture *fixture = *state;
        int fd = -1;

        for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
                struct failure failure = { 0 };

                assert_int_equal(chmod(fixture->path, modes[i]), 0);
                assert_int_equal(spill_directory_open(&fd, fixture->path, &failure), -EPERM);
                assert_non_null(strstr(failure.message, "other users"));
        }
        assert_int_equal(chmod(fixture->path, 0700), 0);
        assert_int_equal(fd, -1);
}

static void test_another_users_directory_is_refused(void **state)
{
        struct fixture *fixture = *state;
        struct failure failure = { 0 };
        int fd = -1;

        if (geteuid() != 0)
                skip();
        assert_int_equal(chown(fixture->path, 1000, 1000), 0);
        assert_int_equal(spill_directory_open(&fd, fixture->path, &failure), -EPERM);
        assert_non_null(strstr(failure.message, "user 1000"));
        assert_int_equal(spill_directory_open(&fd, "/proc", &failure), -EPERM);
        assert_int_equal(spill_directory_open(&fd, "/dev/null/spill", &failure), -ENOTDIR);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_what_was_written_comes_back),
                TEST(test_the_file_has_no_name_and_is_nobody_elses),
                TEST(test_where_files_have_names_first),
                TEST(test_nobody_gets_the_memory_of_another),
                TEST(test_a_file_that_was_altered_or_cut_off_is_refused),
                TEST(test_parts_of_what_is_held),
                TEST(test_room_that_is_not_there_is_not_held),
                TEST(test_a_part_of_the_disk_is_kept_free),
                TEST(test_without_room_it_says_so),
                TEST(test_a_copy_may_be_cancelled),
                TEST(test_a_directory_that_others_may_enter_is_refused),
                TEST(test_another_users_directory_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
