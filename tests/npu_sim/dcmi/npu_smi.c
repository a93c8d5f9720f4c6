/* npu-smi info: a line per card, a line per process, as DCMI tells. */
#include "cann/dcmi.h"

#include <stdio.h>
#include <string.h>

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

int main(int argc, char **argv) {
    int cards[64], count;
    if (argc > 1 && strcmp(argv[1], "info") != 0) {
        fprintf(stderr, "usage: npu-smi info\n");
        return 2;
    }
    if (dcmi_init() || dcmi_get_card_list(&count, cards, 64)) {
        fprintf(stderr, "npu-smi: DCMI cannot be reached\n");
        return 1;
    }
    printf("| %-4s | %-10s | %-7s | %-9s | %-18s | %-18s |\n", "NPU", "Name", "Health", "AICore(%)", "Memory-Usage(MB)",
           "HBM-Usage(MB)");
    for (int i = 0; i < count; i++)
        print_card(cards[i]);
    printf("| %-4s | %-10s | %-18s |\n", "NPU", "Process id", "Memory(MB)");
    for (int i = 0; i < count; i++)
        print_processes(cards[i]);
    return 0;
}
