//! Commands that ask a running router: `show`, `clear` and `trace`.
//!
//! Each asks once, and prints the reply as JSON just as it came, or as a table.

use std::io::Write;

use serde::Serialize;
use weir_api::{Clear, Client, Family, Routes, Trace, TraceRequest};

use crate::cli::{
    ClearWhat, FlowAspect, FlowBy, FlowGroupWord, FlowTopArgs, InterfaceAspect, RouteAspect,
    SflowPart, Show, ShowArgs, ShowFeature, ShowIp, ShowLinux, ShowMpls, ShowRouteArgs,
    ShowSflowArgs, ShowVxlan, TraceAddArgs, TraceCommand, TraceShowArgs, Where, WhyArgs,
};
use crate::commands::{events, monitor};
use crate::failure::{Failure, USAGE};
use crate::render::{self, Screen};

/// Where the output of a `show` goes, and in which form.
pub(crate) struct Output<'a> {
    json: bool,
    screen: Screen,
    to: &'a mut dyn Write,
}

impl<'a> Output<'a> {
    /// Output to standard output, through `to`.
    pub(crate) fn new(json: bool, to: &'a mut dyn Write) -> Self {
        Self {
            json,
            screen: Screen::of_stdout(),
            to,
        }
    }

    /// A reply, as JSON or drawn.
    pub(crate) fn put<T: Serialize>(
        &mut self,
        reply: &T,
        draw: impl FnOnce(&T, &Screen) -> String,
    ) -> Result<(), Failure> {
        if self.json {
            return self.json(reply);
        }
        self.to.write_all(draw(reply, &self.screen).as_bytes())?;
        Ok(())
    }

    fn json<T: Serialize>(&mut self, reply: &T) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(reply).map_err(Failure::said)?;
        writeln!(self.to, "{text}")?;
        Ok(())
    }
}

/// `weir show`.
pub(crate) fn show(
    args: &ShowArgs,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    if let Show::Events(what) = &args.what {
        return events::execute(what, at, json, to);
    }
    let client = at.client()?;
    let Some(interval) = args.watch else {
        return show_once(&client, &args.what, &mut Output::new(json, to));
    };
    monitor::repeat(interval, true, to, |to| {
        let mut text = Vec::new();
        show_once(&client, &args.what, &mut Output::new(json, &mut text))?;
        to.write_all(monitor::picture(&String::from_utf8_lossy(&text)).as_bytes())?;
        Ok(true)
    })
}

