//! Draws the state of the live view on a terminal of at least 80 columns and 24 lines.
//!
//! Colours are blue and orange, which people with any common colour blindness tell apart, and never
//! the only carrier of a fact: what is down or dropped also has a word or a sign.

use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Clear, Paragraph, Row, Table, Wrap};

use weir_api::FlowEntry;

use super::detail;
use super::state::{FlowOrder, FlowRate, Pane, State};
use crate::render::{harmless, units};

/// The smallest terminal that everything fits on.
pub(crate) const SMALLEST: (u16, u16) = (80, 24);
const BLUE: Color = Color::Indexed(33);
const ORANGE: Color = Color::Indexed(208);
const SPARK: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns of a sparkline.
const SPARK_WIDTH: usize = 14;

/// Draws one picture.
pub(crate) fn draw(frame: &mut Frame<'_>, state: &State) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let text = format!(
            "This view needs {} columns and {} lines;\nthe terminal has {} and {}.",
            SMALLEST.0, SMALLEST.1, area.width, area.height
        );
        frame.render_widget(Paragraph::new(text), area);
        return;
    }
    let notes = state.notes.len() as u16;
    let interfaces = (state.interfaces.len() as u16 + 2).clamp(3, (area.height - notes) / 3);
    let drops = (state.drops.len() as u16 + 2).clamp(3, 6);
    let workers = (state.workers.len() as u16).clamp(1, 4);
    let [head, notes, top, middle, bottom, load, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(notes),
        Constraint::Length(interfaces),
        Constraint::Min(4),
        Constraint::Length(drops),
        Constraint::Length(workers),
        Constraint::Length(1),
    ])
    .areas(area);
    header(frame, head, state);
    let lines: Vec<Line<'_>> = state
        .notes
        .iter()
        .map(|it| Line::raw(it.as_str()))
        .collect();
    frame.render_widget(Paragraph::new(lines), notes);
    self::interfaces(frame, top, state);
    flows(frame, middle, state);
    self::drops(frame, bottom, state);
    self::workers(frame, load, state);
    footer(frame, foot, state);
    if let Some((flow, lookup)) = &state.detail {
        popup(frame, "Flow (Esc closes)", detail::lines(flow, lookup));
    } else if state.help {
        popup(
            frame,
            "Keys (any key closes)",
            HELP.map(str::to_owned).to_vec(),
        );
    }
}

const HELP: [&str; 8] = [
    "Tab, Shift-Tab   next table, table before",
    "Up, Down, j, k   select a row",
    "Enter            route, adjacency, neighbour and ACL verdict of a flow",
    "b, p             sort flows by bits or packets a second",
    "Space            pause and continue",
    "h, ?             these keys",
    "Esc              close a window",
    "q, Ctrl-C        quit",
];

fn header(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let (packets, bits) = state.received();
    let dropped = state.dropped();
    let mut second = vec![Span::raw(format!(
        "received {} packets/s, {}bit/s   ",
        units::amount(packets),
        unit_space(bits)
    ))];
    second.push(Span::styled(
        format!("dropped {} packets/s", units::amount(dropped)),
        if dropped > 0.0 { alert() } else { Style::new() },
    ));
    if let Some(sflow) = &state.sflow {
        second.push(Span::raw(format!("   {sflow}")));
    }
    let first = Line::from(vec![
        Span::styled(format!("weir top  {}", state.title), bold()),
        Span::raw(format!("   up {}", units::seconds(state.uptime as f64))),
        Span::styled(if state.paused { "   PAUSED" } else { "" }, alert()),
    ]);
    frame.render_widget(Paragraph::new(vec![first, Line::from(second)]), area);
}

fn interfaces(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let rows = state.interfaces.iter().enumerate().map(|(index, it)| {
        let spark = state
            .history
            .get(&it.name)
            .map(sparkline)
            .unwrap_or_default();
        let row = Row::new([
            Cell::from(harmless(&it.name)),
            Cell::from(if it.up { "up" } else { "DOWN" }).style(if it.up {
                Style::new()
            } else {
                alert()
            }),
            right(units::amount(it.rx_packets), 9),
            right(units::amount(it.rx_bits), 9),
            right(units::amount(it.tx_packets), 9),
            right(units::amount(it.tx_bits), 9),
            right(units::amount(it.drops), 8).style(if it.drops > 0.0 {
                alert()
            } else {
                Style::new()
            }),
            Cell::from(spark).style(Style::new().fg(BLUE)),
        ]);
        selected(row, state, Pane::Interfaces, index)
    });
    let head = [
        "Interface",
        "Link",
        "  RX pkt/s",
        " RX bit/s",
        " TX pkt/s",
        " TX bit/s",
        "Drops/s",
        "RX + TX",
    ];
    let widths = [
        Constraint::Min(10),
        Constraint::Length(4),
        Constraint::Length(10),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(8),
        Constraint::Length(SPARK_WIDTH as u16),
    ];
    table(
        frame,
        area,
        state,
        Pane::Interfaces,
        "Interfaces".to_owned(),
        head,
        widths,
        rows.collect(),
    );
}

