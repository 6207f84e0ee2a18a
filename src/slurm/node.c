/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openvgpu-slurm-node: what slurm.conf and gres.conf say of this node's vGPUs, asked of vgpud. As 'slurmd -C' does for the
 * rest. docs/slurm.md
 */
#include <ctype.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openvgpu/device.h>

#include "base/cleanup.h"

#define MIB       (1ull << 20)
#define GIB       (1ull << 30)
#define TIERS_MAX 32

DEFINE_CLEANUP(struct vgpu_client *, vgpu_client_free);
DEFINE_CLEANUP(struct vgpu_device_list *, vgpu_device_list_free);

static const char help[] =
        "Usage: openvgpu-slurm-node [OPTION]...\n"
        "Prints the line of slurm.conf that counts this node's GPU memory for vGPUs.\n"
        "\n"
        "  --tiers NAME,...   a type of the GRES for each, as partitions that preempt each other need\n"
        "  --gres-conf        print the lines of gres.conf instead\n"
        "  --node NAME        the node (default: the host's name up to the first dot)\n"
        "  --run-dir DIR      run directory of vgpud (default: $OPENVGPU_RUN, /run/openvgpu for root)\n"
        "  --help             show this and exit\n";

struct node {
        char name[256];
        char *tiers[TIERS_MAX];
        size_t n_tiers; /* 0: the GRES has no types */
        const char *run_directory;
        bool is_gres_conf;
        uint64_t memory; /* of the devices that have vGPUs */
        const struct vgpu_device_list *devices;
};

static int fail_usage(const char *what)
{
        fprintf(stderr, "openvgpu-slurm-node: %s\nhint: see 'openvgpu-slurm-node --help'\n", what);
        return 2;
}

/* Slurm knows powers of 1024, and no fractions. */
static const char *format_count(char text[32], uint64_t bytes)
{
        bool is_whole = bytes % GIB == 0;

        snprintf(text, 32, "%llu%c", (unsigned long long)(bytes / (is_whole ? GIB : MIB)),
                 is_whole ? 'G' : 'M');
        return text;
}

static int set_tiers(struct node *node, char *text)
{
        char *tier;

        while ((tier = strsep(&text, ","))) {
                if (!*tier || node->n_tiers == TIERS_MAX)
                        return fail_usage("--tiers wants names, with a comma between two");
                node->tiers[node->n_tiers++] = tier;
        }
        return 0;
}

static void set_name(struct node *node)
{
        (void)gethostname(node->name, sizeof(node->name) - 1);
        node->name[strcspn(node->name, ".")] = '\0';
}

/* -1: go on; else the exit status. */
static int parse(struct node *node, int argc, char **argv)
{
        static const struct option options[] = {
                { "tiers", required_argument, NULL, 't' },
                { "gres-conf", no_argument, NULL, 'g' },
                { "node", required_argument, NULL, 'n' },
                { "run-dir", required_argument, NULL, 'r' },
                { "help", no_argument, NULL, 'h' },
                { NULL, 0, NULL, 0 },
        };

        for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
                if (c == 't' && set_tiers(node, optarg) != 0)
                        return 2;
                else if (c == 'g')
                        node->is_gres_conf = true;
                else if (c == 'n')
                        snprintf(node->name, sizeof(node->name), "%s", optarg);
                else if (c == 'r')
                        node->run_directory = optarg;
                else if (c == 'h')
                        return fputs(help, stdout) < 0;
                else if (c == '?')
                        return fail_usage("what is that?");
        }
        return optind < argc ? fail_usage("there are only options") : -1;
}

static void print_feature(const char *name)
{
        putchar(',');
        for (; *name; name++)
                putchar(isalnum((unsigned char)*name) ? tolower((unsigned char)*name) : '_');
}

/* Of each model one. */
static void print_features(const struct node *node)
{
        const struct vgpu_device *const *device = node->devices->devices;

        printf(" Feature=vgpu");
        for (size_t i = 0; i < node->devices->n_devices; i++) {
                size_t j = 0;

                while (j < i &&
                       (device[j]->is_left_out || strcmp(device[i]->name, device[j]->name) != 0))
                        j++;
                if (!device[i]->is_left_out && j == i)
                        print_feature(device[i]->name);
        }
}

static void print_node(const struct node *node)
{
        char count[32];

        format_count(count, node->memory);
        printf("NodeName=%s Gres=", node->name);
        for (size_t i = 0; i < node->n_tiers; i++)
                printf("%svgpu:%s:%s", i ? "," : "", node->tiers[i], count);
        if (node->n_tiers == 0)
                printf("vgpu:%s", count);
        print_features(node);
        putchar('\n');
}

static void print_gres_conf(const struct node *node)
{
        char count[32];

        format_count(count, node->memory);
        for (size_t i = 0; i < node->n_tiers; i++)
                printf("NodeName=%s Name=vgpu Type=%s Count=%s\n", node->name, node->tiers[i],
                       count);
        if (node->n_tiers == 0)
                printf("NodeName=%s Name=vgpu Count=%s\n", node->name, count);
}

static int complain(const struct vgpu_client *client)
{
        const struct vgpu_error *error = vgpu_client_get_error(client);

        fprintf(stderr, "openvgpu-slurm-node: %s\n", error->message);
        if (error->hint[0])
                fprintf(stderr, "hint: %s\n", error->hint);
        return 1;
}

int main(int argc, char **argv)
{
        CLEANUP(vgpu_client_freep) struct vgpu_client *client = NULL;
        CLEANUP(vgpu_device_list_freep) struct vgpu_device_list *devices = NULL;
        struct node node = { 0 };
        int status;

        set_name(&node);
        status = parse(&node, argc, argv);
        if (status >= 0)
                return status;
        if (vgpu_client_new(&client, node.run_directory) < 0)
                return 1;
        if (vgpu_device_lookup_all(client, &devices) < 0)
                return complain(client);
        node.devices = devices;
        for (size_t i = 0; i < devices->n_devices; i++)
                if (!devices->devices[i]->is_left_out)
                        node.memory += devices->devices[i]->memory_total;
        if (node.is_gres_conf)
                print_gres_conf(&node);
        else
                print_node(&node);
        return fflush(stdout) == 0 ? 0 : 1;
}
