/* npu-smi: what DCMI says, in the words of the real one, as far as others read them.
 *
 *   info [-m]                                a table of cards and processes; which chips there are
 *   info -t board -i CARD [-c CHIP]          versions; names and die of a chip
 *   info -t health|device-share -i CARD -c CHIP
 *   set -t device-share -i CARD -c CHIP -d 0|1    asks whether that is meant, and reads the answer
 */
#include "cann/dcmi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { USAGE = 2 };

static void print_memory(int card, char ddr[32], char hbm[32]) {
    struct dcmi_hbm_info high;
    struct dcmi_get_memory_info_stru low;
    strcpy(ddr, "NA");
    strcpy(hbm, "NA");
    if (dcmi_get_device_memory_info_v3(card, 0, &low) == 0)
        snprintf(ddr, 32, "%llu / %llu", low.memory_size - low.memory_available, low.memory_size);
    if (dcmi_get_device_hbm_info(card, 0, &high) == 0)
        snprintf(hbm, 32, "%llu / %llu", high.memory_usage, high.memory_size);
}

static void print_card(int card) {
    struct dcmi_chip_info chip;
    unsigned health = 1, rate = 0;
    char ddr[32], hbm[32];
    if (dcmi_get_device_chip_info(card, 0, &chip))
        return;
    dcmi_get_device_health(card, 0, &health);
    dcmi_get_device_utilization_rate(card, 0, 2, &rate);
    print_memory(card, ddr, hbm);
    printf("| %-4d | %-10s | %-7s | %-9u | %-18s | %-18s |\n", card, (char *)chip.chip_name, health ? "Alarm" : "OK",
           rate, ddr, hbm);
}

static void print_processes(int card) {
    struct dcmi_proc_mem_info processes[32];
    int count;
    if (dcmi_get_device_resource_info(card, 0, processes, &count))
        return;
    for (int i = 0; i < count; i++)
        printf("| %-4d | %-10d | %-18lu |\n", card, processes[i].proc_id, processes[i].proc_mem_usage >> 20);
}

static int print_table(const int *cards, int count) {
    printf("| %-4s | %-10s | %-7s | %-9s | %-18s | %-18s |\n", "NPU", "Name", "Health", "AICore(%)", "Memory-Usage(MB)",
           "HBM-Usage(MB)");
    for (int i = 0; i < count; i++)
        print_card(cards[i]);
    printf("| %-4s | %-10s | %-18s |\n", "NPU", "Process id", "Memory(MB)");
    for (int i = 0; i < count; i++)
        print_processes(cards[i]);
    return 0;
}

/* Each card has a chip and a microcontroller, which has no logic id. */
static int print_map(const int *cards, int count) {
    const char *row = "\t%-30s %-30s %-30s %s %s\n";
    printf(row, "NPU ID", "Chip ID", "Chip Logic ID", "Chip Name", "");
    for (int i = 0; i < count; i++) {
        struct dcmi_chip_info chip;
        char card[16], logic[16];
        int id;
        if (dcmi_get_device_chip_info(cards[i], 0, &chip) || dcmi_get_device_logic_id(&id, cards[i], 0))
            continue;
        snprintf(card, sizeof card, "%d", cards[i]);
        snprintf(logic, sizeof logic, "%d", id);
        printf(row, card, "0", logic, (char *)chip.chip_type, (char *)chip.chip_name);
        printf(row, card, "1", "-", "Mcu", "");
    }
    return 0;
}

static void print_field(const char *name, const char *value) {
    printf("\t%-30s : %s\n", name, value);
}

static int fail(int code) {
    print_field("Status", "FAIL");
    fprintf(stderr, "npu-smi: DCMI answered %d\n", code);
    return 1;
}

static int print_versions(int card) {
    char version[32];
    int count;
    int code = dcmi_get_device_num_in_card(card, &count);
    if (!code)
        code = dcmi_get_driver_version(version, sizeof version);
    if (code)
        return fail(code);
    print_field("Software Version", version);
    print_field("Firmware Version", "7.7.0");
    return 0;
}

