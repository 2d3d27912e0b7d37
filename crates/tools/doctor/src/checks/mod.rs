//! All checks, one file each.

mod accept_ra;
mod afxdp_zero_copy;
mod arp_table;
mod bpf_jit;
mod bpf_jit_harden;
mod bridge_netfilter;
mod carrier;
mod clocksource;
mod conntrack;
mod conntrack_full;
mod crc_errors;
mod deep_sleep;
mod default_qdisc;
mod duplex;
mod governor;
mod gro_router;
mod hugepages;
mod hugepages_free;
mod ip_forward;
mod irq_affinity;
mod irqbalance;
mod isolated_cores;
mod kernel_version;
mod load;
mod lro;
mod management_device;
mod mitigations;
mod mtu_mismatch;
mod neighbor_table6;
mod netdev_backlog;
mod netdev_budget;
mod nmi_watchdog;
mod nohz_full;
mod numa_balancing;
mod numa_node;
mod qdisc_lock;
mod queue_count;
mod receive_buffer;
mod receive_hashing;
mod redirects;
mod ring_size;
mod rp_filter;
mod rps_multi_queue;
mod rps_single_queue;
mod rx_checksumming;
mod rx_missed;
mod rx_vlan_offload;
mod smt;
mod softnet_dropped;
mod softnet_squeezed;
mod steal;
mod swappiness;
mod transparent_hugepages;
mod tx_errors;
mod unprivileged_bpf;
mod xdp_attached;
mod xdp_generic;
mod xps;

use crate::Check;

/// All checks.
pub const ALL: &[Check] = &[
    bpf_jit::CHECK,
    bpf_jit_harden::CHECK,
    nmi_watchdog::CHECK,
    numa_balancing::CHECK,
    swappiness::CHECK,
    netdev_backlog::CHECK,
    netdev_budget::CHECK,
    receive_buffer::CHECK,
    redirects::CHECK,
    arp_table::CHECK,
    neighbor_table6::CHECK,
    bridge_netfilter::CHECK,
    unprivileged_bpf::CHECK,
    accept_ra::CHECK,
    ip_forward::CHECK,
    rp_filter::CHECK,
    qdisc_lock::CHECK,
    default_qdisc::CHECK,
    rps_multi_queue::CHECK,
    rps_single_queue::CHECK,
    xps::CHECK,
    queue_count::CHECK,
    ring_size::CHECK,
    lro::CHECK,
    rx_vlan_offload::CHECK,
    gro_router::CHECK,
    rx_checksumming::CHECK,
    receive_hashing::CHECK,
    irq_affinity::CHECK,
    irqbalance::CHECK,
    numa_node::CHECK,
    governor::CHECK,
    deep_sleep::CHECK,
    hugepages::CHECK,
    hugepages_free::CHECK,
    transparent_hugepages::CHECK,
    isolated_cores::CHECK,
    nohz_full::CHECK,
    mitigations::CHECK,
    clocksource::CHECK,
    smt::CHECK,
    steal::CHECK,
    load::CHECK,
    softnet_dropped::CHECK,
    softnet_squeezed::CHECK,
    conntrack::CHECK,
    conntrack_full::CHECK,
    mtu_mismatch::CHECK,
    xdp_generic::CHECK,
    xdp_attached::CHECK,
    afxdp_zero_copy::CHECK,
    kernel_version::CHECK,
    management_device::CHECK,
    carrier::CHECK,
    duplex::CHECK,
    crc_errors::CHECK,
    rx_missed::CHECK,
    tx_errors::CHECK,
];
