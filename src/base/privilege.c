/* SPDX-License-Identifier: Apache-2.0 */
#include "base/privilege.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(capability) (1ull << (capability))

/* Other users' processes: their descriptors, what /proc says of them, the driver's checkpoint of them. */
#define OTHERS (BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_KILL))

/*
 * Memory that is pinned, descriptors, and turns. NVIDIA's driver wanted nothing else on two H200s (580).
 * Its module is loaded and its device nodes are made by whoever starts vgpud: see the unit.
 */
#define DRIVER                                                                            \
        (BIT(CAP_IPC_LOCK) | BIT(CAP_SYS_RESOURCE) | BIT(CAP_SYS_NICE) | BIT(CAP_CHOWN) | \
         BIT(CAP_FOWNER))

/* A program has at most what the one that starts it has: vgpud's is the sum. */
static const struct {
        uint64_t keeps;
        bool is_closed; /* it gets no right back from a file: PR_SET_NO_NEW_PRIVS */
} programs[PRIVILEGE_PROGRAMS] = {
        /* CHOWN, FOWNER: --group; SETPCAP: for those that it starts to give up theirs */
        [PRIVILEGE_MANAGER] = { OTHERS | DRIVER | BIT(CAP_SETPCAP), false },
        [PRIVILEGE_MOVER] = { OTHERS | DRIVER, false },
        /*
         * To let on whom a dead vgpud held off a device (channels/resource-manager.h). SYS_RESOURCE: clients
         * that do not receive the slabs that vgpud has sent them would use up what root may have under
         * way, and the keeper could give the next vgpud nothing.
         */
        [PRIVILEGE_KEEPER] = { BIT(CAP_SYS_PTRACE) | BIT(CAP_SYS_NICE) | BIT(CAP_SYS_RESOURCE),
                               true },
        [PRIVILEGE_SAMPLER] = { 0, true },
};

/* Needs CAP_SETPCAP, so it comes first. */
static void bound(uint64_t keeps)
{
        for (unsigned long one = 0; prctl(PR_CAPBSET_READ, one) >= 0; one++)
                if (!(keeps & BIT(one)))
                        (void)prctl(PR_CAPBSET_DROP, one);
}

int privilege_keep(enum privilege_program program)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
        uint64_t keeps = programs[program].keeps;

        if (programs[program].is_closed)
                (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (syscall(SYS_capget, &header, sets) < 0)
                return -errno;
        bound(keeps);
        (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
                sets[i].permitted &= (uint32_t)(keeps >> (32 * i));
                sets[i].effective &= sets[i].permitted;
                sets[i].inheritable = 0;
        }
        return syscall(SYS_capset, &header, sets) < 0 ? -errno : 0;
}
