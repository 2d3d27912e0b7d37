//! `ip4-trace`: `ip4` while a trace waits for packets of another port.

use super::ip4;
use crate::case::{Case, Kind, Limit};
use crate::scene::{BESIDE, Scene};

pub(super) const CASE: Case = Case {
    name: "ip4-trace",
    about: "ip4 while a trace waits for packets of another port",
    kind: Kind::Packets {
        limit: Limit::TimesIp4(1.05),
        set,
    },
};

fn set(scene: &mut Scene) {
    ip4::set(scene);
    scene.traced = Some(BESIDE);
}
