//! The cases, one file each.

mod acl;
mod bridge;
mod failover;
mod fib_load;
mod generate;
mod internet;
pub(crate) mod ip4;
pub(crate) mod ip4_full;
mod ip6;
mod ip6_full;
mod ipfix;
mod l2vpn;
mod l2xc;
mod l2xc_beside;
mod mix;
mod mpls;
mod police;
mod trace;
mod vectors;
mod vlan;

use crate::case::Case;

/// All of them, in the order of the report. `ip4` stands before those that are compared with it.
#[rustfmt::skip]
pub(crate) const ALL: &[Case] = &[
    l2xc::CASE,
    l2xc_beside::CASE,
    ip4::CASE,
    ip4_full::CASE,
    ip6::CASE,
    ip6_full::CASE,
    mix::SAME4,
    mix::SAME6,
    mix::MIX_2,
    mix::MIX_25,
    mix::MIX_50,
    internet::INTERNET,
    internet::EDGE,
    vectors::ONE,
    vectors::FOUR,
    vectors::SIXTEEN,
    vectors::SIXTY_FOUR,
    vectors::PORTS,
    vectors::IFINDEX,
    bridge::CASE,
    bridge::TAGGED,
    bridge::MIX,
    vlan::CASE,
    acl::THOUSAND,
    acl::TEN_THOUSAND,
    police::CASE,
    trace::CASE,
    mpls::SWAP,
    mpls::PUSH,
    mpls::POP,
    mix::PHP,
    mix::CORE,
    l2vpn::INTO,
    l2vpn::OUT_OF,
    ipfix::THOUSAND,
    ipfix::HUNDRED_THOUSAND,
    ipfix::MILLION,
    ipfix::FLOOD,
    ipfix::EXPORT,
    fib_load::CASE,
    failover::CASE,
    generate::FLOWS,
    generate::FIELDS,
];