static int print_board(int card, int chip) {
    struct dcmi_chip_info info;
    struct dcmi_die_id die;
    char text[64];
    int code = dcmi_get_device_chip_info(card, chip, &info);
    if (!code)
        code = dcmi_get_device_die_v2(card, chip, VDIE, &die);
    if (code)
        return fail(code);
    print_field("Chip Type", (char *)info.chip_type);
    print_field("Chip Name", (char *)info.chip_name);
    snprintf(text, sizeof text, "%08X %08X %08X %08X %08X", die.soc_die[0], die.soc_die[1], die.soc_die[2],
             die.soc_die[3], die.soc_die[4]);
    print_field("VDie ID", text);
    return 0;
}

static int print_health(int card, int chip) {
    unsigned health;
    int code = dcmi_get_device_health(card, chip, &health);
    if (code)
        return fail(code);
    print_field("Health Status", health ? "Alarm" : "OK");
    return 0;
}

static int print_share(int card, int chip) {
    int shared;
    int code = dcmi_get_device_share_enable(card, chip, &shared);
    if (code)
        return fail(code);
    print_field("Device-share Status", shared ? "True" : "False");
    return 0;
}

static int set_share(int card, int chip, int enable) {
    char answer[8] = "";
    printf("There are security risks when opening device sharing. Are you sure?(Y/N)\n");
    if (scanf("%7s", answer) != 1 || (strcmp(answer, "Y") != 0 && strcmp(answer, "y") != 0))
        return 1;
    int code = dcmi_set_device_share_enable(card, chip, enable);
    if (code)
        return fail(code);
    print_field("Status", "OK");
    return print_share(card, chip);
}

struct options {
    const char *verb, *type;
    int card, chip, value;
    bool map;
};

static bool parse(int argc, char **argv, struct options *options) {
    *options = (struct options){.verb = argc > 1 ? argv[1] : "info", .type = "", .card = -1, .chip = -1, .value = -1};
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "-m") == 0) {
            options->map = true;
            continue;
        }
        if (i + 1 == argc || strlen(argv[i]) != 2 || argv[i][0] != '-')
            return false;
        const char *value = argv[++i];
        switch (argv[i - 1][1]) {
        case 't':
            options->type = value;
            break;
        case 'i':
            options->card = atoi(value);
            break;
        case 'c':
            options->chip = atoi(value);
            break;
        case 'd':
            options->value = atoi(value);
            break;
        default:
            return false;
        }
    }
    return true;
}

static int about_one(const struct options *options) {
    bool info = strcmp(options->verb, "info") == 0, share = strcmp(options->type, "device-share") == 0;
    if (info && strcmp(options->type, "board") == 0)
        return options->chip < 0 ? print_versions(options->card) : print_board(options->card, options->chip);
    if (info && strcmp(options->type, "health") == 0)
        return print_health(options->card, options->chip);
    if (info && share)
        return print_share(options->card, options->chip);
    if (!info && share && options->value >= 0)
        return set_share(options->card, options->chip, options->value);
    return USAGE;
}

int main(int argc, char **argv) {
    int cards[64], count;
    struct options options;
    int code = USAGE;
    if (parse(argc, argv, &options) && (strcmp(options.verb, "info") == 0 || strcmp(options.verb, "set") == 0)) {
        if (dcmi_init() || dcmi_get_card_list(&count, cards, 64)) {
            fprintf(stderr, "npu-smi: DCMI cannot be reached\n");
            return 1;
        }
        if (*options.type)
            code = about_one(&options);
        else if (strcmp(options.verb, "info") == 0)
            code = options.map ? print_map(cards, count) : print_table(cards, count);
    }
    if (code == USAGE)
        fprintf(stderr, "usage: npu-smi info [-m | -t board|health|device-share -i CARD [-c CHIP]]\n"
                        "       npu-smi set -t device-share -i CARD -c CHIP -d 0|1\n");
    return code;
}
