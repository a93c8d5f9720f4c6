/* The driver library, libascend_hal.so: device ids are physical. */
#ifndef CANN_HAL_H
#define CANN_HAL_H

#include <stddef.h>
#include <stdint.h>

typedef struct drv_mem_handle drv_mem_handle_t;

struct drv_mem_prop {
    uint32_t side, devid, module_id, pg_type, mem_type;
    uint64_t reserve;
};

struct MemPhyInfo {
    unsigned long total, free, huge_total, huge_free, giant_total, giant_free;
};

struct MemInfo {
    union {
        struct MemPhyInfo phy_info;
        unsigned char room[512]; /* the real union has larger members */
    };
};

typedef struct {
    uint64_t poolId;
    uint32_t devId;
} soma_mem_pool_t;

typedef struct {
    int handle_type;
    struct drv_mem_prop mem_prop;
    uint64_t va;
    uint64_t maxSize;
} soma_mem_pool_prop;

int drvGetDevNum(uint32_t *count);
int drvGetDevIDs(uint32_t *devices, uint32_t length);
int drvDeviceGetPhyIdByIndex(uint32_t index, uint32_t *id);
int halGetAPIVersion(int *version);
int halGetDeviceInfo(uint32_t device, int32_t module, int32_t info, int64_t *value);

int halMemAlloc(void **pp, unsigned long long size, unsigned long long flag);
int halMemFree(void *pp);
int halMemGetInfo(uint64_t device, unsigned type, struct MemInfo *info);
int halHostRegister(void *host, uint64_t size, uint32_t flag, uint32_t device, void **mapped);
int halHostUnregister(void *host, uint32_t device);

/* Later drivers only: the runtime refers to these weakly and asks whether they are there. */
#pragma weak halMemCreate
#pragma weak halMemRelease
#pragma weak halMemAddressReserve
#pragma weak halMemAddressFree
#pragma weak halMemMap
#pragma weak halMemUnmap
#pragma weak halMemRetainAllocationHandle
#pragma weak halMemExportToShareableHandle
#pragma weak halMemImportFromShareableHandle
#pragma weak halMemGetAllocationGranularity
#pragma weak halMemPoolCreate
#pragma weak halMemPoolDestroy
#pragma weak halMemPoolMalloc
#pragma weak halMemPoolFree
#pragma weak halMemPoolTrim
int halMemCreate(drv_mem_handle_t **handle, size_t size, const struct drv_mem_prop *prop, uint64_t flag);
int halMemRelease(drv_mem_handle_t *handle);
int halMemAddressReserve(void **ptr, size_t size, size_t alignment, void *address, uint64_t flag);
int halMemAddressFree(void *ptr);
int halMemMap(void *ptr, size_t size, size_t offset, drv_mem_handle_t *handle, uint64_t flag);
int halMemUnmap(void *ptr);
int halMemRetainAllocationHandle(drv_mem_handle_t **handle, void *ptr);
int halMemExportToShareableHandle(drv_mem_handle_t *handle, int type, uint64_t flags, uint64_t *shareable);
int halMemImportFromShareableHandle(uint64_t shareable, uint32_t device, drv_mem_handle_t **handle);
int halMemGetAllocationGranularity(const struct drv_mem_prop *prop, int option, size_t *granularity);
int halMemPoolCreate(soma_mem_pool_t pool, soma_mem_pool_prop prop);
int halMemPoolDestroy(soma_mem_pool_t pool);
int halMemPoolMalloc(soma_mem_pool_t pool, uint64_t va, uint64_t size, int32_t policy);
int halMemPoolFree(soma_mem_pool_t pool, uint64_t va, uint64_t size, int32_t policy);
int halMemPoolTrim(soma_mem_pool_t pool, uint64_t *reserved, uint64_t used, uint64_t free);

#endif
