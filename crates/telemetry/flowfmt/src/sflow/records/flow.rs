//! Flow records, sorted by number.

use super::{ExtendedRouter, ExtendedSwitch, SampledEthernet, SampledIpv4, SampledIpv6};
use crate::sflow::structure::{Structure, fields};

/// All that is known.
#[rustfmt::skip]
pub static FLOW: &[Structure] = &[
Structure::new(0, 1, fields![U32: "headerProtocol" "sampledPacketSize" "strippedBytes"; Octets: "headerBytes"]).flow("HEADER"),
SampledEthernet::STRUCTURE,
SampledIpv4::STRUCTURE,
SampledIpv6::STRUCTURE,
ExtendedSwitch::STRUCTURE,
ExtendedRouter::STRUCTURE,
Structure::new(0, 1003, fields![Address: "bgp_nexthop"; U32: "my_as" "src_as" "src_peer_as"; AsPath: "dst_as_path"; Words:
        "BGP_communities"; U32: "BGP_localpref"]).extended("GATEWAY"),
Structure::new(0, 1004, fields![U32: "src_user_charset"; Text: "src_user"; U32: "dst_user_charset"; Text:
        "dst_user"]).extended("USER"),
Structure::new(0, 1005, fields![U32: "url_direction"; Text: "url" "host"]).extended("URL"),
Structure::new(0, 1006, fields![Address: "mpls_nexthop"; Labels: "mpls_input_stack" "mpls_output_stack"]).extended("MPLS"),
Structure::new(0, 1007, fields![Address: "nat_src" "nat_dst"]).extended("NAT"),
Structure::new(0, 1008, fields![Text: "mpls_tunnel_lsp_name"; U32: "mpls_tunnel_id" "mpls_tunnel_cos"]),
Structure::new(0, 1009, fields![Text: "mpls_vc_name"; U32: "mpls_vll_vc_id" "mpls_vc_cos"]),
Structure::new(0, 1010, fields![Text: "mpls_ftn_descr"; U32: "mpls_ftn_mask"]),
Structure::new(0, 1011, fields![U32: "mpls_fec_addr_prefix_len"]),
Structure::new(0, 1012, fields![Tags: "vlan_tunnel"]),
Structure::new(0, 1013, fields![U32: "cipher_suite"; Octets: "payload"]).extended("80211_payload"),
Structure::new(0, 1014, fields![Text: "rx_SSID"; Mac: "rx_BSSID"; U32: "rx_version" "rx_channel"; U64: "rx_speed"; U32: "rx_rsni"
        "rx_rcpi" "rx_packet_uS"]),
Structure::new(0, 1015, fields![Text: "tx_SSID"; Mac: "tx_BSSID"; U32: "tx_version" "tx_transmissions" "tx_packet_uS"
        "tx_retrans_uS" "tx_channel"; U64: "tx_speed"; U32: "tx_power_mW"]),
Structure::new(0, 1016, fields![U32: "aggregation_pdus"; Rest: "aggregation_records"]).extended("80211_aggregation"),
Structure::new(0, 1017, fields![U64: "openflow_cookie"; Rest: "openflow_match_actions"]).extended("openflow_v1"),
Structure::new(0, 1018, fields![U32: "fc_src_mask" "fc_dst_mask" "fc_nexthop" "fc_metric"]).extended("fc"),
Structure::new(0, 1019, fields![U32: "queue_index" "queue_length"]).extended("queue_length"),
Structure::new(0, 1020, fields![U32: "nat_src_port" "nat_dst_port"]).extended("NAT PORT"),
SampledEthernet::STRUCTURE.numbered(1021).prefixed("tunnel_l2_out_"),
SampledEthernet::STRUCTURE.numbered(1022).prefixed("tunnel_l2_in_"),
SampledIpv4::STRUCTURE.numbered(1023).prefixed("tunnel_ipv4_out_"),
SampledIpv4::STRUCTURE.numbered(1024).prefixed("tunnel_ipv4_in_"),
SampledIpv6::STRUCTURE.numbered(1025).prefixed("tunnel_ipv6_out_"),
SampledIpv6::STRUCTURE.numbered(1026).prefixed("tunnel_ipv6_in_"),
Structure::new(0, 1027, fields![U32: "out_decap_inner_header_offset"]).extended("out_decap"),
Structure::new(0, 1028, fields![U32: "in_decap_inner_header_offset"]).extended("in_decap"),
Structure::new(0, 1029, fields![U32: "out_VNI"]).extended("out_VNI"),
Structure::new(0, 1030, fields![U32: "in_VNI"]).extended("in_VNI"),
Structure::new(0, 1031, fields![U32: "ib_src_vl" "ib_src_sl" "ib_src_dlid" "ib_src_slid" "ib_src_lnh" "ib_dst_vl" "ib_dst_sl"
        "ib_dst_dlid" "ib_dst_slid" "ib_dst_lnh"]).extended("ib_lrh"),
Structure::new(0, 1032, fields![U32: "ib_flow_label" "ib_tc"; Ipv6: "ib_s_gid" "ib_d_gid"; U32: "ib_next_header"
        "ib_length"]).extended("ib_grh"),
Structure::new(0, 1033, fields![U32: "ib_pkey" "ib_dst_qp" "ib_opcode"]).extended("ib_bth"),
Structure::new(0, 1034, fields![Tags: "vlan_in"]).extended("vlan_in"),
Structure::new(0, 1035, fields![Tags: "vlan_out"]).extended("vlan_out"),
Structure::new(0, 1036, fields![U32: "egress_queue_id"]).extended("egress_queue"),
Structure::new(0, 1037, fields![U32: "acl_number"; Text: "acl_name"; ACL_DIRECTION:
        "acl_direction"]).extended("acl"),
Structure::new(0, 1038, fields![Text: "symbol"]).extended("function"),
Structure::new(0, 1039, fields![U32: "transit_delay_nS"]).extended("transit_delay"),
Structure::new(0, 1040, fields![U32: "queue_depth_bytes"]).extended("queue_depth"),
Structure::new(0, 1041, fields![Text: "hw_trap_group" "hw_trap_name"]).extended("hw_trap"),
Structure::new(0, 1042, fields![Text: "linux_drop_reason"]).extended("linux_reason"),
Structure::new(0, 1043, fields![U64: "timestamp_nS"]).extended("timestamp"),
Structure::new(0, 2100, fields![U32: "socket4_ip_protocol"; Ipv4: "socket4_local_ip" "socket4_remote_ip"; U32:
        "socket4_local_port" "socket4_remote_port"]).extended("socket4"),
Structure::new(0, 2101, fields![U32: "socket6_ip_protocol"; Ipv6: "socket6_local_ip" "socket6_remote_ip"; U32:
        "socket6_local_port" "socket6_remote_port"]).extended("socket6"),
Structure::new(0, 2102, fields![U32: "proxy_socket4_ip_protocol"; Ipv4: "proxy_socket4_local_ip" "proxy_socket4_remote_ip"; U32:
        "proxy_socket4_local_port" "proxy_socket4_remote_port"]).extended("proxy_socket4"),
Structure::new(0, 2103, fields![U32: "proxy_socket6_ip_protocol"; Ipv6: "proxy_socket6_local_ip" "proxy_socket6_remote_ip"; U32:
        "proxy_socket6_local_port" "proxy_socket6_remote_port"]).extended("proxy_socket6"),
Structure::new(0, 2200, fields![U32: "memcache_op_protocol" "memcache_op_cmd"; Text: "memcache_op_key"; U32: "memcache_op_nkeys"
        "memcache_op_value_bytes" "memcache_op_duration_uS" "memcache_op_status"]).flow("memcache"),
Structure::new(0, 2201, fields![U32: "http_method" "http_protocol"; Text: "http_uri" "http_host" "http_referrer" "http_useragent"
        "http_authuser" "http_mimetype"; U64: "http_bytes"; U32: "http_duration_uS" "http_status"]).flow("http"),
Structure::new(0, 2202, fields![Text: "application" "operation" "attributes" "status_descr"; U64: "request_bytes"
        "response_bytes"; U32: "duration_uS"; STATUS: "status"]).flow("applicationOperation"),
Structure::new(0, 2203, fields![Text: "server_context_application" "server_context_operation" "server_context_attributes"]),
Structure::new(0, 2204, fields![Text: "actor_initiator"]),
Structure::new(0, 2205, fields![Text: "actor_target"]),
Structure::new(0, 2206, fields![U32: "http_method" "http_protocol"; Text: "http_uri" "http_host" "http_referrer" "http_useragent"
        "http_xff" "http_authuser" "http_mimetype"; U64: "http_request_bytes" "http_bytes"; U32: "http_duration_uS"
        "http_status"]).flow("http"),
Structure::new(0, 2207, fields![Text: "proxy_request_uri" "proxy_request_host"]).extended("proxy_request"),
Structure::new(0, 2208, fields![U32: "nav_type" "redirect_count" "navigation_start" "unload_event_start" "unload_event_end"
        "redirect_start" "redirect_end" "fetch_start" "domain_lookup_start" "domain_lookup_end" "connect_start" "connect_end"
        "secure_connection_start" "request_start" "response_start" "response_end" "dom_loading" "dom_interactive"
        "dom_content_loaded_event_start" "dom_content_loaded_event_end" "dom_complete" "load_event_start"
        "load_event_end"]).extended("nav_timing"),
Structure::new(0, 2209, fields![TCP_DIRECTION: "tcpinfo_direction"; U32: "tcpinfo_send_mss"
        "tcpinfo_receive_mss" "tcpinfo_unacked_pkts" "tcpinfo_lost_pkts" "tcpinfo_retrans_pkts" "tcpinfo_path_mtu"
        "tcpinfo_rtt_uS" "tcpinfo_rtt_uS_var" "tcpinfo_send_congestion_win" "tcpinfo_reordering" "tcpinfo_rtt_uS_min"]),
Structure::new(0, 2210, fields![U32: "entities_src_class" "entities_src_index" "entities_dst_class"
        "entities_dst_index"]).extended("entities"),
Structure::new(4413, 1, fields![U32: "bst_egress_queue"]).extended("bst_egress_queue"),
Structure::new(43874, 1, fields![Rest: "pmacct_class"]).extended("pmacct_class"),
Structure::new(43874, 2, fields![Rest: "pmacct_tag"]).extended("pmacct_tag"),
Structure::new(43874, 3, fields![Rest: "pmacct_tag2"]).extended("pmacct_tag2"),
];
