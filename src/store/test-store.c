/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/test.h"
#include "database/test-release.h"
#include "state/state-page.h"
#include "store/store-event.h"

static char directory[] = "/tmp/test-store-faults-XXXXXX";

static void arm(const char *text)
{
        char path[128];
        FILE *file;

        (void)snprintf(path, sizeof(path), "%s/store.write=fail", directory);
        file = fopen(path, "we");
        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

/* In the place of libc's, which SQLite calls to wait for the disk. */
static int n_waits;

__attribute__((visibility("default"))) int fdatasync(int fd)
{
        (void)fd;
        n_waits++;
        return 0;
}

__attribute__((visibility("default"))) int fsync(int fd)
{
        return fdatasync(fd);
}

struct fixture {
        char path[64];
        struct store *store;
};

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        snprintf(fixture->path, sizeof(fixture->path), "/tmp/test-store-XXXXXX");
        fd_close(mkstemp(fixture->path));
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;
        char other[80];

        store_close(fixture->store);
        unlink(fixture->path);
        for (const char **suffix = (const char *[]){ "-wal", "-shm", "-journal", NULL }; *suffix;
             suffix++) {
                snprintf(other, sizeof(other), "%s%s", fixture->path, *suffix);
                unlink(other);
        }
        free(fixture);
        return 0;
}

static void reopen(struct fixture *fixture, const char *boot)
{
        struct failure failure = { 0 };

        fixture->store = store_close(fixture->store);
        assert_int_equal(store_open(&fixture->store, fixture->path, boot, &failure), 0);
}

static struct store_instance make_instance(struct fixture *fixture, const char *name)
{
        struct store_instance instance = { .frame_buffer = 1ull << 40,
                                           .created_ns = UINT64_MAX / 2,
                                           .state = STATE_SUSPENDED,
                                           .owner = 1000,
                                           .device_uuid = "GPU-1" };

        snprintf(instance.name, sizeof(instance.name), "%s", name);
        snprintf(instance.uuid, sizeof(instance.uuid), "uuid-of-%s", name);
        assert_int_equal(store_add_instance(fixture->store, &instance), 0);
        return instance;
}

static int copy_instance(const struct store_instance *instance, void *userdata)
{
        *(struct store_instance *)userdata = *instance;
        return 0;
}

static int count_instance(const struct store_instance *instance, void *userdata)
{
        (void)instance;
        ++*(int *)userdata;
        return 0;
}

static int count_process(const struct store_process *process, void *userdata)
{
        (void)process;
        ++*(int *)userdata;
        return 0;
}

static void test_a_file_that_cannot_grow_is_not_called_damaged(void **state)
{
        const struct rlimit none = { 0, RLIM_INFINITY };
        struct fixture *fixture = *state;
        struct failure failure = { 0 };
        struct rlimit old;
        int r;

        assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
        r = store_open(&fixture->store, fixture->path, "boot", &failure);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_true(r < 0);
        assert_null(strstr(failure.message, "damaged"));
        assert_null(strstr(failure.hint, "move it away"));
        reopen(fixture, "boot");
}

static void test_an_instance_is_read_as_it_was_written(void **state)
{
        struct fixture *fixture = *state;
        struct store_instance written, read = { 0 };

        reopen(fixture, "boot");
        written = make_instance(fixture, "train");
        assert_int_equal(store_set_instance(fixture->store, written.id, STATE_EVICTED, "GPU-2"), 0);
        reopen(fixture, "boot");
        assert_int_equal(store_each_instance(fixture->store, copy_instance, &read), 0);
        assert_int_equal(read.id, written.id);
        assert_string_equal(read.name, "train");
        assert_string_equal(read.device_uuid, "GPU-2");
        assert_int_equal(read.frame_buffer, written.frame_buffer);
        assert_int_equal(read.created_ns, written.created_ns);
        assert_int_equal(read.state, STATE_EVICTED);
        assert_int_equal(read.owner, 1000);
}

static void test_an_id_is_never_used_again(void **state)
{
        struct fixture *fixture = *state;
        struct store_instance first, second;

        reopen(fixture, "boot");
        first = make_instance(fixture, "one");
        assert_int_equal(store_remove_instance(fixture->store, first.id), 0);
        second = make_instance(fixture, "two");
        assert_true(second.id > first.id);
}

