//! What is known about agents, for people and as JSON.

use std::io::{self, Write};

use serde_json::{Value, json};
use weir_flowfmt::sflow::ledger::{Agent, Direction, Estimate, Ledger, Numbers, Verdict};

use crate::failure::Failure;

/// One JSON object.
pub(crate) fn json(ledger: &Ledger, to: &mut dyn Write) -> Result<(), Failure> {
    let agents: Vec<Value> = ledger
        .agents()
        .map(|(address, sub_agent, agent)| {
            let sources: Vec<Value> = agent.sources().map(|(class, index, source)| {
            let estimates: Vec<Value> = agent.estimates(class, index).iter().map(estimate).collect();
            json!({
                "source": format!("{class}:{index}"), "sampling_rate": source.rate, "pool": source.pool(), "dropped": source.dropped(),
                "flow_samples": numbers(&source.flows), "counter_samples": numbers(&source.counters), "estimates": estimates,
            })
        }).collect();
            let [flows, counters, discards] = agent.samples;
            json!({
                "agent": address.map(|address| address.to_string()), "sub_agent": sub_agent, "datagrams": numbers(&agent.datagrams),
                "flow_samples": flows, "counter_samples": counters, "discard_samples": discards, "sources": sources,
            })
        })
        .collect();
    let object = json!({ "agents": agents, "untracked_datagrams": ledger.untracked });
    writeln!(
        to,
        "{}",
        serde_json::to_string_pretty(&object).map_err(Failure::said)?
    )?;
    Ok(())
}

fn numbers(numbers: &Numbers) -> Value {
    json!({
        "received": numbers.received, "lost": numbers.lost, "loss_percent": numbers.loss_percent(), "reordered": numbers.reordered,
        "duplicates": numbers.duplicates, "restarts": numbers.restarts,
    })
}

fn estimate(estimate: &Estimate) -> Value {
    let (octets_off, _) = estimate.octets_off();
    json!({
        "direction": direction(estimate), "samples": estimate.samples, "estimated_packets": estimate.estimated_packets,
        "counted_packets": estimate.counted_packets, "packets_off_percent": finite(estimate.packets_off()),
        "packet_bound_percent": estimate.packet_bound, "estimated_octets": estimate.estimated_octets,
        "estimated_octets_without_fcs": estimate.estimated_octets_without_fcs, "counted_octets": estimate.counted_octets,
        "octets_off_percent": finite(octets_off), "octet_bound_percent": estimate.octet_bound,
        "interface_counts_fcs": estimate.counts_fcs(), "within_bound": estimate.within(), "verdict": verdict(estimate),
        "samples_of_unknown_direction": estimate.undirected,
    })
}

fn verdict(estimate: &Estimate) -> &'static str {
    match estimate.verdict() {
        Verdict::Agrees => "agrees",
        Verdict::Disagrees => "disagrees",
        Verdict::PartlySampled => "partly-sampled",
        Verdict::DirectionUnknown => "direction-unknown",
    }
}

/// The same for people.
fn sentence(estimate: &Estimate) -> String {
    match (estimate.verdict(), estimate.counts_fcs()) {
        (Verdict::Agrees, Some(true)) => "agrees, FCS counted".to_owned(),
        (Verdict::Agrees, Some(false)) => "agrees, FCS not counted".to_owned(),
        (Verdict::Agrees, None) => "agrees".to_owned(),
        (Verdict::Disagrees, _) => "DISAGREES".to_owned(),
        (Verdict::PartlySampled, _) => "partly sampled".to_owned(),
        (Verdict::DirectionUnknown, _) => {
            format!("direction of {} samples not known", estimate.undirected)
        }
    }
}

/// JSON has no infinity.
fn finite(value: f64) -> Value {
    if value.is_finite() {
        json!(value)
    } else {
        Value::Null
    }
}