fn flows(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let order = match state.order {
        FlowOrder::Bits => "bits",
        FlowOrder::Packets => "packets",
    };
    let Some(flows) = &state.flows else {
        let text = "No interface is metered: `ipfix: true` on an interface shows its flows here.";
        frame.render_widget(
            Paragraph::new(text).block(block(state, Pane::Flows, "Flows".to_owned())),
            area,
        );
        return;
    };
    let rows = flows.iter().enumerate().map(|(index, it)| {
        let forwarded = it.flow.forwarding_status >> 6 != 2;
        let row = Row::new([
            Cell::from(protocol(it)),
            Cell::from(harmless(&source(&it.flow))),
            Cell::from(harmless(&destination(&it.flow))),
            right(units::amount(it.bits), 9),
            right(units::amount(it.packets), 9),
            Cell::from(result(it)).style(if forwarded { Style::new() } else { alert() }),
        ]);
        selected(row, state, Pane::Flows, index)
    });
    let head = [
        "Proto",
        "Source",
        "Destination",
        "    bit/s",
        "    pkt/s",
        "Result",
    ];
    let widths = [
        Constraint::Length(5),
        Constraint::Fill(2),
        Constraint::Fill(2),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Fill(1),
    ];
    let title = format!("Flows by {order} a second ({})", flows.len());
    table(
        frame,
        area,
        state,
        Pane::Flows,
        title,
        head,
        widths,
        rows.collect(),
    );
}

fn drops(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let rows = state.drops.iter().enumerate().map(|(index, it)| {
        let row = Row::new([
            Cell::from(it.reason.clone()),
            right(it.count.to_string(), 12),
            right(units::amount(it.rate), 9).style(if it.rate > 0.0 {
                alert()
            } else {
                Style::new()
            }),
            Cell::from(it.sentence.clone()),
        ]);
        selected(row, state, Pane::Drops, index)
    });
    let widths = [
        Constraint::Length(22),
        Constraint::Length(12),
        Constraint::Length(9),
        Constraint::Fill(1),
    ];
    let title = if state.drops.is_empty() {
        "Drops: none"
    } else {
        "Drops"
    };
    let head = ["Reason", "     Packets", "    pkt/s", "Meaning"];
    table(
        frame,
        area,
        state,
        Pane::Drops,
        title.to_owned(),
        head,
        widths,
        rows.collect(),
    );
}

fn workers(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let lines = state.workers.iter().map(|it| {
        let core = it
            .core
            .map_or(String::new(), |core| format!(" on core {core}"));
        Line::raw(format!(
            "worker {}{core}  {}  busy {:>5.1} % {}  {} packets/s",
            it.worker,
            it.idle,
            it.busy_percent,
            bar(it.busy_percent),
            units::amount(it.packets)
        ))
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}

fn footer(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let line = match &state.error {
        Some(error) => Line::styled(format!("! {error}"), alert()),
        None => Line::raw(
            "q quit   Tab table   Up/Down row   Enter flow   b/p sort   Space pause   ? keys",
        ),
    };
    frame.render_widget(Paragraph::new(line), area);
}

#[expect(
    clippy::too_many_arguments,
    reason = "one private function that draws all three tables"
)]
fn table<const N: usize>(
    frame: &mut Frame<'_>,
    area: Rect,
    state: &State,
    pane: Pane,
    title: String,
    head: [&'static str; N],
    widths: [Constraint; N],
    rows: Vec<Row<'_>>,
) {
    // Rows before the first one that fits with the selection in sight.
    let visible = usize::from(area.height.saturating_sub(2)).max(1);
    let skipped = if state.pane == pane {
        (state.selected + 1).saturating_sub(visible)
    } else {
        0
    };
    let rows = rows.into_iter().skip(skipped).take(visible);
    let table = Table::new(rows, widths)
        .header(Row::new(head).style(bold()))
        .block(block(state, pane, title));
    frame.render_widget(table, area);
}

fn block(state: &State, pane: Pane, title: String) -> Block<'static> {
    let focused = state.pane == pane;
    let style = if focused {
        Style::new().fg(BLUE).add_modifier(Modifier::BOLD)
    } else {
        Style::new()
    };
    let title = if focused {
        format!("▶ {title} ")
    } else {
        format!("  {title} ")
    };
    Block::new()
        .borders(Borders::TOP)
        .border_style(style)
        .title(title)
}

