/* SPDX-License-Identifier: Apache-2.0 */
/* Who has to go when there are too many. */
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/test.h"
#include "exporter/visits.h"

struct pair {
        int ours, theirs;
};

static int listener;
static struct sockaddr_in address = { .sin_family = AF_INET };
static struct visits *visits;

uint64_t __wrap_peer_get(int fd);
uint64_t __wrap_peer_get(int fd)
{
        struct sockaddr_storage room = { 0 };
        socklen_t size = sizeof(room);

        if (getpeername(fd, (struct sockaddr *)&room, &size) < 0 || room.ss_family != AF_INET)
                return 0;
        return ((struct sockaddr_in *)&room)->sin_addr.s_addr;
}

static int set_up(void **state)
{
        socklen_t size = sizeof(address);
        (void)state;

        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
        assert_int_equal(listen(listener, 1), 0);
        return visits_new(&visits);
}

static int tear_down(void **state)
{
        (void)state;
        fd_close(listener);
        visits = visits_free(visits);
        return 0;
}

/* From 127.0.0.@last. */
static struct pair arrive(unsigned int last)
{
        struct sockaddr_in from = { .sin_family = AF_INET };
        struct pair pair;

        from.sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~0xffu) | last);
        pair.theirs = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(pair.theirs, (struct sockaddr *)&from, sizeof(from)), 0);
        assert_int_equal(connect(pair.theirs, (struct sockaddr *)&address, sizeof(address)), 0);
        pair.ours = accept(listener, NULL, NULL);
        assert_true(pair.ours >= 0);
        visits_begin(visits, pair.ours);
        return pair;
}

static void leave(struct pair *pair)
{
        visits_end(visits, pair->ours);
        fd_close(pair->ours);
        fd_close(pair->theirs);
}

static bool was_sent_away(const struct pair *pair)
{
        struct pollfd pollfd = { .fd = pair->theirs, .events = POLLRDHUP };

        return poll(&pollfd, 1, 0) == 1;
}

static void arrive_all(struct pair *pairs, size_t n, unsigned int last)
{
        for (size_t i = 0; i < n; i++)
                pairs[i] = arrive(last);
}

static void leave_all(struct pair *pairs, size_t n)
{
        for (size_t i = 0; i < n; i++)
                leave(&pairs[i]);
        assert_int_equal(visits_sweep(visits), 0);
}

static void test_the_oldest_goes(void **state)
{
        struct pair pairs[VISITS_MAX + 3];
        (void)state;

        arrive_all(pairs, VISITS_MAX, 1);
        for (size_t i = 0; i < VISITS_MAX; i++)
                assert_false(was_sent_away(&pairs[i]));
        arrive_all(pairs + VISITS_MAX, 3, 1);
        for (size_t i = 0; i < VISITS_MAX + 3; i++)
                assert_int_equal(was_sent_away(&pairs[i]), i < 3);
        leave_all(pairs, VISITS_MAX + 3);
}

static void test_who_has_asked_and_who_is_exempt_go_last(void **state)
{
        struct pair pairs[VISITS_MAX + 2];
        (void)state;

        arrive_all(pairs, VISITS_MAX, 1);
        visits_exempt(visits, pairs[0].ours, true);
        for (size_t i = 1; i < VISITS_MAX - 1; i++)
                visits_note_request(visits, pairs[i].ours);
        pairs[VISITS_MAX] = arrive(1);
        assert_true(was_sent_away(&pairs[VISITS_MAX - 1]));
        visits_note_request(visits, pairs[VISITS_MAX].ours);
        pairs[VISITS_MAX + 1] = arrive(1);
        assert_true(was_sent_away(&pairs[1]));
        assert_false(was_sent_away(&pairs[0]));
        leave_all(pairs, VISITS_MAX + 2);
}

static void test_whoever_has_most_loses_one(void **state)
{
        struct pair pairs[VISITS_MAX + 8];
        (void)state;

        pairs[0] = arrive(2);
        arrive_all(pairs + 1, VISITS_MAX + 7, 1);
        assert_false(was_sent_away(&pairs[0]));
        for (size_t i = 1; i <= 8; i++)
                assert_true(was_sent_away(&pairs[i]));
        leave_all(pairs, VISITS_MAX + 8);
}

static void test_all_are_exempt(void **state)
{
        struct pair pairs[VISITS_MAX + 1];
        (void)state;

        arrive_all(pairs, VISITS_MAX, 1);
        for (size_t i = 0; i < VISITS_MAX; i++)
                visits_exempt(visits, pairs[i].ours, true);
        pairs[VISITS_MAX] = arrive(1);
        for (size_t i = 0; i <= VISITS_MAX; i++)
                assert_false(was_sent_away(&pairs[i]));
        visits_exempt(visits, pairs[7].ours, false);
        leave(&pairs[VISITS_MAX]);
        pairs[VISITS_MAX] = arrive(1);
        for (size_t i = 0; i <= VISITS_MAX; i++)
                assert_int_equal(was_sent_away(&pairs[i]), i == 7);
        leave_all(pairs, VISITS_MAX + 1);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_oldest_goes),
                cmocka_unit_test(test_who_has_asked_and_who_is_exempt_go_last),
                cmocka_unit_test(test_whoever_has_most_loses_one),
                cmocka_unit_test(test_all_are_exempt),
        };

        return cmocka_run_group_tests_name("exporter-visits", tests, set_up, tear_down);
}
