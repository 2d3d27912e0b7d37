//! What passes in a second.

use serde::Serialize;
use weir_api::UpDown;

use super::{Cell, Column, Screen, Style, Table, units};

/// One interface's packets, bits and drops per second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Rate {
    /// Its name.
    pub(crate) interface: String,
    /// Its link.
    pub(crate) link: UpDown,
    /// Packets received per second.
    pub(crate) rx_packets: f64,
    /// Bits received per second, FCS not counted.
    pub(crate) rx_bits: f64,
    /// Packets sent per second.
    pub(crate) tx_packets: f64,
    /// Bits sent per second, FCS not counted.
    pub(crate) tx_bits: f64,
    /// Packets dropped per second.
    pub(crate) drops: f64,
}

/// `monitor interface`: a line an interface.
pub(crate) fn interfaces(rates: &[Rate], screen: &Screen) -> String {
    if rates.is_empty() {
        return "no interfaces\n".to_owned();
    }
    let mut table = Table::new([
        Column::long("Interface"),
        Column::text("Link").spare(1),
        Column::number("RX packets/s"),
        Column::number("RX bit/s").spare(2),
        Column::number("TX packets/s"),
        Column::number("TX bit/s").spare(3),
        Column::number("Drops/s"),
    ]);
    for rate in rates {
        table.row([
            Cell::from(&rate.interface),
            Cell::styled(
                rate.link,
                if rate.link == UpDown::Up {
                    Style::Good
                } else {
                    Style::Plain
                },
            ),
            units::amount(rate.rx_packets).into(),
            units::amount(rate.rx_bits).into(),
            units::amount(rate.tx_packets).into(),
            units::amount(rate.tx_bits).into(),
            Cell::styled(
                units::amount(rate.drops),
                if rate.drops > 0.0 {
                    Style::Warning
                } else {
                    Style::Plain
                },
            ),
        ]);
    }
    table.draw(screen)
}
