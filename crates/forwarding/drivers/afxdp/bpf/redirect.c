// The XDP program of a port: a frame that came in on queue N goes to the AF_XDP socket of queue N;
// without such a socket it goes to the Linux stack, as if there were no program.
//
// It includes nothing, so that it compiles without any header package:
//
//   clang -O2 -g -target bpf -fdebug-prefix-map="$PWD=." -c redirect.c -o redirect.o
//   llvm-strip -g redirect.o
//
// `redirect.o` is committed, so that nobody needs clang to build Weir; a test of this crate compiles
// the source again where clang is installed. BPF_MAP_TYPE_XSKMAP is 17, bpf_redirect_map is helper
// 51, XDP_PASS is 2 (include/uapi/linux/bpf.h of Linux).

typedef unsigned int u32;
typedef unsigned long long u64;

#define SECTION(name) __attribute__((section(name), used))

// `struct xdp_md`.
struct xdp_md {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
	u32 rx_queue_index;
	u32 egress_ifindex;
};

// The loader sets the number of entries to the number of the device's queues.
struct {
	int (*type)[17];
	int (*max_entries)[64];
	u32 *key;
	u32 *value;
} sockets SECTION(".maps");

static long (*const redirect_map)(void *map, u64 key, u64 flags) = (void *)51;

static inline __attribute__((always_inline)) int redirect(struct xdp_md *frame)
{
	// Since Linux 5.3 the low bits of the flags are what to do when the map has no such entry.
	return redirect_map(&sockets, frame->rx_queue_index, 2);
}

SECTION("xdp") int weir_redirect(struct xdp_md *frame)
{
	return redirect(frame);
}

// For devices whose frames span several pieces of memory. On a device that needs this, frames that
// do not fit one chunk are dropped by the kernel and counted in the socket's `rx_dropped`.
SECTION("xdp.frags") int weir_redirect_frags(struct xdp_md *frame)
{
	return redirect(frame);
}

char terms[] SECTION("license") = "Apache-2.0";
