//! A change of sFlow's settings in words, as a plan shows it.

use std::fmt;
use std::net::SocketAddr;

use super::display::or;
use crate::scalar::Host;
use crate::sflow::{Collector, Psample, Sflow};

/// Only what differs, in the file's words.
pub(super) fn changes(f: &mut fmt::Formatter<'_>, from: &Sflow, to: &Sflow) -> fmt::Result {
    let mut comma = " ";
    let mut change = |f: &mut fmt::Formatter<'_>, key: &str, from: String, to: String| {
        if from == to {
            return Ok(());
        }
        let written = write!(f, "{comma}{key} {from} -> {to}");
        comma = ", ";
        written
    };
    change(
        f,
        "sampling-rate",
        from.sampling_rate.to_string(),
        to.sampling_rate.to_string(),
    )?;
    change(
        f,
        "polling-interval",
        from.polling_interval.to_string(),
        to.polling_interval.to_string(),
    )?;
    change(
        f,
        "header-bytes",
        from.header_bytes.to_string(),
        to.header_bytes.to_string(),
    )?;
    change(
        f,
        "direction",
        from.direction.word().to_owned(),
        to.direction.word().to_owned(),
    )?;
    change(
        f,
        "drop-limit",
        from.drop_limit.to_string(),
        to.drop_limit.to_string(),
    )?;
    change(
        f,
        "encoding",
        format!("{:?}", from.encoding).to_lowercase(),
        format!("{:?}", to.encoding).to_lowercase(),
    )?;
    change(
        f,
        "agent",
        or(&from.agent, "default"),
        or(&to.agent, "default"),
    )?;
    change(f, "agent.cidr", agent_cidr(from), agent_cidr(to))?;
    change(
        f,
        "agent-sub-id",
        from.agent_sub_id.to_string(),
        to.agent_sub_id.to_string(),
    )?;
    change(
        f,
        "datagram-bytes",
        from.datagram_bytes.to_string(),
        to.datagram_bytes.to_string(),
    )?;
    let truth = |truth: bool| if truth { "on" } else { "off" }.to_owned();
    change(f, "osIndex", truth(from.os_index), truth(to.os_index))?;
    change(
        f,
        "ifOffset",
        from.if_offset.to_string(),
        to.if_offset.to_string(),
    )?;
    change(f, "collectors", collectors(from), collectors(to))?;
    change(f, "dns-sd", dns_sd(from), dns_sd(to))?;
    change(f, "psample", psample(from), psample(to))?;
    let no_longer = from
        .interfaces
        .keys()
        .filter(|name| !to.interfaces.contains_key(*name));
    for name in to.interfaces.keys().chain(no_longer) {
        change(
            f,
            &format!("interface {name}"),
            sampled_otherwise(from, name),
            sampled_otherwise(to, name),
        )?;
    }
    Ok(())
}

/// What is other than usual on an interface.
fn sampled_otherwise(sflow: &Sflow, name: &str) -> String {
    let Some(other) = sflow.interfaces.get(name) else {
        return "as usual".to_owned();
    };
    let each = [
        other
            .sampling_rate
            .map(|rate| format!("sampling-rate {rate}")),
        other
            .polling_interval
            .map(|interval| format!("polling-interval {interval}")),
        other
            .header_bytes
            .map(|bytes| format!("header-bytes {bytes}")),
        other
            .direction
            .map(|direction| format!("direction {}", direction.word())),
        other.os_index.map(|index| format!("osIndex {index}")),
    ];
    format!(
        "[{}]",
        each.into_iter().flatten().collect::<Vec<_>>().join(" ")
    )
}

fn agent_cidr(sflow: &Sflow) -> String {
    let each: Vec<String> = sflow.agent_cidr.iter().map(ToString::to_string).collect();
    format!("[{}]", each.join(" "))
}

fn collectors(sflow: &Sflow) -> String {
    let each: Vec<String> = sflow.collectors.iter().map(collector).collect();
    format!("[{}]", each.join(" "))
}

fn collector(collector: &Collector) -> String {
    let place = match &collector.address {
        Host::Address(address) => SocketAddr::new(*address, collector.port).to_string(),
        Host::Name(name) => format!("{name}:{}", collector.port),
    };
    let more = [
        collector
            .namespace
            .as_ref()
            .map(|namespace| format!("namespace {namespace}")),
        collector.source.map(|source| format!("source {source}")),
        (collector.dscp != 0).then(|| format!("dscp {}", collector.dscp)),
        collector.dev.as_ref().map(|dev| format!("dev {dev}")),
        collector
            .table
            .as_ref()
            .map(|table| format!("table {table}")),
        collector.host.then(|| "host".to_owned()),
        (!collector.drops).then(|| "no drops".to_owned()),
    ];
    let more: Vec<String> = more.into_iter().flatten().collect();
    if more.is_empty() {
        place
    } else {
        format!("{place} ({})", more.join(", "))
    }
}

fn dns_sd(sflow: &Sflow) -> String {
    sflow
        .dns_sd
        .as_ref()
        .map_or_else(|| "off".to_owned(), |wanted| or(&wanted.domain, "on"))
}

fn psample(sflow: &Sflow) -> String {
    let Some(Psample {
        group,
        egress_group,
        namespace,
    }) = &sflow.psample
    else {
        return "off".to_owned();
    };
    let inside = namespace
        .as_ref()
        .map_or_else(String::new, |namespace| format!(" in {namespace}"));
    format!("groups {group} and {egress_group}{inside}")
}