fn show_once(client: &Client, what: &Show, output: &mut Output<'_>) -> Result<(), Failure> {
    match what {
        Show::Interface(what) => match &what.aspect {
            None => show_interface(client, what.name.as_deref(), output),
            Some(InterfaceAspect::Addr(of)) => output.put(
                &client.interfaces(of.interface.as_deref())?,
                render::interface::addresses,
            ),
            Some(InterfaceAspect::RxPlacement(of)) => {
                show_rx_placement(client, of.interface.as_deref(), output)
            }
        },
        Show::Hardware(what) => {
            let draw = |reply: &_, screen: &_| render::hardware::hardware(reply, what.all, screen);
            output.put(&client.hardware(what.interface.as_deref())?, draw)
        }
        Show::RxPlacement(of) => show_rx_placement(client, of.interface.as_deref(), output),
        Show::Feature(ShowFeature::Interface(of)) => output.put(
            &client.features(of.interface.as_deref())?,
            render::forwarding::features,
        ),
        Show::Pseudowire(of) => output.put(
            &client.pseudowires(of.interface.as_deref())?,
            render::forwarding::pseudowires,
        ),
        Show::Linux(of) => {
            let render: fn(&weir_api::Linux, &render::Screen) -> String = match of.what {
                None => render::linux::all,
                Some(ShowLinux::Interface) => render::linux::interfaces,
                Some(ShowLinux::Feed) => render::linux::feed,
                Some(ShowLinux::Audit) => render::linux::audit,
                Some(ShowLinux::Punt) => render::linux::punt,
            };
            output.put(&client.linux()?, render)
        }
        Show::Log(args) => output.put(
            &client.log(args.limit, args.level.as_deref())?,
            render::event::log,
        ),
        Show::Bond(of) => output.put(&client.bonds(of.interface.as_deref())?, render::bond::bonds),
        Show::Lacp(of) => output.put(&client.bonds(of.interface.as_deref())?, render::bond::lacp),
        Show::Vxlan(ShowVxlan::Tunnel(of)) => output.put(
            &client.vxlan_tunnels(of.interface.as_deref())?,
            render::vxlan::tunnels,
        ),
        Show::Memif(of) => output.put(
            &client.memif(of.interface.as_deref())?,
            render::memif::memif,
        ),
        Show::BridgeDomain(of) => output.put(
            &client.bridge_domains(of.bridge.as_deref())?,
            render::bridge::domains,
        ),
        Show::L2fib(of) => output.put(&client.l2fib(of.bridge.as_deref())?, render::bridge::l2fib),
        Show::Runtime => output.put(&client.runtime()?, render::runtime::runtime),
        Show::Errors(what) => output.put(
            &client.errors(what.interface.as_deref(), what.by_worker)?,
            render::runtime::errors,
        ),
        Show::Neighbors(of) => show_neighbors(client, of.interface.as_deref(), None, output),
        Show::Ip(ShowIp::Neighbors(of)) => {
            show_neighbors(client, of.interface.as_deref(), Some(Family::Ipv4), output)
        }
        Show::Ip6(ShowIp::Neighbors(of)) => {
            show_neighbors(client, of.interface.as_deref(), Some(Family::Ipv6), output)
        }
        Show::Route(what) => show_routes(client, what, None, output),
        Show::Ip(ShowIp::Fib(what)) => show_routes(client, what, Some(Family::Ipv4), output),
        Show::Ip6(ShowIp::Fib(what)) => show_routes(client, what, Some(Family::Ipv6), output),
        Show::Adjacency(of) => show_adjacency(client, of.which.as_deref(), output),
        Show::Acl(what) => output.put(
            &client.acls(what.acl.as_deref(), what.interface.as_deref())?,
            render::acl::acls,
        ),
        Show::Mpls(ShowMpls::Fib(what)) => show_labels(client, what.label, output),
        Show::Buffers => output.put(&client.buffers()?, render::hardware::buffers),
        Show::Sflow(what) => show_sflow(client, what, output),
        Show::Flow(what) => show_flow(client, what.aspect.as_ref(), output),
        Show::Trace(what) => show_trace(client, what, output),
        Show::Pcap => output.put(&client.captures()?, render::pcap::captures),
        Show::Totals => output.put(&client.totals()?, render::runtime::totals),
        Show::Config if output.json => output.json(&client.config()?),
        Show::Config => output.put(&client.config_dump()?, |dump, screen| {
            render::config::file(&dump.yaml, screen)
        }),
        // Those do not end by themselves: `show` does not come here with them.
        Show::Events(_) => Ok(()),
        Show::System => output.put(&client.system()?, render::system::system),
        Show::Version => output.put(&client.version()?, render::version::version),
    }
}

fn show_sflow(
    client: &Client,
    what: &ShowSflowArgs,
    output: &mut Output<'_>,
) -> Result<(), Failure> {
    let mut reply = client.sflow()?;
    if let Some(name) = &what.interface {
        if what.part == Some(SflowPart::Collector) {
            return Err(Failure::Coded(
                USAGE,
                "collectors have no part of an interface; leave its name out".to_owned(),
            ));
        }
        // One that is not there is reported as such; one that is not sampled has nothing to show.
        client.interfaces(Some(name))?;
        reply.interfaces.retain(|it| it.interface == *name);
        reply.drops.retain(|it| it.interface.as_ref() == Some(name));
        if what.part == Some(SflowPart::Interface) && reply.interfaces.is_empty() {
            return Err(Failure::said(format!("interface {name} is not sampled")));
        }
    }
    match what.part {
        None => output.put(&reply, render::sflow::sflow),
        Some(SflowPart::Interface) => output.put(&reply.interfaces, |them, screen| {
            render::sflow::interfaces(them, screen)
        }),
        Some(SflowPart::Collector) => output.put(&reply.collectors, |them, screen| {
            render::sflow::collectors(them, screen)
        }),
        Some(SflowPart::Drops) => output.put(&reply.drops, |them, screen| {
            render::sflow::drops(them, screen)
        }),
    }
}

fn show_interface(
    client: &Client,
    name: Option<&str>,
    output: &mut Output<'_>,
) -> Result<(), Failure> {
    let reply = client.interfaces(name)?;
    match name {
        None => output.put(&reply, render::interface::list),
        Some(_) => output.put(&reply, render::interface::detail),
    }
}

