// What the programs use of the kernel: types, helper numbers and the few structures whose fields are
// read. Written out here so that compiling needs clang alone, and gives the same object everywhere.
// The numbers are those of include/uapi/linux/bpf.h.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
// A global function is verified once, for any arguments, and not again at every call: that keeps the
// verifier's work small. Pointers that it gets may be null as far as the verifier knows.
#define FUNCTION __attribute__((noinline))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

struct xdp_md {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
	u32 rx_queue_index;
	u32 egress_ifindex;
};

enum { XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX, XDP_REDIRECT };
enum { ANY = 0, NOEXIST = 1, EXIST = 2 };
enum { BROADCAST = 8, EXCLUDE_INGRESS = 16 };

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static u64 (*const ktime_get_ns)(void) = (void *)5;
static u32 (*const get_prandom_u32)(void) = (void *)7;
static u32 (*const smp_processor_id)(void) = (void *)8;
static long (*const xdp_adjust_head)(struct xdp_md *ctx, int delta) = (void *)44;
static long (*const redirect_map)(void *map, u64 key, u64 flags) = (void *)51;
static long (*const xdp_adjust_tail)(struct xdp_md *ctx, int delta) = (void *)65;
static long (*const fib_lookup)(void *ctx, void *params, int length, u32 flags) = (void *)69;
static void *(*const ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*const ringbuf_submit)(void *data, u64 flags) = (void *)132;
static u64 (*const ktime_get_coarse_ns)(void) = (void *)160;
static long (*const loop)(u32 count, void *callback, void *context, u64 flags) = (void *)181;
static long (*const xdp_load_bytes)(struct xdp_md *ctx, u32 offset, void *buffer, u32 length) = (void *)189;

#define FIELDS_RELOCATED __attribute__((preserve_access_index))
struct ns_common { u32 inum; } FIELDS_RELOCATED;
struct net { struct ns_common ns; } FIELDS_RELOCATED;
typedef struct { struct net *net; } possible_net_t;
struct net_device { int ifindex; possible_net_t nd_net; } FIELDS_RELOCATED;

#define MAP(kind, name, key_type, value_type, entries) \
	struct { \
		int (*type)[kind]; \
		key_type *key; \
		value_type *value; \
		int (*max_entries)[entries]; \
		int (*pinning)[1]; \
	} name SECTION(".maps")
#define MAP_FLAGS(kind, name, key_type, value_type, entries, flags_) \
	struct { \
		int (*type)[kind]; \
		key_type *key; \
		value_type *value; \
		int (*max_entries)[entries]; \
		int (*map_flags)[flags_]; \
		int (*pinning)[1]; \
	} name SECTION(".maps")
enum { HASH = 1, ARRAY = 2, PERCPU_ARRAY = 6, LRU_HASH = 9, LPM_TRIE = 11, DEVMAP_HASH = 25, RINGBUF = 27 };

INLINE u16 swap16(u16 x) { return __builtin_bswap16(x); }
INLINE u32 swap32(u32 x) { return __builtin_bswap32(x); }
INLINE u64 swap64(u64 x) { return __builtin_bswap64(x); }
