#include "driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static uint64_t page_of(unsigned long long flag) {
    if (flag & HAL_PAGE_GIANT)
        return PAGE_GIANT;
    return flag & HAL_PAGE_HUGE ? PAGE_HUGE : PAGE_NORMAL;
}

static bool on_device(enum hal_kind kind) {
    return kind == HAL_SVM || kind == HAL_DEV || kind == HAL_DVPP || kind == HAL_UVM;
}

static int take_host(struct sim_driver *d, uint64_t bytes, void **pp) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return DRV_OUT_OF_MEMORY;
    pthread_mutex_lock(&d->lock);
    block_add(d, &(struct block){.at = (uintptr_t)at, .bytes = bytes, .kind = BLOCK_HOST});
    pthread_mutex_unlock(&d->lock);
    *pp = at;
    return 0;
}

static int take_device(struct sim_self *self, struct sim_driver *d, struct block *block, void **pp) {
    if (!sim_memory_take(self, block->card, block->bytes, block->overhead))
        return DRV_OUT_OF_MEMORY;
    pthread_mutex_lock(&d->lock);
    bool placed = space_take(d, block->bytes, block);
    if (placed)
        block_add(d, block);
    pthread_mutex_unlock(&d->lock);
    if (!placed) {
        sim_memory_give(self, block->card, block->bytes, block->overhead);
        return DRV_OUT_OF_MEMORY;
    }
    *pp = (void *)(uintptr_t)block->at;
    return 0;
}

HAL_API int halMemAlloc(void **pp, unsigned long long size, unsigned long long flag) {
    HAL_ENTER(halMemAlloc, d, self);
    if (!pp || size == 0 || size > 1ull << ARENA_MOST_BITS)
        return DRV_INVALID_VALUE;
    enum hal_kind kind = (enum hal_kind)(flag >> HAL_KIND_SHIFT & HAL_KIND_BITS);
    uint64_t bytes = ROUND_UP(size, page_of(flag));
    if (kind == HAL_HOST || kind == HAL_HOST_AGENT || kind == HAL_HOST_UVA)
        return take_host(d, bytes, pp);
    if (!on_device(kind))
        return DRV_NOT_SUPPORTED;
    struct block block = {.bytes = bytes,
                          .kind = BLOCK_MEMORY,
                          .card = (uint32_t)(flag & HAL_DEVICE_BITS),
                          .overhead = flag >> HAL_MODULE_SHIFT == MODULE_RUNTIME};
    if (!driver_sees(d, block.card))
        return DRV_INVALID_DEVICE;
    return take_device(self, d, &block, pp);
}

HAL_API int halMemFree(void *pp) {
    HAL_ENTER(halMemFree, d, self);
    struct block block;
    pthread_mutex_lock(&d->lock);
    bool device = block_remove(d, (uintptr_t)pp, BLOCK_MEMORY, &block);
    bool host = !device && block_remove(d, (uintptr_t)pp, BLOCK_HOST, &block);
    if (device)
        space_give(d, &block);
    pthread_mutex_unlock(&d->lock);
    if (device)
        sim_memory_give(self, block.card, block.bytes, block.overhead);
    if (host)
        munmap(pp, block.bytes);
    return device || host ? 0 : DRV_INVALID_VALUE;
}

/* Types 1 and 2 ask for the size of DDR and HBM; a chip has one of them. */
HAL_API int halMemGetInfo(uint64_t device, unsigned type, struct MemInfo *info) {
    SIM_ENTER(halMemGetInfo);
    struct sim_self *self;
    struct sim_driver *d = driver(&self);
    if (!d || !driver_sees(d, (uint32_t)device))
        return DRV_INVALID_DEVICE;
    if (!info || (type != 1 && type != 2))
        return DRV_INVALID_VALUE;
    memset(&info->phy_info, 0, sizeof info->phy_info);
    bool ddr_chip = strncmp(self->state->settings.chip, "Ascend310", 9) == 0;
    if ((type == 1) != ddr_chip)
        return 0;
    struct sim_memory *memory = malloc(sizeof *memory);
    if (!memory)
        return DRV_OUT_OF_MEMORY;
    sim_memory_read(self->state, (uint32_t)device, memory);
    uint64_t total = self->state->settings.memory_bytes;
    uint64_t free_bytes = memory->used < total ? total - memory->used : 0;
    free(memory);
    info->phy_info = (struct MemPhyInfo){total, free_bytes, total, free_bytes, 0, 0};
    return 0;
}

/* Pinned host memory is the same memory on the host: what is registered is reached at its own address. */
HAL_API int halHostRegister(void *host, uint64_t size, uint32_t flag, uint32_t device, void **mapped) {
    SIM_ENTER(halHostRegister);
    (void)flag;
    struct sim_self *self;
    struct sim_driver *d = driver(&self);
    if (!d || !driver_sees(d, device))
        return DRV_INVALID_DEVICE;
    if (!host || size == 0 || !mapped)
        return DRV_INVALID_VALUE;
    *mapped = host;
    return 0;
}

HAL_API int halHostUnregister(void *host, uint32_t device) {
    SIM_ENTER(halHostUnregister);
    (void)device;
    return host ? 0 : DRV_INVALID_VALUE;
}