fn selected<'a>(row: Row<'a>, state: &State, pane: Pane, index: usize) -> Row<'a> {
    if state.pane == pane && state.selected == index {
        row.style(Style::new().add_modifier(Modifier::REVERSED))
    } else {
        row
    }
}

fn popup(frame: &mut Frame<'_>, title: &str, lines: Vec<String>) {
    let area = frame.area();
    // Long lines wrap, so they take more rows than there are lines.
    let wide = usize::from(area.width.saturating_sub(6)).max(1);
    let rows: usize = lines
        .iter()
        .map(|line| line.len().div_ceil(wide).max(1))
        .sum();
    let height = (rows as u16 + 2).min(area.height - 2);
    let area = Rect {
        x: 2,
        y: (area.height - height) / 2,
        width: area.width - 4,
        height,
    };
    let lines: Vec<Line<'_>> = lines.into_iter().map(Line::from).collect();
    frame.render_widget(Clear, area);
    let block = Block::bordered()
        .title(title.to_owned())
        .border_style(Style::new().fg(BLUE));
    frame.render_widget(
        Paragraph::new(lines)
            .wrap(Wrap { trim: false })
            .block(block),
        area,
    );
}

fn right(text: String, width: usize) -> Cell<'static> {
    Cell::from(format!("{text:>width$}"))
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn alert() -> Style {
    Style::new().fg(ORANGE).add_modifier(Modifier::BOLD)
}

/// `1.20 G`, and a space before the unit also where there is no prefix.
fn unit_space(value: f64) -> String {
    let text = units::amount(value);
    if text.ends_with(|last: char| last.is_ascii_digit()) {
        format!("{text} ")
    } else {
        text
    }
}

/// The most recent values, scaled to the largest of them.
fn sparkline(history: &VecDeque<u64>) -> String {
    let recent: Vec<u64> = history
        .iter()
        .rev()
        .take(SPARK_WIDTH)
        .rev()
        .copied()
        .collect();
    let most = recent.iter().copied().max().unwrap_or(0).max(1);
    recent
        .iter()
        .map(|value| SPARK[((value * 7).div_ceil(most) as usize).min(7)])
        .collect()
}

fn bar(percent: f64) -> String {
    let full = (percent.clamp(0.0, 100.0) / 10.0).round() as usize;
    format!("[{}{}]", "#".repeat(full), ".".repeat(10 - full))
}

/// The protocol's name, or its number.
pub(crate) fn protocol(flow: &FlowRate) -> String {
    match (flow.flow.protocol, flow.flow.ethertype) {
        (Some(1), _) => "ICMP".to_owned(),
        (Some(6), _) => "TCP".to_owned(),
        (Some(17), _) => "UDP".to_owned(),
        (Some(58), _) => "ICMP6".to_owned(),
        (Some(number), _) => number.to_string(),
        (None, Some(ethertype)) => format!("{ethertype:04x}"),
        (None, None) => "-".to_owned(),
    }
}

/// The source: `192.0.2.1:443`, `[2001:db8::1]:443`, or the address alone.
pub(crate) fn source(flow: &FlowEntry) -> String {
    endpoint(flow, flow.source.as_deref(), flow.source_port)
}

/// The destination, in the same form.
pub(crate) fn destination(flow: &FlowEntry) -> String {
    endpoint(flow, flow.destination.as_deref(), flow.destination_port)
}

fn endpoint(flow: &FlowEntry, address: Option<&str>, port: Option<u16>) -> String {
    let address = address.unwrap_or("-");
    // ICMP and ICMPv6 have a type and a code in the place of the destination port.
    let port = port.filter(|_| !matches!(flow.protocol, Some(1 | 58)));
    match port {
        Some(port) if address.contains(':') => format!("[{address}]:{port}"),
        Some(port) => format!("{address}:{port}"),
        None => address.to_owned(),
    }
}

/// The output interface of a forwarded flow, or why it was dropped.
pub(crate) fn result(flow: &FlowRate) -> String {
    match (&flow.flow.output, flow.flow.forwarding_status >> 6) {
        (_, 2) => flow.result.trim_start_matches("dropped: ").to_owned(),
        (Some(output), _) => format!("-> {output}"),
        (None, _) => flow.result.to_owned(),
    }
}