fn direction(estimate: &Estimate) -> &'static str {
    match estimate.direction {
        Direction::Ingress => "ingress",
        Direction::Egress => "egress",
    }
}

/// Two tables: agents, and their interfaces' samples beside their counters.
pub(crate) fn text(ledger: &Ledger, to: &mut dyn Write) -> io::Result<()> {
    writeln!(
        to,
        "{:<40}{:>8}{:>12}{:>10}{:>9}{:>11}{:>11}{:>9}{:>12}{:>10}{:>10}",
        "Agent",
        "Sub",
        "Datagrams",
        "Lost",
        "Loss %",
        "Reordered",
        "Duplicate",
        "Restart",
        "Flows",
        "Counters",
        "Discards"
    )?;
    for (address, sub_agent, agent) in ledger.agents() {
        let name = address.map_or("-".to_owned(), |address| address.to_string());
        let numbers = &agent.datagrams;
        let [flows, counters, discards] = agent.samples;
        writeln!(
            to,
            "{name:<40}{sub_agent:>8}{:>12}{:>10}{:>9.3}{:>11}{:>11}{:>9}{flows:>12}{counters:>10}{discards:>10}",
            numbers.received,
            numbers.lost,
            numbers.loss_percent(),
            numbers.reordered,
            numbers.duplicates,
            numbers.restarts
        )?;
    }
    if ledger.untracked > 0 {
        writeln!(
            to,
            "and {} datagrams of agents that are too many to be kept",
            ledger.untracked
        )?;
    }
    for (address, sub_agent, agent) in ledger
        .agents()
        .filter(|(_, _, agent)| agent.sources().next().is_some())
    {
        let name = address.map_or("-".to_owned(), |address| address.to_string());
        writeln!(to, "\n{name}, sub-agent {sub_agent}")?;
        sources(agent, to)?;
    }
    Ok(())
}

fn sources(agent: &Agent, to: &mut dyn Write) -> io::Result<()> {
    writeln!(
        to,
        "{:>14}{:>9}{:>10}{:>8}{:>9}  {:<8}{:>14}{:>14}{:>8}{:>9}{:>16}{:>16}{:>8}{:>9}  Verdict",
        "Source",
        "Rate",
        "Samples",
        "Lost",
        "Dropped",
        "",
        "Pkts est",
        "Pkts count",
        "Off %",
        "Bound %",
        "Octets est",
        "Octets count",
        "Off %",
        "Bound %"
    )?;
    for (class, index, source) in agent.sources() {
        let name = format!("{class}:{index}");
        let (rate, samples, lost, dropped) = (
            source.rate,
            source.flows.received,
            source.flows.lost,
            source.dropped(),
        );
        write!(
            to,
            "{name:>14}{rate:>9}{samples:>10}{lost:>8}{dropped:>9}  "
        )?;
        let mut found = false;
        for estimate in agent.estimates(class, index) {
            if found {
                write!(to, "{:52}", "")?;
            }
            found = true;
            let (octets_off, with_fcs) = estimate.octets_off();
            let octets = if with_fcs {
                estimate.estimated_octets
            } else {
                estimate.estimated_octets_without_fcs
            };
            writeln!(
                to,
                "{:<8}{:>14.0}{:>14}{:>8.2}{:>9.2}{octets:>16.0}{:>16}{octets_off:>8.2}{:>9.2}  {}",
                direction(&estimate),
                estimate.estimated_packets,
                estimate.counted_packets,
                estimate.packets_off(),
                estimate.packet_bound,
                estimate.counted_octets,
                estimate.octet_bound,
                sentence(&estimate)
            )?;
        }
        if !found {
            // Who samples nothing, as a sub-interface or the host, cannot have an estimate.
            let why = if source.flows.received > 0 {
                "no two counter samples with flow samples between them"
            } else {
                "-"
            };
            writeln!(to, "{:102}  {why}", "")?;
        }
    }
    Ok(())
}