fn show_flow(
    client: &Client,
    aspect: Option<&FlowAspect>,
    output: &mut Output<'_>,
) -> Result<(), Failure> {
    let (which, top) = match aspect {
        None => return output.put(&client.ipfix()?, render::flow::summary),
        Some(FlowAspect::Exporter) => return output.put(&client.ipfix()?, render::flow::exporter),
        Some(FlowAspect::Template) => return output.put(&client.ipfix()?, render::flow::templates),
        Some(FlowAspect::Table(which)) => (which, None),
        Some(FlowAspect::Top(top)) => (&top.which, Some(top)),
    };
    let number = |number: Option<u16>| number.map(|number| number.to_string());
    let (port, protocol) = (number(which.port), number(which.protocol.map(u16::from)));
    let limit = which.limit.to_string();
    let by = top.map(|top| match top.by {
        FlowBy::Octets => "octets",
        FlowBy::Packets => "packets",
    });
    let query = [
        ("prefix", which.prefix.as_deref()),
        ("interface", which.interface.as_deref()),
        ("port", port.as_deref()),
        ("protocol", protocol.as_deref()),
        ("top", by),
        (
            "group",
            top.and_then(|top| top.group).map(FlowGroupWord::word),
        ),
        ("lengths", top.and_then(|top| top.lengths.as_deref())),
        ("limit", Some(limit.as_str())),
    ];
    let reply = client.flows(&query)?;
    match top {
        Some(FlowTopArgs { group: Some(_), .. }) => output.put(&reply, render::flow::groups),
        _ => output.put(&reply, render::flow::flows),
    }
}

fn show_neighbors(
    client: &Client,
    interface: Option<&str>,
    family: Option<Family>,
    output: &mut Output<'_>,
) -> Result<(), Failure> {
    let mut reply = client.neighbors(interface)?;
    reply
        .neighbors
        .retain(|it| family.is_none_or(|family| it.address.is_ipv4() == (family == Family::Ipv4)));
    output.put(&reply, render::forwarding::neighbors)
}

/// All, those of an interface, or the one that routes and labels tell by its number.
fn show_adjacency(
    client: &Client,
    which: Option<&str>,
    output: &mut Output<'_>,
) -> Result<(), Failure> {
    let Some(number) = which.and_then(|which| which.parse::<u32>().ok()) else {
        return output.put(&client.adjacencies(which)?, render::forwarding::adjacencies);
    };
    let mut reply = client.adjacencies(None)?;
    reply.adjacencies.retain(|it| it.number == number);
    if reply.adjacencies.is_empty() {
        return Err(Failure::said(format!(
            "there is no adjacency {number}; `show adjacency` lists them"
        )));
    }
    output.put(&reply, render::forwarding::adjacencies)
}

fn show_labels(
    client: &Client,
    label: Option<u32>,
    output: &mut Output<'_>,
) -> Result<(), Failure> {
    let reply = client.mpls_fib(label)?;
    match label {
        None => output.put(&reply, render::forwarding::mpls_fib),
        Some(label) if reply.labels.is_empty() && !output.json => {
            Ok(writeln!(output.to, "no entry for label {label}")?)
        }
        Some(_) => output.put(&reply, render::forwarding::label_chain),
    }
}

/// Routes that are shown to people at once; a full table is for programs.
const MOST_SHOWN: u32 = 10_000;