static void test_addresses_and_extents_keep_their_order(void **state)
{
        const struct store_allocation allocations[] = { { UINT64_MAX - 4095, 4096, 7 },
                                                        { 4096, 1, 0 },
                                                        { 1ull << 63, 2, 1 } };
        const struct store_extent extents[] = { { UINT32_MAX, 5, 6, UINT64_MAX }, { 1, 2, 3, 4 } };
        const struct store_memory memory = { allocations, 3, extents, 2 };
        struct fixture *fixture = *state;
        struct store_allocation *got_allocations;
        struct store_extent *got_extents;
        struct store_process process = { .pid = 7, .start_time = 8, .slot = 9 };
        size_t n_allocations, n_extents;

        reopen(fixture, "boot");
        process.instance = make_instance(fixture, "train").id;
        assert_int_equal(store_put_process(fixture->store, &process), 0);
        assert_int_equal(store_put_memory(fixture->store, process.instance, 7, &memory), 0);
        assert_int_equal(store_put_memory(fixture->store, process.instance, 7, &memory), 0);
        reopen(fixture, "boot");
        assert_int_equal(store_get_memory(fixture->store, process.instance, 7, &got_allocations,
                                          &n_allocations, &got_extents, &n_extents),
                         0);
        assert_int_equal(n_allocations, 3);
        assert_int_equal(n_extents, 2);
        for (size_t i = 0; i < n_allocations; i++) {
                assert_int_equal(got_allocations[i].address, allocations[i].address);
                assert_int_equal(got_allocations[i].size, allocations[i].size);
                assert_int_equal(got_allocations[i].part, allocations[i].part);
        }
        for (size_t i = 0; i < n_extents; i++) {
                assert_int_equal(got_extents[i].slab, extents[i].slab);
                assert_int_equal(got_extents[i].length, extents[i].length);
                assert_int_equal(got_extents[i].generation, extents[i].generation);
        }
        free(got_allocations);
        free(got_extents);
}

/* As the first release left it, with a process that is suspended. */
static const char first_version[] =
        "CREATE TABLE boot (id TEXT NOT NULL); INSERT INTO boot VALUES ('boot');"
        "CREATE TABLE instance (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,"
        "  uuid TEXT NOT NULL UNIQUE, device TEXT NOT NULL, frame_buffer INTEGER NOT NULL,"
        "  created_ns INTEGER NOT NULL, state INTEGER NOT NULL, owner INTEGER NOT NULL,"
        "  transient INTEGER NOT NULL, creator INTEGER NOT NULL, creator_start INTEGER NOT NULL);"
        "CREATE TABLE process (instance INTEGER NOT NULL REFERENCES instance ON DELETE CASCADE,"
        "  pid INTEGER NOT NULL, start_time INTEGER NOT NULL, slot INTEGER NOT NULL,"
        "  context INTEGER NOT NULL, context_device TEXT NOT NULL, context_target TEXT NOT NULL,"
        "  PRIMARY KEY (instance, pid));"
        "CREATE TABLE memory (instance INTEGER NOT NULL, pid INTEGER NOT NULL,"
        "  address INTEGER NOT NULL, size INTEGER NOT NULL,"
        "  FOREIGN KEY (instance, pid) REFERENCES process ON DELETE CASCADE);"
        "CREATE TABLE extent (instance INTEGER NOT NULL, pid INTEGER NOT NULL,"
        "  slab INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL,"
        "  FOREIGN KEY (instance, pid) REFERENCES process ON DELETE CASCADE);"
        "CREATE TABLE operation (instance INTEGER PRIMARY KEY REFERENCES instance ON DELETE CASCADE,"
        "  kind TEXT NOT NULL, step TEXT NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL,"
        "  keep_context INTEGER NOT NULL);"
        "CREATE TABLE mover (pid INTEGER PRIMARY KEY, start_time INTEGER NOT NULL);"
        "INSERT INTO instance VALUES (5, 'old', 'uuid', 'GPU-1', 4096, 1, 3, 0, 0, 0, 0);"
        "INSERT INTO process VALUES (5, 7, 8, 9, 2, 'GPU-1', '');"
        "INSERT INTO memory VALUES (5, 7, 65536, 4096);"
        "INSERT INTO extent VALUES (5, 7, 1, 2, 4096);"
        "PRAGMA application_id=1447514197; PRAGMA user_version=1";

