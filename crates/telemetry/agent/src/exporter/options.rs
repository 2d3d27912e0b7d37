//! What is reported besides flows (RFC 7011 section 4, RFC 5477): how the meter and the exporter did, how packets were
//! sampled (also that they were not: collectors drop flows of exporters whose rate they do not know), which fields are
//! keys, and the names of interfaces and tables. Names have fixed lengths: nfdump 1.7 refuses options of variable ones.

use std::collections::BTreeMap;

use weir_flowfmt::ipfix::template::{Field, Template};

use super::fields::Sampler;
use super::{Load, Named};

/// Templates of options have numbers from here on.
const FIRST: u16 = 1024;
/// Octets of names.
const NAME: u16 = 32;

/// What the records say.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    pub(super) domain: u32,
    pub(super) message_octets: u64,
    pub(super) messages: u64,
    pub(super) flows: u64,
    pub(super) ignored: (u64, u64),
    pub(super) not_sent: Load,
    pub(super) sampling: u32,
    /// Of record sets with a rate of their own, by number.
    pub(super) rates: BTreeMap<u8, u32>,
    pub(super) timeouts: (u16, u16),
    /// Milliseconds since 1970.
    pub(super) started: u64,
    /// Template and `flowKeyIndicator`.
    pub(super) keys: Vec<(u16, u64)>,
    pub(super) interfaces: Vec<Named>,
    pub(super) vrfs: Vec<Named>,
}

/// Number of scopes, then fields.
const TEMPLATES: [(u16, &[(u16, u16)]); 11] = [
    // 4.1: the metering process; its domain, exportedOctet-, -Message- and -FlowRecordTotalCount.
    (1, &[(149, 4), (40, 8), (41, 8), (42, 8)]),
    // 4.2: ignoredPacket- and -OctetTotalCount.
    (1, &[(149, 4), (164, 8), (165, 8)]),
    // 4.3: the exporting process; notSentFlow-, -Packet- and -OctetTotalCount.
    (1, &[(144, 4), (166, 8), (167, 8), (168, 8)]),
    // 4.4: flowKeyIndicator of a template.
    (1, &[(145, 2), (173, 8)]),
    // RFC 5476, 6.5.2: selectorAlgorithm and samplingProbability of a selector; behind them samplingPacketInterval and -Space, by
    // which later versions of nfdump know samplers of IPFIX.
    (1, &[(302, 8), (304, 2), (311, 8), (305, 4), (306, 4)]),
    // Names, as a property of the interface; below, descriptions, as nfdump reads names: numbers are fields, not scopes, and
    // nothing stands between them. So, too, the names of tables.
    (1, &[(10, 4), (82, NAME)]),
    (1, &[(149, 4), (234, 4), (236, NAME)]),
    // flowActiveTimeout, flowIdleTimeout, systemInitTimeMilliseconds, and samplingInterval once more: nfdump 1.7.1 takes
    // the rate only where no algorithm stands beside it, later ones only where one does.
    (1, &[(149, 4), (36, 2), (37, 2), (160, 8), (34, 4)]),
    // The rate as collectors of NetFlow know it: samplingInterval, samplingAlgorithm; of all that this domain tells.
    (1, &[(149, 4), (34, 4), (35, 1)]),
    (1, &[(149, 4), (10, 4), (83, NAME)]),
    // A sampler by its number as collectors of NetFlow know it: samplerId, samplerMode, samplerRandomInterval.
    (1, &[(149, 4), (48, 1), (49, 1), (50, 4)]),
];

/// The templates of all options.
pub(super) fn templates() -> Vec<Template> {
    let fields = |fields: &[(u16, u16)]| {
        fields
            .iter()
            .map(|(number, length)| Field::iana(*number, *length))
            .collect()
    };
    TEMPLATES
        .iter()
        .enumerate()
        .map(|(place, (scopes, list))| {
            Template::options(FIRST + place as u16, *scopes, fields(list))
        })
        .collect()
}

