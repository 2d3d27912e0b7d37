//! `l2xc-beside`: a cross connect without sFlow beside a sampled one in the same router.

use weir_port::interface::Input;

use super::l2xc;
use crate::case::{Case, Kind, Limit};
use crate::scene::{BESIDE, Scene};

pub(super) const CASE: Case = Case {
    name: "l2xc-beside",
    about: "a cross connect without sFlow beside a sampled one",
    kind: Kind::Packets {
        limit: Limit::Clocks(7.0),
        set,
    },
};

fn set(scene: &mut Scene) {
    l2xc::set(scene);
    scene.interface(BESIDE).input = Input::CrossConnect(BESIDE);
    scene.sampled = BESIDE;
}