static void test_a_store_of_each_release_is_opened(void **state)
{
        struct fixture *fixture = *state;
        struct store_allocation *allocations;
        struct store_extent *extents;
        size_t n_allocations, n_extents;
        int n = 0;

        release_load(fixture->path, RELEASES "/release-2.sql");
        reopen(fixture, "b3a0c176-13d4-43d4-a24c-7030f98905b3");
        assert_int_equal(store_each_instance(fixture->store, count_instance, &n), 0);
        assert_int_equal(n, 2);
        assert_int_equal(store_get_memory(fixture->store, 1, 29810, &allocations, &n_allocations,
                                          &extents, &n_extents),
                         0);
        assert_int_equal(n_allocations, 2);
        assert_int_equal(allocations[1].size, 4194304);
        assert_int_equal(n_extents, 1);
        assert_int_equal(extents[0].generation, 8046259772320625727);
        free(allocations);
        free(extents);
}

static void make_first_version(struct fixture *fixture)
{
        sqlite3 *database;

        assert_int_equal(sqlite3_open(fixture->path, &database), SQLITE_OK);
        assert_int_equal(sqlite3_exec(database, first_version, NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_close(database), SQLITE_OK);
}

static void test_a_database_of_the_first_version_is_brought_up_to_date(void **state)
{
        struct fixture *fixture = *state;
        struct store_allocation *allocations;
        struct store_instance read = { 0 };
        struct store_extent *extents;
        size_t n_allocations, n_extents;

        make_first_version(fixture);
        for (int i = 0; i < 2; i++) {
                reopen(fixture, "boot");
                assert_int_equal(store_each_instance(fixture->store, copy_instance, &read), 0);
                assert_string_equal(read.name, "old");
                assert_int_equal(store_get_memory(fixture->store, 5, 7, &allocations,
                                                  &n_allocations, &extents, &n_extents),
                                 0);
                assert_int_equal(n_extents, 1);
                assert_int_equal(extents[0].offset, 2);
                assert_int_equal(extents[0].generation, 0);
                free(allocations);
                free(extents);
        }
}

static void test_the_parts_of_an_instance_have_ids_of_their_own(void **state)
{
        struct fixture *fixture = *state;
        struct store_instance made = { .name = "several", .uuid = "s", .device_uuid = "GPU-1" };
        struct store_instance read = { 0 }, next;

        reopen(fixture, "boot");
        made.n_more = 2;
        strcpy(made.more[0].device_uuid, "GPU-3");
        strcpy(made.more[1].device_uuid, "GPU-0");
        assert_int_equal(store_add_instance(fixture->store, &made), 0);
        next = make_instance(fixture, "next");
        assert_true(made.id < made.more[0].id && made.more[0].id < made.more[1].id);
        assert_true(made.more[1].id < next.id);
        assert_int_equal(store_remove_instance(fixture->store, next.id), 0);
        reopen(fixture, "boot");
        assert_int_equal(store_each_instance(fixture->store, copy_instance, &read), 0);
        assert_int_equal(read.n_more, 2);
        assert_string_equal(read.more[0].device_uuid, "GPU-3");
        assert_string_equal(read.more[1].device_uuid, "GPU-0");
        assert_int_equal(read.more[1].id, made.more[1].id);
        assert_int_equal(store_set_part(fixture->store, made.more[0].id, "GPU-7"), 0);
        read = (struct store_instance){ 0 };
        assert_int_equal(store_each_instance(fixture->store, copy_instance, &read), 0);
        assert_string_equal(read.more[0].device_uuid, "GPU-7");
        assert_string_equal(read.more[1].device_uuid, "GPU-0");
        assert_int_equal(store_remove_instance(fixture->store, made.id), 0);
        next = make_instance(fixture, "next");
        read = (struct store_instance){ 0 };
        assert_int_equal(store_each_instance(fixture->store, copy_instance, &read), 0);
        assert_int_equal(read.n_more, 0);
        assert_true(next.id > made.more[1].id);
}

static void test_what_belongs_to_an_instance_goes_with_it(void **state)
{
        struct fixture *fixture = *state;
        struct store_process process = { .pid = 7 };
        struct store_operation operation = { .kind = "suspend" };
        int n = 0;

        reopen(fixture, "boot");
        process.instance = operation.instance = make_instance(fixture, "train").id;
        assert_int_equal(store_put_process(fixture->store, &process), 0);
        assert_int_equal(store_put_operation(fixture->store, &operation), 0);
        assert_int_equal(store_remove_instance(fixture->store, process.instance), 0);
        assert_int_equal(store_each_process(fixture->store, process.instance, count_process, &n),
                         0);
        assert_int_equal(n, 0);
        assert_int_equal(store_get_operation(fixture->store, process.instance, &operation),
                         -ENOENT);
}

static void test_how_large_a_context_is_goes_with_its_process(void **state)
{
        struct fixture *fixture = *state;
        struct store_process process = { .pid = 7 };
        uint64_t bytes = 0;
        uint32_t id;

        reopen(fixture, "boot");
        id = process.instance = make_instance(fixture, "train").id;
        assert_int_equal(store_put_process(fixture->store, &process), 0);
        assert_int_equal(store_get_footprint(fixture->store, id, 7, &bytes), -ENOENT);
        assert_int_equal(store_put_footprint(fixture->store, id, 7, 5 << 20), 0);
        assert_int_equal(store_put_footprint(fixture->store, id, 7, 6 << 20), 0);
        assert_int_equal(store_get_footprint(fixture->store, id, 7, &bytes), 0);
        assert_int_equal(bytes, 6 << 20);
        assert_int_equal(store_remove_process(fixture->store, id, 7), 0);
        assert_int_equal(store_get_footprint(fixture->store, id, 7, &bytes), -ENOENT);
}

static void test_what_a_process_runs_goes_with_its_process(void **state)
{
        struct fixture *fixture = *state;
        struct store_process process = { .pid = 7 };
        uint64_t mark = 0;
        uint32_t id;

        reopen(fixture, "boot");
        id = process.instance = make_instance(fixture, "train").id;
        assert_int_equal(store_put_process(fixture->store, &process), 0);
        assert_int_equal(store_get_program(fixture->store, id, 7, &mark), -ENOENT);
        assert_int_equal(store_put_program(fixture->store, id, 7, UINT64_MAX), 0);
        assert_int_equal(store_get_program(fixture->store, id, 7, &mark), 0);
        assert_int_equal(mark, UINT64_MAX);
        assert_int_equal(store_remove_process(fixture->store, id, 7), 0);
        assert_int_equal(store_get_program(fixture->store, id, 7, &mark), -ENOENT);
}

static void test_another_boot_forgets_processes_and_transient_instances(void **state)
{
        struct fixture *fixture = *state;
        struct store_process process = { .pid = 7 };
        struct store_instance brief = { .name = "brief", .uuid = "b", .is_transient = true }, read;
        int n = 0;

        reopen(fixture, "boot");
        process.instance = make_instance(fixture, "kept").id;
        assert_int_equal(store_put_process(fixture->store, &process), 0);
        assert_int_equal(store_add_instance(fixture->store, &brief), 0);
        reopen(fixture, "another boot");
        assert_int_equal(store_each_process(fixture->store, process.instance, count_process, &n),
                         0);
        assert_int_equal(n, 0);
        assert_int_equal(store_each_instance(fixture->store, count_instance, &n), 0);
        assert_int_equal(n, 1);
        assert_int_equal(store_each_instance(fixture->store, copy_instance, &read), 0);
        assert_int_equal(read.state, STATE_IDLE);
}

static void test_what_was_not_committed_has_not_happened(void **state)
{
        struct fixture *fixture = *state;
        int n = 0;

        reopen(fixture, "boot");
        assert_int_equal(store_begin(fixture->store), 0);
        make_instance(fixture, "train");
        reopen(fixture, "boot");
        assert_int_equal(store_each_instance(fixture->store, count_instance, &n), 0);
        assert_int_equal(n, 0);
}

static void test_each_write_can_be_made_to_fail(void **state)
{
        struct fixture *fixture = *state;
        struct store_instance instance;
        int n = 0;

        reopen(fixture, "boot");
        instance = make_instance(fixture, "train");
        arm("1+");
        assert_int_equal(store_set_instance(fixture->store, instance.id, STATE_IDLE, "GPU-1"),
                         -ENOSPC);
        assert_int_equal(store_begin(fixture->store), -ENOSPC);
        assert_int_equal(store_each_instance(fixture->store, count_instance, &n), 0);
        assert_int_equal(n, 1);
        arm("2"); /* the commit */
        assert_int_equal(store_begin(fixture->store), 0);
        assert_int_equal(store_commit(fixture->store), -ENOSPC);
        assert_int_equal(store_begin(fixture->store), 0);
        assert_int_equal(store_commit(fixture->store), 0);
}

static void test_a_memory_is_replaced_as_a_whole_or_not_at_all(void **state)
{
        const struct store_allocation allocation = { 4096, 4096, 0 };
        const struct store_extent old = { 1, 0, 4096, 1 }, new = { 2, 0, 4096, 2 };
        struct fixture *fixture = *state;
        struct store_process process = { .pid = 7 };
        struct store_allocation *allocations;
        struct store_extent *extents;
        size_t n_allocations, n_extents;

        reopen(fixture, "boot");
        process.instance = make_instance(fixture, "train").id;
        assert_int_equal(store_put_process(fixture->store, &process), 0);
        assert_int_equal(store_put_memory(fixture->store, process.instance, 7,
                                          &(struct store_memory){ &allocation, 1, &old, 1 }),
                         0);
        for (int i = 1; i <= 6; i++) {
                char text[8];

                (void)snprintf(text, sizeof(text), "%d", i);
                arm(text);
                assert_int_equal(
                        store_put_memory(fixture->store, process.instance, 7,
                                         &(struct store_memory){ &allocation, 1, &new, 1 }),
                        -ENOSPC);
                assert_int_equal(store_get_memory(fixture->store, process.instance, 7, &allocations,
                                                  &n_allocations, &extents, &n_extents),
                                 0);
                assert_int_equal(n_allocations, 1);
                assert_int_equal(n_extents, 1);
                assert_int_equal(extents[0].slab, 1);
                free(allocations);
                free(extents);
        }
}

static void test_only_what_must_survive_the_machine_waits_for_the_disk(void **state)
{
        struct fixture *fixture = *state;
        struct store_instance instance;

        reopen(fixture, "boot");
        instance = make_instance(fixture, "train");
        n_waits = 0;
        assert_int_equal(store_set_instance(fixture->store, instance.id, STATE_IDLE, "GPU-1"), 0);
        assert_int_equal(store_begin(fixture->store), 0);
        make_instance(fixture, "passing");
        assert_int_equal(store_commit(fixture->store), 0);
        assert_int_equal(n_waits, 0);
        assert_int_equal(store_begin_durable(fixture->store), 0);
        make_instance(fixture, "lasting");
        assert_int_equal(n_waits, 0);
        assert_int_equal(store_commit(fixture->store), 0);
        assert_true(n_waits > 0);
        n_waits = 0;
        assert_int_equal(store_begin_durable(fixture->store), 0);
        store_rollback(fixture->store);
        assert_int_equal(store_set_instance(fixture->store, instance.id, STATE_IDLE, "GPU-2"), 0);
        assert_int_equal(n_waits, 0);
}

static void test_a_second_store_is_refused(void **state)
{
        struct fixture *fixture = *state;
        struct failure failure = { 0 };
        struct store *second;

        reopen(fixture, "boot");
        assert_int_equal(store_open(&second, fixture->path, "boot", &failure), -EBUSY);
        assert_non_null(strstr(failure.message, "locked"));
}

static void test_a_file_that_is_no_database_is_refused_and_kept(void **state)
{
        struct fixture *fixture = *state;
        struct failure failure = { 0 };
        char text[16] = "";
        int fd = open(fixture->path, O_RDWR | O_CLOEXEC);

        assert_int_equal(write(fd, "precious things", 15), 15);
        assert_true(store_open(&fixture->store, fixture->path, "boot", &failure) < 0);
        assert_int_equal(pread(fd, text, 15, 0), 15);
        assert_string_equal(text, "precious things");
        fd_close(fd);
}

static int collect_setting(const char *name, uint32_t instance, const char *value, void *userdata)
{
        char *text = userdata;

        sprintf(text + strlen(text), "%s/%u=%s;", name, instance, value);
        return 0;
}

static void check_settings(struct fixture *fixture, const char *wanted)
{
        char text[256] = "";

        assert_int_equal(store_each_setting(fixture->store, collect_setting, text), 0);
        assert_string_equal(text, wanted);
}

static void test_settings_last_as_long_as_what_they_belong_to(void **state)
{
        struct fixture *fixture = *state;
        struct store_instance instance;

        reopen(fixture, "boot-1");
        instance = make_instance(fixture, "train");
        assert_int_equal(store_put_setting(fixture->store, "capacity", instance.id, "50"), 0);
        assert_int_equal(store_put_setting(fixture->store, "policy", 0, "2"), 0);
        assert_int_equal(store_put_setting(fixture->store, "policy", 0, "3"), 0);
        check_settings(fixture, "capacity/1=50;policy/0=3;");
        reopen(fixture, "boot-1");
        check_settings(fixture, "capacity/1=50;policy/0=3;");
        reopen(fixture, "boot-2");
        check_settings(fixture, "capacity/1=50;");
        assert_int_equal(store_remove_instance(fixture->store, instance.id), 0);
        check_settings(fixture, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* Events. */

static void add_events(struct fixture *fixture, uid_t owner, const char *name, size_t n)
{
        struct store_event *events = calloc(n, sizeof(*events));

        assert_non_null(events);
        for (size_t i = 0; i < n; i++) {
                events[i] = (struct store_event){ .owner = owner, .time_ms = i, .pid = (pid_t)i };
                (void)snprintf(events[i].name, sizeof(events[i].name), "%s", name);
                (void)snprintf(events[i].uuid, sizeof(events[i].uuid), "%s-uuid", name);
        }
        assert_int_equal(store_add_events(fixture->store, events, n), 0);
        free(events);
}

struct seen {
        size_t n;
        uint64_t last_id;
        pid_t first_pid;
};

static int see(const struct store_event *event, void *userdata)
{
        struct seen *seen = userdata;

        assert_true(event->id > seen->last_id);
        seen->last_id = event->id;
        if (seen->n++ == 0)
                seen->first_pid = event->pid;
        return 0;
}

static struct seen look(struct fixture *fixture, const char *uuid, int64_t owner, uint64_t after)
{
        const struct store_event_query query = {
                .uuid = uuid, .owner = owner, .after = after, .limit = 1000000
        };
        struct seen seen = { 0 };

        assert_int_equal(store_each_event(fixture->store, &query, see, &seen), 0);
        return seen;
}

static void test_events_of_an_owner_are_bounded_by_his_own(void **state)
{
        struct fixture *fixture = *state;
        struct seen seen;

        reopen(fixture, "boot");
        add_events(fixture, 7, "quiet", 3);
        for (int i = 0; i < 10; i++)
                add_events(fixture, 8, "noisy", STORE_EVENTS_MAX / 4);
        seen = look(fixture, NULL, 8, 0);
        assert_in_range(seen.n, STORE_EVENTS_MAX - 64, STORE_EVENTS_MAX);
        assert_int_equal(look(fixture, NULL, 7, 0).n, 3);
        assert_int_equal(look(fixture, NULL, STORE_ANY_OWNER, 0).n, seen.n + 3);
        assert_int_equal(look(fixture, "noisy-uuid", 7, 0).n, 0);
        assert_int_equal(look(fixture, "noisy-uuid", 8, seen.last_id - 2).n, 2);
        reopen(fixture, "another boot");
        assert_int_equal(look(fixture, "quiet-uuid", STORE_ANY_OWNER, 0).n, 3);
}

static void test_the_owner_that_was_quiet_for_longest_is_forgotten(void **state)
{
        struct fixture *fixture = *state;

        reopen(fixture, "boot");
        add_events(fixture, 1, "first", 2);
        add_events(fixture, 2, "second", 2);
        for (uid_t owner = 3; owner <= STORE_EVENT_OWNERS_MAX; owner++)
                add_events(fixture, owner, "other", 1);
        add_events(fixture, 1, "first", 1);
        add_events(fixture, STORE_EVENT_OWNERS_MAX + 1, "new", 1);
        assert_int_equal(look(fixture, NULL, 1, 0).n, 3);
        assert_int_equal(look(fixture, NULL, 2, 0).n, 0);
        assert_int_equal(look(fixture, NULL, STORE_ANY_OWNER, 0).n, STORE_EVENT_OWNERS_MAX + 2);
}

/* Who has many user numbers, as by subordinate ones, does not get rid of what root did. */
static void test_many_users_do_not_push_out_roots_events(void **state)
{
        struct fixture *fixture = *state;

        reopen(fixture, "boot");
        add_events(fixture, 0, "roots", 2);
        for (uid_t owner = 1; owner <= 2 * STORE_EVENT_OWNERS_MAX; owner++)
                add_events(fixture, owner, "other", 1);
        assert_int_equal(look(fixture, "roots-uuid", 0, 0).n, 2);
        assert_int_equal(look(fixture, NULL, STORE_EVENT_OWNERS_MAX, 0).n, 0);
        assert_int_equal(look(fixture, NULL, STORE_ANY_OWNER, 0).n, STORE_EVENT_OWNERS_MAX + 1);
}

static void test_a_name_is_that_of_the_last_vgpu_that_had_it(void **state)
{
        struct store_event events[] = {
                { .owner = 7, .name = "train", .uuid = "old" },
                { .owner = 7, .name = "train", .uuid = "new" },
                { .owner = 8, .name = "train", .uuid = "theirs" },
                { .owner = 7, .name = "other", .uuid = "new" },
        };
        struct fixture *fixture = *state;
        char uuid[STORE_UUID_MAX];

        reopen(fixture, "boot");
        assert_int_equal(store_add_events(fixture->store, events, 4), 0);
        assert_int_equal(store_find_event_vgpu(fixture->store, "train", 7, uuid), 0);
        assert_string_equal(uuid, "new");
        assert_int_equal(store_find_event_vgpu(fixture->store, "train", STORE_ANY_OWNER, uuid), 0);
        assert_string_equal(uuid, "theirs");
        assert_int_equal(store_find_event_vgpu(fixture->store, "old", 7, uuid), 0);
        assert_string_equal(uuid, "old");
        assert_int_equal(store_find_event_vgpu(fixture->store, "theirs", 7, uuid), -ENOENT);
        assert_int_equal(store_find_event_vgpu(fixture->store, "never", 7, uuid), -ENOENT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_an_instance_is_read_as_it_was_written),
                TEST(test_a_file_that_cannot_grow_is_not_called_damaged),
                TEST(test_an_id_is_never_used_again),
                TEST(test_addresses_and_extents_keep_their_order),
                TEST(test_a_database_of_the_first_version_is_brought_up_to_date),
                TEST(test_a_store_of_each_release_is_opened),
                TEST(test_the_parts_of_an_instance_have_ids_of_their_own),
                TEST(test_what_belongs_to_an_instance_goes_with_it),
                TEST(test_how_large_a_context_is_goes_with_its_process),
                TEST(test_what_a_process_runs_goes_with_its_process),
                TEST(test_another_boot_forgets_processes_and_transient_instances),
                TEST(test_what_was_not_committed_has_not_happened),
                TEST(test_settings_last_as_long_as_what_they_belong_to),
                TEST(test_each_write_can_be_made_to_fail),
                TEST(test_a_memory_is_replaced_as_a_whole_or_not_at_all),
                TEST(test_only_what_must_survive_the_machine_waits_for_the_disk),
                TEST(test_a_second_store_is_refused),
                TEST(test_a_file_that_is_no_database_is_refused_and_kept),
                TEST(test_events_of_an_owner_are_bounded_by_his_own),
                TEST(test_the_owner_that_was_quiet_for_longest_is_forgotten),
                TEST(test_many_users_do_not_push_out_roots_events),
                TEST(test_a_name_is_that_of_the_last_vgpu_that_had_it),
        };
        int failed;

        if (!mkdtemp(directory) || setenv("OPENVGPU_FAULT_DIR", directory, 1) < 0)
                return 1;
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        (void)rmdir(directory);
        return failed;
}
