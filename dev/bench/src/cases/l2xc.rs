//! `l2xc`: a cross connect of two ports.

use weir_port::interface::Input;

use crate::case::{Case, Kind, Limit};
use crate::scene::{IN, OUT, Scene};

pub(super) const CASE: Case = Case {
    name: "l2xc",
    about: "a cross connect of two ports",
    kind: Kind::Packets {
        limit: Limit::Clocks(7.0),
        set,
    },
};

/// Also what `l2xc-beside` starts from.
pub(super) fn set(scene: &mut Scene) {
    scene.interface(IN).input = Input::CrossConnect(OUT);
    (0..256).for_each(|flow| scene.udp4(flow, 0x0a01_0000 + flow));
    scene.check = Box::new(|sent, got| {
        if sent == got {
            Ok(())
        } else {
            Err("changed on a cross connect".into())
        }
    });
}
