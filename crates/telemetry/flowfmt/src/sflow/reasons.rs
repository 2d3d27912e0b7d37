//! Why a packet was discarded: the standard's codes (sFlow, discarded packets; also in an output port of
//! format 1) and the names they are printed under.
//!
//! Codes 0 to 15 are those of ICMP's destination unreachable (RFC 792, RFC 1812). 332 and 366 are the
//! two numbers which the standard's table leaves out and which implementations give to the two reasons
//! that lack one.

/// The name of a code.
#[must_use]
pub fn name(code: u32) -> Option<&'static str> {
    let place = match code {
        0..16 => code,
        256.. => code - 256 + 16,
        _ => return None,
    };
    REASONS.get(place as usize).copied()
}

/// 0 to 15, then 256 and on.
#[rustfmt::skip]
const REASONS: &[&str] = &[
    "net_unreachable", "host_unreachable", "protocol_unreachable", "port_unreachable", "frag_needed", "src_route_failed",
    "dst_net_unknown", "dst_host_unknown", "src_host_isolated", "dst_net_prohibited", "dst_host_prohibited",
    "dst_net_tos_unreachable", "dst_host_tos_unreacheable", "comm_admin_prohibited", "host_precedence_violation",
    "precedence_cutoff", "unknown", "ttl_exceeded", "acl", "no_buffer_space", "red", "traffic_shaping", "pkt_too_big",
    "src_mac_is_multicast", "vlan_tag_mismatch", "ingress_vlan_filter", "ingress_spanning_tree_filter", "port_list_is_empty",
    "port_loopback_filter", "blackhole_route", "non_ip", "uc_dip_over_mc_dmac", "dip_is_loopback_address", "sip_is_mc",
    "sip_is_loopback_address", "ip_header_corrupted", "ipv4_sip_is_limited_bc", "ipv6_mc_dip_reserved_scope",
    "ipv6_mc_dip_interface_local_scope", "unresolved_neigh", "mc_reverse_path_forwarding", "non_routable_packet", "decap_error",
    "overlay_smac_is_mc", "unknown_l2", "unknown_l3", "unknown_l3_exception", "unknown_buffer", "unknown_tunnel", "unknown_l4",
    "sip_is_unspecified", "mlag_port_isolation", "blackhole_arp_neigh", "src_mac_is_dmac", "dmac_is_reserved", "sip_is_class_e",
    "mc_dmac_mismatch", "sip_is_dip", "dip_is_local_network", "dip_is_link_local", "overlay_smac_is_dmac", "egress_vlan_filter",
    "uc_reverse_path_forwarding", "split_horizon", "locked_port", "dmac_filter", "blackhole_nexthop", "vxlan_parsing",
    "llc_snap_parsing", "vlan_parsing", "pppoe_ppp_parsing", "mpls_parsing", "arp_parsing", "ip_1_parsing", "ip_n_parsing",
    "gre_parsing", "udp_parsing", "tcp_parsing", "ipsec_parsing", "sctp_parsing", "dccp_parsing", "gtp_parsing", "esp_parsing",
    "unknown_parsing", "pkt_too_small", "unhandled_proto", "ipv6disabled", "invalid_proto", "ip_noproto", "skb_csum",
    "skb_ucopy_fault", "dev_ready", "dev_hdr", "dup_frag", "skb_gso_seg", "reverse_path_forwarding", "icmp_parsing",
    "tcp_md5notfound", "tcp_md5unexpected", "tcp_md5failure", "tcp_flags", "tcp_zerowindow", "tcp_old_data", "tcp_overwindow",
    "tcp_ofomerge", "tcp_rfc7323_paws", "tcp_invalid_sequence", "tcp_reset", "tcp_invalid_syn", "tcp_close", "tcp_fastopen",
    "tcp_old_ack", "tcp_too_old_ack", "tcp_ack_unsent_data", "tcp_ofo_queue_prune", "tcp_ofo_drop", "tcp_minttl",
    "ipv6_bad_exthdr", "ipv6_ndisc_frag", "ipv6_ndisc_hop_limit", "ipv6_ndisc_bad_code", "ipv6_ndisc_bad_options",
    "ipv6_ndisc_ns_otherhost", "tap_filter", "tap_txfilter", "tc_ingress", "tc_egress", "xdp", "cpu_backlog", "bpf_cgroup_egress",
    "xfrm_policy", "socket_filter", "bgp_flowspec",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_standards_names() {
        for (code, expected) in [
            (0, Some("net_unreachable")),
            (15, Some("precedence_cutoff")),
            (16, None),
            (255, None),
            (256, Some("unknown")),
            (258, Some("acl")),
            (279, Some("unresolved_neigh")),
            (324, Some("pkt_too_small")),
            (367, Some("xdp")),
            (372, Some("bgp_flowspec")),
            (373, None),
            (u32::MAX, None),
        ] {
            assert_eq!(name(code), expected, "{code}");
        }
    }
}
