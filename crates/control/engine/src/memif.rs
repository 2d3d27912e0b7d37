//! The view of memif ports: the peer, and why earlier ones have left.
//!
//! The state comes from the driver's watch, which any thread may ask; the counts of reasons from the
//! port's counters. Runs on API threads, under the control side's lock.

use weir_api::{MemifDisconnects, Memifs, UpDown};
use weir_memif::{MemifStatus, Reason, Role};
use weir_port::Port;

use crate::control::{Attached, Control};

impl Control {
    /// All memif ports, in the order of their interfaces.
    pub(crate) fn memifs(&self) -> Memifs {
        let mut ports: Vec<_> = self
            .interfaces
            .iter()
            .filter_map(|(name, attached)| Some((attached.index, view(name, attached)?)))
            .collect();
        ports.sort_by_key(|(index, _)| *index);
        Memifs {
            ports: ports.into_iter().map(|(_, port)| port).collect(),
        }
    }
}

fn view(name: &str, attached: &Attached) -> Option<weir_api::Memif> {
    let port = attached.port.as_ref()?;
    let MemifStatus {
        config,
        connected,
        connects,
        peer,
        interface,
        rx_rings,
        tx_rings,
        ring_size,
        regions,
        last_parting,
    } = attached.peer.as_ref()?.watch.status();
    let said = |text: String| Some(text).filter(|text| connected && !text.is_empty());
    let role = match config.role {
        Role::Master => weir_api::MemifRole::Master,
        Role::Slave => weir_api::MemifRole::Slave,
    };
    let is_slave = config.role == Role::Slave;
    Some(weir_api::Memif {
        interface: name.to_owned(),
        socket: config.socket.to_string(),
        id: config.id,
        role,
        zero_copy: is_slave,
        secret: config.secret.is_some(),
        link: if connected { UpDown::Up } else { UpDown::Down },
        connects,
        peer: said(peer),
        peer_interface: said(interface),
        queues: config.queues as u32,
        rx_rings: rx_rings as u32,
        tx_rings: tx_rings as u32,
        ring_size: if connected {
            ring_size
        } else {
            config.ring_size
        } as u32,
        buffer_bytes: is_slave.then_some(config.buffer_size as u32),
        region_bytes: regions.into_iter().map(|bytes| bytes as u64).collect(),
        last_disconnect: last_parting,
        disconnects: disconnects(port.as_ref()),
    })
}

/// How often each reason came up, by the port's own counters.
fn disconnects(port: &dyn Port) -> Vec<MemifDisconnects> {
    let counters = port.counters();
    let of = |reason: Reason| {
        let named = |name: &str| name.strip_prefix("disconnect_") == Some(reason.name());
        let count = counters
            .iter()
            .find(|counter| named(&counter.name))
            .map_or(0, |counter| counter.value);
        MemifDisconnects {
            reason: reason.name().to_owned(),
            sentence: reason.sentence().to_owned(),
            count,
        }
    };
    Reason::ALL
        .map(of)
        .into_iter()
        .filter(|reason| reason.count > 0)
        .collect()
}