fn show_routes(
    client: &Client,
    what: &ShowRouteArgs,
    family: Option<Family>,
    output: &mut Output<'_>,
) -> Result<(), Failure> {
    let (table, prefix) = match &what.aspect {
        Some(RouteAspect::Summary) => {
            let mut summary = client.fib_summary()?;
            summary
                .tables
                .retain(|table| family.is_none_or(|family| family == table.family));
            return output.put(&summary, render::forwarding::summary);
        }
        Some(RouteAspect::Table(of)) => (
            Some(of.table.as_str()),
            of.prefix.as_deref().or(what.prefix.as_deref()),
        ),
        None => (what.table.as_deref(), what.prefix.as_deref()),
    };
    // What packets to an address take is asked of one table.
    let is_address = prefix.is_some_and(|prefix| !prefix.contains('/'));
    let table = table.or(is_address.then_some("default"));
    let number = table
        .map(|table| number_of_table(client, table))
        .transpose()?;
    if prefix.is_none() && !output.json {
        let (routes, more) = client.first_routes(number, family, MOST_SHOWN)?;
        output.put(&routes, render::forwarding::routes)?;
        if more {
            writeln!(
                output.to,
                "and more: these are the first {MOST_SHOWN}; name a prefix or a table, or ask for --json"
            )?;
        }
        return Ok(());
    }
    let mut all = Routes::default();
    client.each_routes(prefix, number, family, |mut part| {
        all.routes.append(&mut part.routes)
    })?;
    if let Some(prefix) = prefix.filter(|_| all.routes.is_empty() && !output.json) {
        let place = table.map_or_else(|| "any table".to_owned(), |table| format!("table {table}"));
        return Ok(writeln!(
            output.to,
            "no route {} {prefix} in {place}",
            if is_address { "to" } else { "for" }
        )?);
    }
    output.put(
        &all,
        if prefix.is_some() {
            render::forwarding::chain
        } else {
            render::forwarding::routes
        },
    )
}

/// The number of a table that is named, or that is a number.
fn number_of_table(client: &Client, text: &str) -> Result<u32, Failure> {
    if text == "default" {
        return Ok(0);
    }
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let tables = client.fib_summary()?.tables;
    let named = tables
        .iter()
        .find(|table| table.vrf.as_deref() == Some(text));
    let mut known: Vec<&str> = tables
        .iter()
        .filter_map(|table| table.vrf.as_deref())
        .collect();
    known.dedup();
    let known = if known.is_empty() {
        "there is none but the default one".to_owned()
    } else {
        format!("there are default, {}", known.join(", "))
    };
    named
        .map(|table| table.table)
        .ok_or_else(|| Failure::said(format!("there is no table {text}; {known}")))
}

fn show_rx_placement(
    client: &Client,
    interface: Option<&str>,
    output: &mut Output<'_>,
) -> Result<(), Failure> {
    output.put(
        &client.rx_placement(interface)?,
        render::hardware::rx_placement,
    )
}

fn show_trace(
    client: &Client,
    what: &TraceShowArgs,
    output: &mut Output<'_>,
) -> Result<(), Failure> {
    let mut reply = client.trace()?;
    if let Some(most) = what.max {
        let surplus = reply.packets.len().saturating_sub(most);
        reply.packets.drain(..surplus);
    }
    output.put(&reply, |reply: &Trace, screen| {
        render::trace::trace(reply, screen)
    })
}

/// `weir clear`.
pub(crate) fn clear(
    what: ClearWhat,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let client = at.client()?;
    let cleared = match what {
        ClearWhat::Interface => client.clear(Clear::Interfaces)?.cleared.word(),
        ClearWhat::Runtime => client.clear(Clear::Runtime)?.cleared.word(),
        ClearWhat::Errors => client.clear(Clear::Errors)?.cleared.word(),
        ClearWhat::Trace => return trace_clear(&client, json, to),
    };
    if json {
        writeln!(to, "{}", serde_json::json!({ "cleared": cleared }))?;
    }
    Ok(())
}

/// `weir trace`.
pub(crate) fn trace(
    what: &TraceCommand,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let client = at.client()?;
    let mut output = Output::new(json, to);
    match what {
        TraceCommand::Add(args) => trace_add(&client, args, &mut output),
        TraceCommand::Show(args) => show_trace(&client, args, &mut output),
        TraceCommand::Clear => trace_clear(&client, json, output.to),
    }
}

/// `weir why`.
pub(crate) fn why(
    args: &WhyArgs,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let reply = at.client()?.why(&args.request())?;
    Output::new(json, to).put(&reply, render::why::why)
}

fn trace_clear(client: &Client, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    client.trace_clear()?;
    if json {
        writeln!(to, "{}", serde_json::json!({ "cleared": "trace" }))?;
    }
    Ok(())
}

fn trace_add(client: &Client, args: &TraceAddArgs, output: &mut Output<'_>) -> Result<(), Failure> {
    let node = (args.node != "any").then(|| args.node.clone());
    let armed = client.trace_add(&TraceRequest {
        node,
        interface: args.interface.clone(),
        count: args.count,
    })?;
    output.put(&armed, |armed, _| {
        format!(
            "{}; `weir trace show` shows what was recorded\n",
            render::trace::request(armed)
        )
    })
}
