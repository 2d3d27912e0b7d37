//! Counter records, sorted by number.

use super::{EthernetCounters, InterfaceCounters, LagCounters, VlanCounters};
use crate::sflow::structure::{Structure, fields};

/// All that is known.
#[rustfmt::skip]
pub static COUNTERS: &[Structure] = &[
InterfaceCounters::STRUCTURE,
EthernetCounters::STRUCTURE,
Structure::new(0, 3, fields![U32: "dot5StatsLineErrors" "dot5StatsBurstErrors" "dot5StatsACErrors" "dot5StatsAbortTransErrors"
        "dot5StatsInternalErrors" "dot5StatsLostFrameErrors" "dot5StatsReceiveCongestions" "dot5StatsFrameCopiedErrors"
        "dot5StatsTokenErrors" "dot5StatsSoftErrors" "dot5StatsHardErrors" "dot5StatsSignalLoss" "dot5StatsTransmitBeacons"
        "dot5StatsRecoverys" "dot5StatsLobeWires" "dot5StatsRemoves" "dot5StatsSingles" "dot5StatsFreqErrors"]),
Structure::new(0, 4, fields![U32: "dot12InHighPriorityFrames"; U64: "dot12InHighPriorityOctets"; U32: "dot12InNormPriorityFrames";
        U64: "dot12InNormPriorityOctets"; U32: "dot12InIPMErrors" "dot12InOversizeFrameErrors" "dot12InDataErrors"
        "dot12InNullAddressedFrames" "dot12OutHighPriorityFrames"; U64: "dot12OutHighPriorityOctets"; U32:
        "dot12TransitionIntoTrainings"; U64: "dot12HCInHighPriorityOctets" "dot12HCInNormPriorityOctets"
        "dot12HCOutHighPriorityOctets"]),
VlanCounters::STRUCTURE,
Structure::new(0, 6, fields![U32: "dot11TransmittedFragmentCount" "dot11MulticastTransmittedFrameCount" "dot11FailedCount"
        "dot11RetryCount" "dot11MultipleRetryCount" "dot11FrameDuplicateCount" "dot11RTSSuccessCount" "dot11RTSFailureCount"
        "dot11ACKFailureCount" "dot11ReceivedFragmentCount" "dot11MulticastReceivedFrameCount" "dot11FCSErrorCount"
        "dot11TransmittedFrameCount" "dot11WEPUndecryptableCount" "dot11QoSDiscardedFragmentCount" "dot11AssociatedStationCount"
        "dot11QoSCFPollsReceivedCount" "dot11QoSCFPollsUnusedCount" "dot11QoSCFPollsUnusableCount" "dot11QoSCFPollsLostCount"]),
LagCounters::STRUCTURE,
Structure::new(0, 8, fields![U32: "slow_path_unknown" "slow_path_other" "slow_path_cam_miss" "slow_path_cam_full"
        "slow_path_no_hw_support" "slow_path_cntrl"]),
Structure::new(0, 9, fields![U64: "portXmitPkts" "portRcvPkts"; U32: "symbolErrorCounter" "linkErrorRecoveryCounter"
        "linkDownedCounter" "portRcvErrors" "portRcvRemotePhysicalErrors" "portRcvSwitchRelayErrors" "portXmitDiscards"
        "portXmitConstraintErrors" "portRcvConstraintErrors" "localLinkIntegrityErrors" "excessiveBufferOverrunErrors"
        "VL15Dropped"]),
Structure::new(0, 10, fields![U32: "sfp_module_id" "sfp_module_total_lanes" "sfp_module_supply_voltage"; I32:
        "sfp_module_temperature"; Lanes: "sfp_module_active_lanes"]),
Structure::new(0, 11, fields![U32: "PFC_requests" "PFC_indications" "PFC_pause_duration" "PFC_storm_detected"
        "PFC_storm_restored"]),
Structure::new(0, 1001, fields![Hundredths: "5s_cpu" "1m_cpu" "5m_cpu"; U64: "total_memory_bytes" "free_memory_bytes"]),
Structure::new(0, 1002, fields![U32: "radio_elapsed_time" "radio_on_channel_time" "radio_on_channel_busy_time"]),
Structure::new(0, 1003, fields![U32: "queueIndex" "segmentSize" "queueSegments" "queueLength0" "queueLength1" "queueLength2"
        "queueLength4" "queueLength8" "queueLength32" "queueLength128" "queueLength1024" "queueLengthMore" "queueDropped"]),
Structure::new(0, 1004, fields![Id64: "openflow_datapath_id"; U32: "openflow_port"]),
Structure::new(0, 1005, fields![Text: "ifName"]),
Structure::new(0, 2000, fields![Text: "hostname"; Uuid: "UUID"; U32: "machine_type" "os_name"; Text: "os_release"]),
Structure::new(0, 2001, fields![Adaptors: "adaptor"]),
Structure::new(0, 2002, fields![U32: "parent_dsClass" "parent_dsIndex"]),
Structure::new(0, 2003, fields![F32: "cpu_load_one" "cpu_load_five" "cpu_load_fifteen"; U32: "cpu_proc_run" "cpu_proc_total"
        "cpu_num" "cpu_speed" "cpu_uptime" "cpu_user" "cpu_nice" "cpu_system" "cpu_idle" "cpu_wio" "cpuintr" "cpu_sintr"
        "cpuinterrupts" "cpu_contexts" "cpu_steal" "cpu_guest" "cpu_guest_nice"]).grown(3),
Structure::new(0, 2004, fields![U64: "mem_total" "mem_free" "mem_shared" "mem_buffers" "mem_cached" "swap_total" "swap_free"; U32:
        "page_in" "page_out" "swap_in" "swap_out"]),
Structure::new(0, 2005, fields![U64: "disk_total" "disk_free"; Hundredths: "disk_partition_max_used"; U32: "disk_reads"; U64:
        "disk_bytes_read"; U32: "disk_read_time" "disk_writes"; U64: "disk_bytes_written"; U32: "disk_write_time"]),
Structure::new(0, 2006, fields![U64: "nio_bytes_in"; U32: "nio_pkts_in" "nio_errs_in" "nio_drops_in"; U64: "nio_bytes_out"; U32:
        "nio_pkts_out" "nio_errs_out" "nio_drops_out"]),
Structure::new(0, 2007, fields![U32: "ipForwarding" "ipDefaultTTL" "ipInReceives" "ipInHdrErrors" "ipInAddrErrors"
        "ipForwDatagrams" "ipInUnknownProtos" "ipInDiscards" "ipInDelivers" "ipOutRequests" "ipOutDiscards" "ipOutNoRoutes"
        "ipReasmTimeout" "ipReasmReqds" "ipReasmOKs" "ipReasmFails" "ipFragOKs" "ipFragFails" "ipFragCreates"]),
Structure::new(0, 2008, fields![U32: "icmpInMsgs" "icmpInErrors" "icmpInDestUnreachs" "icmpInTimeExcds" "icmpInParamProbs"
        "icmpInSrcQuenchs" "icmpInRedirects" "icmpInEchos" "icmpInEchoReps" "icmpInTimestamps" "icmpInAddrMasks"
        "icmpInAddrMaskReps" "icmpOutMsgs" "icmpOutErrors" "icmpOutDestUnreachs" "icmpOutTimeExcds" "icmpOutParamProbs"
        "icmpOutSrcQuenchs" "icmpOutRedirects" "icmpOutEchos" "icmpOutEchoReps" "icmpOutTimestamps" "icmpOutTimestampReps"
        "icmpOutAddrMasks" "icmpOutAddrMaskReps"]),
Structure::new(0, 2009, fields![U32: "tcpRtoAlgorithm" "tcpRtoMin" "tcpRtoMax" "tcpMaxConn" "tcpActiveOpens" "tcpPassiveOpens"
        "tcpAttemptFails" "tcpEstabResets" "tcpCurrEstab" "tcpInSegs" "tcpOutSegs" "tcpRetransSegs" "tcpInErrs" "tcpOutRsts"
        "tcpInCsumErrors"]),
Structure::new(0, 2010, fields![U32: "udpInDatagrams" "udpNoPorts" "udpInErrors" "udpOutDatagrams" "udpRcvbufErrors"
        "udpSndbufErrors" "udpInCsumErrors"]),
Structure::new(0, 2100, fields![U32: "vnode_mhz" "vnode_cpus"; U64: "vnode_memory" "vnode_memory_free"; U32:
        "vnode_num_domains"]),
Structure::new(0, 2101, fields![U32: "vcpu_state" "vcpu_cpu_mS" "vcpu_cpuCount"]),
Structure::new(0, 2102, fields![U64: "vmem_memory" "vmem_maxMemory"]),
Structure::new(0, 2103, fields![U64: "vdsk_capacity" "vdsk_allocation" "vdsk_available"; U32: "vdsk_rd_req"; U64: "vdsk_rd_bytes";
        U32: "vdsk_wr_req"; U64: "vdsk_wr_bytes"; U32: "vdsk_errs"]),
Structure::new(0, 2104, fields![U64: "vnio_bytes_in"; U32: "vnio_pkts_in" "vnio_errs_in" "vnio_drops_in"; U64: "vnio_bytes_out";
        U32: "vnio_pkts_out" "vnio_errs_out" "vnio_drops_out"]),
Structure::new(0, 2105, fields![Text: "jvm_name" "jvm_vendor" "jvm_version"]),
Structure::new(0, 2106, fields![U64: "heap_mem_initial" "heap_mem_used" "heap_mem_committed" "heap_mem_max" "non_heap_mem_initial"
        "non_heap_mem_used" "non_heap_mem_committed" "non_heap_mem_max"; U32: "gc_count" "gc_mS" "classes_loaded" "classes_total"
        "classes_unloaded" "compilation_mS" "threads_live" "threads_daemon" "threads_started" "fds_open" "fds_max"]).grown(2),
Structure::new(0, 2200, fields![U32: "memcache_uptime" "memcache_rusage_user" "memcache_rusage_system" "memcache_curr_connections"
        "memcache_total_connections" "memcache_connection_structures" "memcache_cmd_get" "memcache_cmd_set" "memcache_cmd_flush"
        "memcache_get_hits" "memcache_get_misses" "memcache_delete_misses" "memcache_delete_hits" "memcache_incr_misses"
        "memcache_incr_hits" "memcache_decr_misses" "memcache_decr_hits" "memcache_cas_misses" "memcache_cas_hits"
        "memcache_cas_badval" "memcache_auth_cmds" "memcache_auth_errors"; U64: "memcache_bytes_read" "memcache_bytes_written"; U32:
        "memcache_limit_maxbytes" "memcache_accepting_conns" "memcache_listen_disabled_num" "memcache_threads" "memcache_conn_yields";
        U64: "memcache_bytes"; U32: "memcache_curr_items" "memcache_total_items" "memcache_evictions"]),
Structure::new(0, 2201, fields![U32: "http_method_option_count" "http_method_get_count" "http_method_head_count"
        "http_method_post_count" "http_method_put_count" "http_method_delete_count" "http_method_trace_count"
        "http_methd_connect_count" "http_method_other_count" "http_status_1XX_count" "http_status_2XX_count"
        "http_status_3XX_count" "http_status_4XX_count" "http_status_5XX_count" "http_status_other_count"]),
Structure::new(0, 2202, fields![Text: "application"; U32: "status_OK" "errors_OTHER" "errors_TIMEOUT" "errors_INTERNAL_ERROR"
        "errors_BAD_REQUEST" "errors_FORBIDDEN" "errors_TOO_LARGE" "errors_NOT_IMPLEMENTED" "errors_NOT_FOUND"
        "errors_UNAVAILABLE" "errors_UNAUTHORIZED"]),
Structure::new(0, 2203, fields![U32: "user_time" "system_time"; U64: "memory_used" "memory_max"; U32: "files_open" "files_max"
        "connections_open" "connections_max"]),
Structure::new(0, 2204, fields![U32: "memcache_cmd_set" "memcache_cmd_touch" "memcache_cmd_flush" "memcache_get_hits"
        "memcache_get_misses" "memcache_delete_hits" "memcache_delete_misses" "memcache_incr_hits" "memcache_incr_misses"
        "memcache_decr_hits" "memcache_decr_misses" "memcache_cas_hits" "memcache_cas_misses" "memcache_cas_badval"
        "memcache_auth_cmds" "memcache_auth_errors" "memcache_threads" "memcache_conn_yields" "memcache_listen_disabled_num"
        "memcache_curr_connections" "memcache_rejected_connections" "memcache_total_connections" "memcache_connection_structures"
        "memcache_evictions" "memcache_reclaimed" "memcache_curr_items" "memcache_total_items"; U64: "memcache_bytes_read"
        "memcache_bytes_written" "memcache_bytes" "memcache_limit_maxbytes"]),
Structure::new(0, 2205, fields![U32: "vdi_sessions_current" "vdi_sessions_total" "vdi_sessions_duration" "vdi_rx_bytes"
        "vdi_tx_bytes" "vdi_rx_packets" "vdi_tx_packets" "vdi_rx_packets_lost" "vdi_tx_packets_lost" "vdi_rtt_min_ms"
        "vdi_rtt_max_ms" "vdi_rtt_avg_ms" "vdi_audio_rx_bytes" "vdi_audio_tx_bytes" "vdi_audio_tx_limit" "vdi_img_rx_bytes"
        "vdi_img_tx_bytes" "vdi_img_frames" "vdi_img_qual_min" "vdi_img_qual_max" "vdi_img_qual_avg" "vdi_usb_rx_bytes"
        "vdi_usb_tx_bytes"]),
Structure::new(0, 2206, fields![U32: "workers_active" "workers_idle" "workers_max" "requests_delayed" "requests_dropped"]),
Structure::new(0, 2207, fields![U32: "OVS_dp_hits" "OVS_dp_misses" "OVS_dp_lost" "OVS_dp_mask_hits" "OVS_dp_flows"
        "OVS_dp_masks"]),
Structure::new(0, 3000, fields![U32: "energy_voltage" "energy_current" "energy_real_power"; I32: "energy_power_factor"; U32:
        "energy_energy" "energy_errors"]),
Structure::new(0, 3001, fields![I32: "temperature_minimum" "temperature_maximum"; U32: "temperature_errors"]),
Structure::new(0, 3002, fields![I32: "humidity_relative"]),
Structure::new(0, 3003, fields![U32: "fans_total" "fans_failed" "fans_speed"]),
Structure::new(4413, 1, fields![Hundredths: "bst_device_uc" "bst_device_mc"]),
Structure::new(4413, 2, fields![Hundredths: "bst_port_ingress_uc" "bst_port_ingress_mc" "bst_port_egress_uc" "bst_port_egress_mc";
        Percentages: "bst_port_egress_queue_uc" "bst_port_egress_queue_mc"]),
Structure::new(4413, 3, fields![U32: "bcm_asic_host_entries" "bcm_host_entries_max" "bcm_ipv4_entries" "bcm_ipv4_entries_max"
        "bcm_ipv6_entries" "bcm_ipv6_entries_max" "bcm_ipv4_ipv6_entries" "bcm_ipv4_ipv6_entries_max" "bcm_long_ipv6_entries"
        "bcm_long_ipv6_entries_max" "bcm_total_routes" "bcm_total_routes_max" "bcm_ecmp_nexthops" "bcm_ecmp_nexthops_max"
        "bcm_mac_entries" "bcm_mac_entries_max" "bcm_ipv4_neighbors" "bcm_ipv6_neighbors" "bcm_ipv4_routes" "bcm_ipv6_routes"
        "bcm_acl_ingress_entries" "bcm_acl_ingress_entries_max" "bcm_acl_ingress_counters" "bcm_acl_ingress_counters_max"
        "bcm_acl_ingress_meters" "bcm_acl_ingress_meters_max" "bcm_acl_ingress_slices" "bcm_acl_ingress_slices_max"
        "bcm_acl_egress_entries" "bcm_acl_egress_entries_max" "bcm_acl_egress_counters" "bcm_acl_egress_counters_max"
        "bcm_acl_egress_meters" "bcm_acl_egress_meters_max" "bcm_acl_egress_slices" "bcm_acl_egress_slices_max"]),
Structure::new(5703, 1, fields![U32: "nvml_device_count" "nvml_processes" "nvml_gpu_mS" "nvml_mem_mS"; U64: "nvml_mem_bytes_total"
        "nvml_mem_bytes_free"; U32: "nvml_ecc_errors" "nvml_energy_mJ" "nvml_temperature_C" "nvml_fan_speed_pc"]),
];
