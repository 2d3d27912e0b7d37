//! A Weir master and a Weir slave that meet.

use std::sync::atomic::{AtomicU32, Ordering};

use weir_memif::{MemifConfig, Role, Socket};

use crate::common::{End, pool, wait_for};

/// A socket name that nobody else uses.
pub(crate) fn socket() -> Socket {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    Socket::Abstract(format!(
        "weir-memif-test-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    ))
}

/// Both ends, connected.
pub(crate) fn connected(change: impl Fn(&mut MemifConfig)) -> (End, End) {
    let mut config = MemifConfig::new(Role::Master, socket(), 3);
    config.ring_size = 256;
    change(&mut config);
    let mut master = End::open(&config, &pool(4096));
    let mut slave = End::open(
        &MemifConfig {
            role: Role::Slave,
            ..config
        },
        &pool(4096),
    );
    meet(&mut master, &mut slave);
    (master, slave)
}

/// Waits until both ends know of each other and the slave has offered buffers.
pub(crate) fn meet(master: &mut End, slave: &mut End) {
    wait_for("both ends are up", || master.is_up() && slave.is_up());
    wait_for("the slave offers buffers", || {
        master.idle();
        slave.idle();
        slave.pool.usage().lent > 0
    });
}
