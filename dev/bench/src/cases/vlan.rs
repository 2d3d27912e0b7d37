//! `vlan-xc`: frames of one VLAN of a port leave as those of another VLAN of another port: two sub-interfaces, cross
//! connected. 64k flows in shuffled order, as in `ip4`.

use weir_port::interface::Input;
use weir_wire::build;

use crate::case::{Case, Kind, Limit};
use crate::scene::{FRAME, IN, OUT, Scene, udp4};

pub(super) const CASE: Case = Case {
    name: "vlan-xc",
    about: "a cross connect of two sub-interfaces, one VLAN for another",
    kind: Kind::Packets {
        limit: Limit::TimesIp4(1.5),
        set,
    },
};

const FLOWS: u32 = 65_536;
/// The VLANs of the port where frames come in, and of the one where they leave.
const VLANS: [u16; 2] = [100, 200];

fn set(scene: &mut Scene) {
    let first = scene.tables.interfaces.len() as u32;
    scene.add_vlan(IN, VLANS[0], Input::CrossConnect(first + 1));
    scene.add_vlan(OUT, VLANS[1], Input::CrossConnect(first));
    for number in 0..FLOWS {
        let flow = number.wrapping_mul(40_503) % FLOWS;
        scene
            .frames
            .push(&build::tagged(&udp4(flow, 0x0a01_0000 + flow), VLANS[0], 0)[..FRAME]);
    }
    scene.check = Box::new(|sent, got| {
        let wanted = [&sent[..14], &VLANS[1].to_be_bytes(), &sent[16..]].concat();
        if got == wanted {
            Ok(())
        } else {
            Err(format!("not retagged as it should be: {got:02x?}"))
        }
    });
}
