//! Counter record 0:2 out of what a driver counts.
//!
//! Every driver has names of its own for the same things. The table has those of the common ones; a
//! driver of whose names none is in it has no record. What it does not count is all ones, always, since
//! a counter must be available all the time or never.

use weir_flowfmt::sflow::{EthernetCounters, UNKNOWN_COUNTER_32};

/// Names of `ethtool -S`, in the order of the record's fields.
const NAMES: [&[&str]; 13] = [
    &[
        "rx_align_errors",
        "align_errors",
        "rx_frame_errors",
        "rx_alignment_errors",
        "rx_align_err",
    ],
    &[
        "rx_crc_errors",
        "crc_errors",
        "rx_crc_errors_phy",
        "rx_fcs_errors",
        "rx_crc_errors.nic",
        "rx_crc_err",
        "port.rx_crc_errors",
    ],
    &[
        "tx_single_coll_ok",
        "tx_single_collisions",
        "single_collisions",
        "tx_single_collision_frames",
    ],
    &[
        "tx_multi_coll_ok",
        "tx_mult_collisions",
        "multi_collisions",
        "tx_multiple_collisions",
        "tx_multiple_collision_frames",
    ],
    &["sqe_test_errors"],
    &["tx_deferred_ok", "tx_deferred", "deferred"],
    &[
        "tx_abort_late_coll",
        "tx_late_collisions",
        "late_collisions",
    ],
    &[
        "tx_aborted_errors",
        "tx_excess_collisions",
        "excessive_collisions",
        "tx_excessive_collisions",
    ],
    &["tx_mac_errors", "tx_internal_mac_errors"],
    &[
        "tx_carrier_errors",
        "carrier_sense_errors",
        "tx_carrier_sense_errors",
    ],
    &[
        "rx_long_length_errors",
        "rx_oversize",
        "rx_oversize_pkts_phy",
        "rx_oversize.nic",
        "rx_frame_too_longs",
        "port.rx_oversize",
    ],
    &["rx_mac_errors", "rx_internal_mac_errors"],
    &[
        "rx_symbol_errors",
        "symbol_errors",
        "rx_symbol_err_phy",
        "port.symbol_errors",
    ],
];

/// The record, if the driver counts anything that is in it.
#[must_use]
pub fn ethernet_counters(statistics: &[(String, u64)]) -> Option<EthernetCounters> {
    // 32 bits of each, which wrap.
    let find = |names: &[&str]| {
        statistics
            .iter()
            .find(|(name, _)| names.contains(&name.as_str()))
            .map(|(_, value)| *value as u32)
    };
    let found = NAMES.map(find);
    if found.iter().all(Option::is_none) {
        return None;
    }
    let [
        alignment,
        fcs,
        single,
        multiple,
        sqe,
        deferred,
        late,
        excessive,
        tx_mac,
        carrier,
        long,
        rx_mac,
        symbol,
    ] = found.map(|value| value.unwrap_or(UNKNOWN_COUNTER_32));
    Some(EthernetCounters {
        alignment_errors: alignment,
        fcs_errors: fcs,
        single_collisions: single,
        multiple_collisions: multiple,
        sqe_test_errors: sqe,
        deferred_transmissions: deferred,
        late_collisions: late,
        excessive_collisions: excessive,
        internal_mac_transmit_errors: tx_mac,
        carrier_sense_errors: carrier,
        frame_too_longs: long,
        internal_mac_receive_errors: rx_mac,
        symbol_errors: symbol,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drivers_names_are_found_and_what_it_lacks_is_unknown() {
        let named = |list: &[(&str, u64)]| {
            list.iter()
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            ethernet_counters(&named(&[("rx_queue_0_packets", 7), ("rx_bytes", 9)])),
            None
        );
        let e1000 = [
            ("rx_crc_errors", 3),
            ("rx_align_errors", 1),
            ("tx_single_coll_ok", (1 << 32) + 2),
            ("rx_long_length_errors", 4),
        ];
        let found = ethernet_counters(&named(&e1000)).unwrap();
        assert_eq!(
            (
                found.fcs_errors,
                found.alignment_errors,
                found.single_collisions,
                found.frame_too_longs
            ),
            (3, 1, 2, 4)
        );
        assert_eq!(
            (found.symbol_errors, found.carrier_sense_errors),
            (u32::MAX, u32::MAX)
        );
        let mlx5 = ethernet_counters(&named(&[
            ("rx_crc_errors_phy", 5),
            ("rx_symbol_err_phy", 6),
        ]))
        .unwrap();
        assert_eq!((mlx5.fcs_errors, mlx5.symbol_errors), (5, 6));
    }
}
