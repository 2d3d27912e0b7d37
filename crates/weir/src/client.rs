//! Commands that ask a running router: `show`, `clear` and `trace`.
//!
//! Each asks once, and prints the reply as JSON just as it came, or as a table.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use weir_api::{Clear, Client, Trace, TraceRequest};

use crate::cli::{ClearWhat, InterfaceAspect, Show, ShowArgs, ShowIp, TraceAddArgs, TraceCommand, TraceShowArgs};
use crate::failure::Failure;
use crate::render::{self, Screen};

/// Where the router is when nobody says: where a configuration without `api.socket` puts it.
pub(crate) fn default_socket() -> PathBuf {
    weir_config::Api::default().socket
}

fn client(socket: Option<&Path>) -> Client {
    Client::new(socket.map_or_else(default_socket, Path::to_owned))
}

/// Where the output of a `show` goes, and in which form.
struct Output<'a> {
    json: bool,
    screen: Screen,
    to: &'a mut dyn Write,
}

impl Output<'_> {
    fn put<T: Serialize>(&mut self, reply: &T, draw: impl FnOnce(&T, &Screen) -> String) -> Result<(), Failure> {
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
pub(crate) fn show(args: &ShowArgs, socket: Option<&Path>, to: &mut dyn Write) -> Result<(), Failure> {
    let client = client(socket);
    let mut output = Output { json: args.json, screen: Screen::of_stdout(), to };
    match &args.what {
        Show::Interface(what) => match &what.aspect {
            None => show_interface(&client, what.name.as_deref(), &mut output),
            Some(InterfaceAspect::Addr(of)) => output.put(&client.interfaces(of.interface.as_deref())?, render::interface::addresses),
            Some(InterfaceAspect::RxPlacement(of)) => show_rx_placement(&client, of.interface.as_deref(), &mut output),
        },
        Show::Hardware(what) => {
            let draw = |reply: &_, screen: &_| render::hardware::hardware(reply, what.all, screen);
            output.put(&client.hardware(what.interface.as_deref())?, draw)
        }
        Show::RxPlacement(of) => show_rx_placement(&client, of.interface.as_deref(), &mut output),
        Show::Runtime => output.put(&client.runtime()?, render::runtime::runtime),
        Show::Errors(what) => output.put(&client.errors(what.interface.as_deref(), what.by_worker)?, render::runtime::errors),
        Show::Neighbors(of) | Show::Ip(ShowIp::Neighbors(of)) => {
            output.put(&client.neighbors(of.interface.as_deref())?, render::forwarding::neighbors)
        }
        Show::Route(what) | Show::Ip(ShowIp::Fib(what)) => {
            output.put(&client.routes(what.prefix.as_deref(), what.table)?, render::forwarding::routes)
        }
        Show::Sflow => output.put(&client.sflow()?, render::sflow::sflow),
        Show::Trace(what) => show_trace(&client, what, &mut output),
        Show::Totals => output.put(&client.totals()?, render::runtime::totals),
        // JSON is YAML, too: there is no other form of a running configuration yet.
        Show::Config => output.json(&client.config()?),
        Show::Version => output.put(&client.version()?, render::version::version),
    }
}

fn show_interface(client: &Client, name: Option<&str>, output: &mut Output<'_>) -> Result<(), Failure> {
    let reply = client.interfaces(name)?;
    match name {
        None => output.put(&reply, render::interface::list),
        Some(_) => output.put(&reply, render::interface::detail),
    }
}

fn show_rx_placement(client: &Client, interface: Option<&str>, output: &mut Output<'_>) -> Result<(), Failure> {
    output.put(&client.rx_placement(interface)?, render::hardware::rx_placement)
}

fn show_trace(client: &Client, what: &TraceShowArgs, output: &mut Output<'_>) -> Result<(), Failure> {
    let mut reply = client.trace()?;
    if let Some(most) = what.max {
        let surplus = reply.packets.len().saturating_sub(most);
        reply.packets.drain(..surplus);
    }
    output.json |= what.json;
    output.put(&reply, |reply: &Trace, screen| render::trace::trace(reply, screen))
}

/// `weir clear`.
pub(crate) fn clear(what: ClearWhat, socket: Option<&Path>) -> Result<(), Failure> {
    let client = client(socket);
    match what {
        ClearWhat::Interface => client.clear(Clear::Interfaces).map(drop)?,
        ClearWhat::Runtime => client.clear(Clear::Runtime).map(drop)?,
        ClearWhat::Errors => client.clear(Clear::Errors).map(drop)?,
        ClearWhat::Trace => client.trace_clear()?,
    }
    Ok(())
}

/// `weir trace`.
pub(crate) fn trace(what: &TraceCommand, socket: Option<&Path>, to: &mut dyn Write) -> Result<(), Failure> {
    let client = client(socket);
    match what {
        TraceCommand::Add(args) => trace_add(&client, args, to),
        TraceCommand::Show(args) => {
            let mut output = Output { json: args.json, screen: Screen::of_stdout(), to };
            show_trace(&client, args, &mut output)
        }
        TraceCommand::Clear => Ok(client.trace_clear()?),
    }
}

fn trace_add(client: &Client, args: &TraceAddArgs, to: &mut dyn Write) -> Result<(), Failure> {
    let node = (args.node != "any").then(|| args.node.clone());
    let armed = client.trace_add(&TraceRequest { node, interface: args.interface.clone(), count: args.count })?;
    writeln!(to, "{}; `weir trace show` shows what was recorded", render::trace::request(&armed))?;
    Ok(())
}
