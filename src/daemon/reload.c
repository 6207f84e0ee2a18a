/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/reload.h"

#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "base/clock.h"
#include "daemon/log.h"

/* What is read once, at the start. */
static const struct {
        const char *key;
        size_t offset, size;
} fixed[] = {
#define FIXED(key, member)                                                                      \
        {                                                                                       \
                key, offsetof(struct options, member), sizeof(((struct options *)NULL)->member) \
        }
        FIXED("scenario", scenario_path),
        FIXED("driver", driver_path),
        FIXED("run-dir", run_directory),
        FIXED("state-dir", state_directory),
        FIXED("pool-limit", pool_limit),
        FIXED("slab-size", slab_size),
        FIXED("spill", spill_directory),
        FIXED("spill-limit", spill_limit),
        FIXED("keep-usage", keep_usage_days),
        FIXED("turns", has_gate_turns),
        FIXED("overcommit", overcommit),
        FIXED("pin-ahead", pin_ahead),
        FIXED("leave-out", leave_out),
        FIXED("group", group),
        FIXED("watchers", watchers),
        FIXED("stewards", stewards),
        FIXED("simulate", simulate_text),
        FIXED("cdi", cdi_path),
        FIXED("cdi-new", cdi_new),
        FIXED("cdi-new", cdi_new_share),
#undef FIXED
};

static void tell_fixed(const struct options *options, const struct options *fresh)
{
        for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
                if (memcmp((const char *)options + fixed[i].offset,
                           (const char *)fresh + fixed[i].offset, fixed[i].size) != 0)
                        log_event(LOG_LEVEL_WARNING, "a changed setting waits for the next start",
                                  "key=%s", fixed[i].key);
}

bool reload_options(struct options *options)
{
        struct options fresh;

        if (options_parse(&fresh, options->argc, options->argv) != OPTIONS_RUN) {
                log_event(LOG_LEVEL_ERROR, "the configuration is wrong: nothing is changed",
                          "file=%s", options->config_path);
                return false;
        }
        tell_fixed(options, &fresh);
        options->user_vgpus = fresh.user_vgpus;
        options->user_frame_buffer = fresh.user_frame_buffer;
        options->swap_percent = fresh.swap_percent;
        options->clean_copies = fresh.clean_copies;
        options->refresh_rate = fresh.refresh_rate;
        options->log_level = fresh.log_level;
        options->is_log_json = fresh.is_log_json;
        log_init(options->log_level, options->is_log_json);
        log_event(LOG_LEVEL_NOTICE, "the configuration was read again",
                  "file=%s user_vgpus=%" PRIu32 " user_frame_buffer=%" PRIu64, options->config_path,
                  options->user_vgpus, options->user_frame_buffer);
        return true;
}

static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        struct reload *reload = userdata;

        (void)source;
        (void)info;
        if (!*reload->is_ready) { /* READY=1 would end a start that still goes on */
                (void)reload_options(reload->options);
                return 0;
        }
        (void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
                         clock_now(CLOCK_MONOTONIC) / 1000);
        (void)reload_options(reload->options);
        (void)sd_notify(0, "READY=1");
        return 0;
}

void reload_block(const struct options *options)
{
        sigset_t signals;

        if (!options->config_path[0])
                return;
        sigemptyset(&signals);
        sigaddset(&signals, SIGHUP);
        sigprocmask(SIG_BLOCK, &signals, NULL);
}

int reload_watch(sd_event *event, struct reload *reload)
{
        if (!reload->options->config_path[0])
                return 0;
        return sd_event_add_signal(event, NULL, SIGHUP, on_hangup, reload);
}