/// All records, each with the number of its template.
pub(super) fn records(numbers: &Numbers) -> Vec<(u16, Vec<u8>)> {
    let mut records = Vec::new();
    let mut add = |place: u16, parts: &[&[u8]]| records.push((FIRST + place, parts.concat()));
    let domain = numbers.domain.to_be_bytes();
    let long = u64::to_be_bytes;
    add(
        0,
        &[
            &domain,
            &long(numbers.message_octets),
            &long(numbers.messages),
            &long(numbers.flows),
        ],
    );
    add(
        1,
        &[&domain, &long(numbers.ignored.0), &long(numbers.ignored.1)],
    );
    let lost = numbers.not_sent;
    add(
        2,
        &[
            &1_u32.to_be_bytes(),
            &long(lost.flows),
            &long(lost.packets),
            &long(lost.octets),
        ],
    );
    for (template, indicator) in &numbers.keys {
        add(3, &[&template.to_be_bytes(), &long(*indicator)]);
    }
    // Each packet has the same chance, whatever was chosen before: selectorAlgorithm 4, uniform probabilistic.
    let rate = numbers.sampling.max(1);
    let own = numbers
        .rates
        .iter()
        .map(|(set, rate)| Sampler::of_set(*set, *rate));
    let samplers: Vec<Sampler> = [Sampler::usual(rate)].into_iter().chain(own).collect();
    for sampler in &samplers {
        add(
            4,
            &[
                &long(sampler.number.into()),
                &4_u16.to_be_bytes(),
                &(1.0 / f64::from(sampler.rate.max(1))).to_be_bytes(),
                &1_u32.to_be_bytes(),
                &(sampler.rate.max(1) - 1).to_be_bytes(),
            ],
        );
    }
    for interface in &numbers.interfaces {
        add(
            5,
            &[&interface.number.to_be_bytes(), &name(&interface.name)],
        );
    }
    for vrf in &numbers.vrfs {
        add(6, &[&domain, &vrf.number.to_be_bytes(), &name(&vrf.name)]);
    }
    let (active, idle) = numbers.timeouts;
    add(
        7,
        &[
            &domain,
            &active.to_be_bytes(),
            &idle.to_be_bytes(),
            &long(numbers.started),
            &rate.to_be_bytes(),
        ],
    );
    // 1: deterministic, as it is when every packet is taken; 2: random.
    add(
        8,
        &[
            &domain,
            &rate.to_be_bytes(),
            &[if rate == 1 { 1 } else { 2 }],
        ],
    );
    for interface in &numbers.interfaces {
        // One that nobody described is shown by its name.
        let text = if interface.description.is_empty() {
            &interface.name
        } else {
            &interface.description
        };
        add(9, &[&domain, &interface.number.to_be_bytes(), &name(text)]);
    }
    // samplerMode 2: random.
    for sampler in &samplers {
        let interval = sampler.rate.max(1).to_be_bytes();
        add(10, &[&domain, &[sampler.number, 2], &interval]);
    }
    records
}

/// A name with zeros behind it; what is longer is cut, between two letters.
fn name(text: &str) -> [u8; NAME as usize] {
    let mut octets = [0; NAME as usize];
    let end = text.floor_char_boundary(NAME.into());
    for (place, octet) in octets.iter_mut().zip(text.bytes().take(end)) {
        *place = octet;
    }
    octets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_as_long_as_their_templates_say() {
        let named = Named {
            number: 1,
            name: "wan".into(),
            description: "ü".repeat(40),
        };
        let numbers = Numbers {
            keys: vec![(256, 1)],
            interfaces: vec![named.clone()],
            vrfs: vec![named],
            sampling: 1,
            ..Numbers::default()
        };
        let (templates, records) = (templates(), records(&numbers));
        assert_eq!(records.len(), templates.len());
        for (template, (id, octets)) in templates.iter().zip(&records) {
            assert_eq!((template.id, template.fixed()), (*id, Some(octets.len())));
        }
    }

    /// Octets worked out by hand: selectorId, uniform probabilistic sampling (4), the probability as a double, one packet and those
    /// between; and in the words of NetFlow 9 domain, samplerId, mode and interval.
    #[test]
    fn samplers_with_their_rates() {
        let numbers = Numbers {
            sampling: 2,
            rates: [(3, 16)].into(),
            ..Numbers::default()
        };
        let all = records(&numbers);
        let of = |template: u16| -> Vec<&[u8]> {
            let records = all.iter().filter(|(id, _)| *id == template);
            records.map(|(_, octets)| octets.as_slice()).collect()
        };
        let half = b"\0\0\0\0\0\0\0\x01\0\x04\x3f\xe0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x01".as_slice();
        let sixteenth =
            b"\0\0\0\0\0\0\0\x05\0\x04\x3f\xb0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x0f".as_slice();
        assert_eq!(of(FIRST + 4), [half, sixteenth]);
        let words = [
            b"\0\0\0\0\x01\x02\0\0\0\x02".as_slice(),
            b"\0\0\0\0\x05\x02\0\0\0\x10",
        ];
        assert_eq!(of(FIRST + 10), words);
    }
}
