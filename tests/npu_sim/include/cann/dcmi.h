/* Management: libdcmi.so over libdrvdsmi_host.so. DCMI counts in MB, DSMI in KB. */
#ifndef CANN_DCMI_H
#define CANN_DCMI_H

#include <stdbool.h>
#include <stdint.h>

#define DCMI_INVALID_PARAMETER (-8001)
#define DCMI_DEVICE_NOT_EXIST  (-8012)
#define DCMI_NOT_SUPPORTED     (-8255)

struct dcmi_hbm_info {
    unsigned long long memory_size;
    unsigned int freq;
    unsigned long long memory_usage;
    int temp;
    unsigned int bandwith_util_rate;
};

struct dcmi_get_memory_info_stru {
    unsigned long long memory_size, memory_available;
    unsigned int freq;
    unsigned long hugepagesize, hugepages_total, hugepages_free;
    unsigned int utiliza;
    unsigned char reserve[60];
};

struct dcmi_memory_info {
    unsigned long long memory_size;
    unsigned int freq, utiliza;
};

struct dcmi_chip_info {
    unsigned char chip_type[32], chip_name[32], chip_ver[32];
    unsigned int aicore_cnt;
};

struct dcmi_proc_mem_info {
    int proc_id;
    unsigned long proc_mem_usage; /* bytes */
};

/* The die whose number names a chip for good. */
enum dcmi_die_type { NDIE, VDIE };

struct dcmi_die_id {
    unsigned int soc_die[5];
};

int dcmi_init(void);
int dcmi_get_driver_version(char *version, unsigned length);
int dcmi_get_dcmi_version(char *version, unsigned length);
int dcmi_get_card_list(int *count, int *cards, int length);
int dcmi_get_card_num_list(int *count, int *cards, int length);
int dcmi_get_device_num_in_card(int card, int *count);
int dcmi_get_device_id_in_card(int card, int *devices, int *mcu, int *cpu);
int dcmi_get_all_device_count(int *count);
int dcmi_get_device_logic_id(int *logic, int card, int device);
int dcmi_get_card_id_device_id_from_logicid(int *card, int *device, unsigned logic);
int dcmi_get_device_phyid_from_logicid(unsigned logic, unsigned *physical);
int dcmi_get_device_logicid_from_phyid(unsigned physical, unsigned *logic);
int dcmi_get_device_chip_info(int card, int device, struct dcmi_chip_info *info);
int dcmi_get_device_health(int card, int device, unsigned *health);
int dcmi_get_device_die_v2(int card, int device, enum dcmi_die_type type, struct dcmi_die_id *die);
int dcmi_get_device_share_enable(int card, int device, int *enable);
int dcmi_set_device_share_enable(int card, int device, int enable);
int dcmi_get_device_hbm_info(int card, int device, struct dcmi_hbm_info *info);
int dcmi_get_hbm_info(int card, int device, struct dcmi_hbm_info *info);
int dcmi_get_device_memory_info_v3(int card, int device, struct dcmi_get_memory_info_stru *info);
int dcmi_get_device_memory_info_v2(int card, int device, struct dcmi_memory_info *info);
int dcmi_get_memory_info(int card, int device, struct dcmi_memory_info *info);
int dcmi_get_device_utilization_rate(int card, int device, int type, unsigned *rate);
int dcmi_get_device_resource_info(int card, int device, struct dcmi_proc_mem_info *processes, int *count);
int dcmiv2_init(void);
int dcmiv2_get_device_list(int *devices, int *count, int length);
int dcmiv2_get_device_hbm_info(int logic, struct dcmi_hbm_info *info);
int dcmiv2_get_device_utilization_rate(int logic, int type, unsigned *rate);
int dcmiv2_get_device_proc_mem_info(int logic, struct dcmi_proc_mem_info *processes, int *count);

/* The same structures, in KB. */
int dsmi_get_device_count(int *count);
int dsmi_get_hbm_info(int logic, struct dcmi_hbm_info *info);
int dsmi_get_memory_info(int logic, struct dcmi_memory_info *info);
int dsmi_get_memory_info_v2(int logic, struct dcmi_get_memory_info_stru *info);
int dsmi_get_device_utilization_rate(int logic, int type, unsigned *rate);

/* Of the simulator: what a real libdcmi asks the driver for under other names. */
int npu_sim_dsmi_physical(int logic, unsigned *card);
int npu_sim_dsmi_chip(char name[32]);
int npu_sim_dsmi_driver(char version[32]);
int npu_sim_dsmi_sick(unsigned card, bool *sick);
int npu_sim_dsmi_shared(unsigned card, bool *shared);
int npu_sim_dsmi_share(unsigned card, bool share);
int npu_sim_dsmi_processes(int logic, struct dcmi_proc_mem_info *processes, int *count);

#endif
