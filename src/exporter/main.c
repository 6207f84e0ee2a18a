/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu-exporter: what vgpud knows, as metrics for Prometheus. A process of its own, which only asks: its
 * death harms nothing, and a vgpud that is away or stopped costs it nothing but its answers.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "exporter/host-name.h"
#include "exporter/listen.h"
#include "exporter/live.h"
#include "exporter/scrape.h"
#include "exporter/server.h"
#include "exporter/tls.h"

/* How often connections are looked at, while there are any. */
#define SWEEP_MS 1000

#define NAME_MAX_      256
#define HOST_NAME_ROOM 65

enum exit_code { EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct options {
        const char *listen;            /* NULL: on what was given to us, or the default */
        const char *certificate, *key; /* files; NULL: no TLS */
        struct host_names names;
        struct metrics_options metrics;
        unsigned int rate; /* of the page */
};

DEFINE_CLEANUP(struct scrape *, scrape_free);
DEFINE_CLEANUP(struct server *, server_free);

static const char help[] =
        "usage: vgpu-exporter [--listen WHERE] [--host NAME]... [--processes] [--names LIST]\n"
        "                     [--tls-certificate FILE --tls-key FILE] [--updates N]\n"
        "\n"
        "Serves what vgpud knows of GPUs, vGPUs and operations as metrics for Prometheus,\n"
        "at the path /metrics, and as a live page for a browser at /.\n"
        "\n"
        "  --listen WHERE  ADDRESS:PORT, [ADDRESS]:PORT or unix:/PATH\n"
        "                  (default: " LISTEN_DEFAULT ", for programs on this machine only)\n"
        "  --host NAME     another name of this server; requests may call it by its address,\n"
        "                  localhost, the host's name and those given so\n"
        "  --tls-certificate FILE, --tls-key FILE\n"
        "                  serve HTTPS with these (PEM); no others may read the key\n"
        "  --processes     metrics of each process too, with labels for its number and name\n"
        "  --updates N     tell the page what has changed N times a second (1 to 10, default 4)\n"
        "  --names LIST    other names besides: dcgm, hami, or dcgm,hami\n"
        "  --help          show this help\n"
        "  --version       show the version\n"
        "\n"
        "OPENVGPU_RUN names vgpud's run directory. See man vgpu-exporter.\n";

static int complain(const char *what, const char *about)
{
        fprintf(stderr, "vgpu-exporter: %s%s\nTry 'vgpu-exporter --help'.\n", what, about);
        return EXIT_USAGE;
}

static int parse_names(const char *list, struct metrics_options *options)
{
        for (const char *at = list; *at;) {
                size_t n = strcspn(at, ",");

                if (n == 4 && strncmp(at, "dcgm", n) == 0)
                        options->has_dcgm = true;
                else if (n == 4 && strncmp(at, "hami", n) == 0)
                        options->has_hami = true;
                else
                        return complain("--names takes dcgm and hami, not ", list);
                at += n + (at[n] == ',');
        }
        return *list ? 0 : complain("--names takes dcgm and hami, not nothing", "");
}

static int parse_rate(const char *value, unsigned int *rate)
{
        char *end;
        unsigned long n = strtoul(value, &end, 10);

        if (*value < '0' || *value > '9' || *end || n < 1 || n > LIVE_RATE_MAX)
                return complain("--updates takes a number from 1 to 10, not ", value);
        *rate = (unsigned int)n;
        return 0;
}

static int add_host_name(struct host_names *names, const char *name)
{
        if (!host_name_is_name(name))
                return complain(
                        "--host takes a name without a port, such as gpu01.example.org, not ",
                        *name ? name : "nothing");
        if (names->n == HOST_NAMES_MAX)
                return complain("too many --host, at ", name);
        names->names[names->n++] = name;
        return 0;
}

/* -1: go on; else exit with that. */
static int set_option(struct options *options, int option, const char *value)
{
        switch (option) {
        case 'l':
                options->listen = value;
                return -1;
        case 'c':
                options->certificate = value;
                return -1;
        case 'k':
                options->key = value;
                return -1;
        case 'p':
                options->metrics.has_processes = true;
                return -1;
        case 'H':
                return add_host_name(&options->names, value) == 0 ? -1 : EXIT_USAGE;
        case 'u':
                return parse_rate(value, &options->rate) == 0 ? -1 : EXIT_USAGE;
        case 'n':
                return parse_names(value, &options->metrics) == 0 ? -1 : EXIT_USAGE;
        case 'h':
                fputs(help, stdout);
                return 0;
        case 'V':
                printf("vgpu-exporter %s\n", OPENVGPU_VERSION);
                return 0;
        default: /* it was told already what is wrong */
                fputs("Try 'vgpu-exporter --help'.\n", stderr);
                return EXIT_USAGE;
        }
}

/* -1: go on; else exit with that. */
static int parse(int argc, char **argv, struct options *options)
{
        static const struct option table[] = {
                { "listen", required_argument, NULL, 'l' },
                { "host", required_argument, NULL, 'H' },
                { "tls-certificate", required_argument, NULL, 'c' },
                { "tls-key", required_argument, NULL, 'k' },
                { "processes", no_argument, NULL, 'p' },
                { "updates", required_argument, NULL, 'u' },
                { "names", required_argument, NULL, 'n' },
                { "help", no_argument, NULL, 'h' },
                { "version", no_argument, NULL, 'V' },
                { NULL, 0, NULL, 0 },
        };
        int option, r = -1;

        while (r < 0 && (option = getopt_long(argc, argv, "h", table, NULL)) != -1)
                r = set_option(options, option, optarg);
        if (r >= 0)
                return r;
        if (!options->certificate != !options->key)
                return complain("--tls-certificate and --tls-key go together", "");
        return optind == argc ? -1 : complain("takes no words: ", argv[optind]);
}

/* Before there are threads: the descriptor gets what would end us. */
static int open_signals(void)
{
        sigset_t signals;

        (void)signal(SIGPIPE, SIG_IGN);
        (void)sigemptyset(&signals);
        (void)sigaddset(&signals, SIGTERM);
        (void)sigaddset(&signals, SIGINT);
        (void)sigaddset(&signals, SIGHUP);
        (void)sigprocmask(SIG_BLOCK, &signals, NULL);
        return signalfd(-1, &signals, SFD_CLOEXEC);
}

/* Until a signal. While nobody is connected nothing happens here. */
static void wait_for_end(struct server *server, int signals)
{
        struct pollfd fds[] = { { .fd = signals, .events = POLLIN },
                                { .fd = server_get_wake(server), .events = POLLIN } };
        unsigned int n = 0;

        do {
                if (poll(fds, 2, n > 0 ? SWEEP_MS : -1) < 0 && errno != EINTR)
                        return;
                n = server_sweep(server);
        } while (!fds[0].revents);
}

static int fail(const char *what, const char *why)
{
        fprintf(stderr, "vgpu-exporter: %s: %s\n", what, why);
        return EXIT_FAILED;
}

/* From here on its descriptor is the server's. */
static int start(struct server **ret_server, int fd, const struct server_options *how)
{
        int r = server_new(ret_server, fd, how);

        if (r == -ENOTSUP)
                return fail("cannot serve", "libmicrohttpd has no TLS here");
        if (r == -EIO && how->tls)
                return fail("cannot serve", "the certificate and the key are no pair, or damaged");
        return r < 0 ? fail("cannot serve", strerrordesc_np(-r)) : 0;
}

/* The socket, or - EXIT_...; *@ret_is_given: it is there also after us. */
static int open_socket(const struct options *options, bool *ret_is_given)
{
        const char *where = options->listen ? options->listen : LISTEN_DEFAULT;
        char why[NAME_MAX_];
        int fd = listen_take_given(why, sizeof(why));

        *ret_is_given = fd >= 0;
        if (fd == -EINVAL)
                return -fail("cannot use what it was given", why);
        if (fd >= 0 && options->listen)
                return -complain(
                        "a socket was given, so --listen says nothing: leave it out, and set "
                        "ListenStream= of vgpu-exporter.socket",
                        "");
        if (fd >= 0)
                return fd;
        fd = listen_open(where, why, sizeof(why));
        if (fd >= 0)
                return fd;
        fprintf(stderr, "vgpu-exporter: cannot listen on %s: %s\n", where, why);
        return fd == -EINVAL || fd == -ENAMETOOLONG ? -EXIT_USAGE : -EXIT_FAILED;
}

static void say_where(const char *name, bool is_private)
{
        if (strncmp(name, "unix:", 5) == 0)
                printf("serving %s\nmetrics are at /metrics, the page at /\n", name);
        else
                printf("serving %s/metrics\nthe page is at %s/\n", name, name);
        (void)fflush(stdout);
        if (!is_private)
                fprintf(stderr,
                        "vgpu-exporter: other machines may reach this address, and nothing is "
                        "encrypted: put a firewall or a proxy in front of it, or add "
                        "--tls-certificate and --tls-key\n");
}

static int serve(const struct options *options, const struct tls *tls)
{
        CLEANUP(scrape_freep) struct scrape *scrape = NULL;
        CLEANUP(server_freep) struct server *server = NULL;
        CLEANUP(fd_closep) int signals = open_signals();
        struct server_options how = { .names = &options->names, .tls = tls, .rate = options->rate };
        char name[NAME_MAX_];
        bool is_path, is_given, is_local;
        int fd, r;

        fd = open_socket(options, &is_given);
        if (fd < 0)
                return -fd;
        (void)listen_name(fd, tls ? "https" : "http", name, sizeof(name));
        is_path = strncmp(name, "unix:", 5) == 0;
        is_local = listen_is_local(fd);
        r = scrape_new(&scrape, &options->metrics);
        if (r < 0) {
                fd_close(fd);
                return fail("cannot start", strerrordesc_np(-r));
        }
        how.scrape = scrape;
        if (is_path)
                how.names = NULL;
        r = start(&server, fd, &how);
        if (r != 0)
                return r;
        say_where(name, tls || is_local);
        wait_for_end(server, signals);
        if (is_path && !is_given)
                (void)unlink(name + 5);
        return 0;
}

static int load_and_serve(const struct options *options)
{
        char why[TLS_WHY_MAX];
        struct tls tls;
        int r;

        if (!options->certificate)
                return serve(options, NULL);
        if (tls_load(&tls, options->certificate, options->key, why, sizeof(why)) < 0)
                return fail("cannot serve HTTPS", why);
        r = serve(options, &tls);
        tls_deinit(&tls);
        return r;
}

int main(int argc, char **argv)
{
        struct options options = { .rate = LIVE_RATE_DEFAULT };
        char own_name[HOST_NAME_ROOM] = "";
        int r;

        (void)gethostname(own_name, sizeof(own_name) - 1);
        options.names.names[options.names.n++] = own_name;
        r = parse(argc, argv, &options);
        return r >= 0 ? r : load_and_serve(&options);
}
