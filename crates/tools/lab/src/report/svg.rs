//! Graphs as SVG text: grouped bars, and lines on a logarithmic axis.

use std::fmt::Write;

/// Colours that differ in lightness too.
pub(super) const COLOURS: [&str; 6] = [
    "#1b4f8a", "#d9822b", "#3c8d5a", "#8e3b8a", "#c23b3b", "#5b6770",
];

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 80.0;
const BOTTOM: f64 = 26.0;
const TOP: f64 = 30.0;

/// Escapes text for HTML and SVG.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A number with three significant digits and k, M or G.
pub(super) fn short(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, " G"),
        v if v >= 1e6 => (value / 1e6, " M"),
        v if v >= 1e3 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let digits = if scaled.abs() >= 100.0 || scaled == scaled.trunc() {
        0
    } else if scaled.abs() >= 10.0 {
        1
    } else {
        2
    };
    format!("{scaled:.digits$}{unit}")
}

fn frame(label: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\"><text x=\"4\" y=\"12\" class=\"axis\">{}</text>",
        escaped(label),
        escaped(label)
    )
}

/// A round number at or above `value`.
fn nice(value: f64) -> f64 {
    let magnitude = 10_f64.powf(value.max(1e-9).log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0]
        .iter()
        .map(|step| step * magnitude)
        .find(|top| *top >= value)
        .unwrap_or(value)
}

/// Bars: for each group (name) the value of each series; a missing value gives no bar.
pub(super) fn bars(
    label: &str,
    groups: &[String],
    series: &[(String, Vec<Option<f64>>)],
) -> String {
    let mut svg = frame(label);
    let most = nice(
        series
            .iter()
            .flat_map(|(_, values)| values.iter().flatten().copied())
            .fold(0.0, f64::max),
    );
    let (plot, wide) = (HEIGHT - BOTTOM - TOP, WIDTH - LEFT - 10.0);
    for step in 0..=4 {
        let y = TOP + plot * (1.0 - f64::from(step) / 4.0);
        let _ = write!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" class=\"grid\"/><text x=\"{:.1}\" y=\"{:.1}\" class=\"tick\">{}</text>",
            LEFT + wide,
            LEFT - 6.0,
            y + 4.0,
            short(most * f64::from(step) / 4.0)
        );
    }
    let group_width = wide / groups.len().max(1) as f64;
    let bar = (group_width * 0.8 / series.len().max(1) as f64).min(80.0);
    for (at, name) in groups.iter().enumerate() {
        let middle = LEFT + group_width * (at as f64 + 0.5);
        let _ = write!(
            svg,
            "<text x=\"{middle:.1}\" y=\"{:.1}\" class=\"name\">{}</text>",
            HEIGHT - 8.0,
            escaped(name)
        );
        for (number, (_, values)) in series.iter().enumerate() {
            let Some(value) = values.get(at).copied().flatten() else {
                continue;
            };
            let height = plot * value / most;
            let x = middle + bar * (number as f64 - series.len() as f64 / 2.0);
            let colour = COLOURS[number % COLOURS.len()];
            let _ = write!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/><text x=\"{:.1}\" y=\"{:.1}\" class=\"value\">{}</text>",
                TOP + plot - height,
                bar * 0.92,
                x + bar * 0.46,
                TOP + plot - height - 3.0,
                short(value)
            );
        }
    }
    svg.push_str("</svg>");
    legend(&mut svg, series.iter().map(|(name, _)| name.as_str()));
    svg
}

/// The y axis of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    /// Decades.
    Logarithmic,
    /// From 0.
    Linear,
}

/// Lines: points of (x, y), and what is written behind the numbers of the x axis.
pub(super) fn lines(
    label: &str,
    below: &str,
    axis: Axis,
    series: &[(String, Vec<(f64, f64)>)],
) -> String {
    let mut svg = frame(label);
    let points = || series.iter().flat_map(|(_, points)| points.iter());
    // Without points the ends of the axes are infinite, and the loop over decades has no end.
    if points().next().is_none() {
        svg.push_str("</svg>");
        return svg;
    }
    let (least_x, most_x) = points().fold((f64::INFINITY, 0.0), |(least, most), (x, _)| {
        (f64::min(least, *x), f64::max(most, *x))
    });
    let (plot, wide) = (HEIGHT - BOTTOM - TOP, WIDTH - LEFT - 20.0);
    let x_of = |x: f64| {
        LEFT + if most_x > least_x {
            (x - least_x) / (most_x - least_x) * wide
        } else {
            wide / 2.0
        }
    };
    let scaled = |y: f64| match axis {
        Axis::Logarithmic => y.max(1e-3).log10(),
        Axis::Linear => y.max(0.0),
    };
    let (low, high, step) = match axis {
        Axis::Logarithmic => {
            let low = points()
                .map(|(_, y)| scaled(*y))
                .fold(f64::INFINITY, f64::min)
                .floor();
            let high = points().map(|(_, y)| scaled(*y)).fold(low + 1.0, f64::max);
            (low, high.ceil(), 1.0)
        }
        Axis::Linear => {
            let high = nice(points().map(|(_, y)| scaled(*y)).fold(0.0, f64::max));
            (0.0, high, high / 4.0)
        }
    };
    let y_of = |y: f64| TOP + plot * (1.0 - (scaled(y) - low) / (high - low));
    let mut tick = low;
    while tick <= high + step / 100.0 {
        let value = match axis {
            Axis::Logarithmic => 10_f64.powf(tick),
            Axis::Linear => tick,
        };
        let y = y_of(value);
        let _ = write!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" class=\"grid\"/><text x=\"{:.1}\" y=\"{:.1}\" class=\"tick\">{}</text>",
            LEFT + wide,
            LEFT - 6.0,
            y + 4.0,
            short(value)
        );
        tick += step;
    }
    for (number, (_, points)) in series.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let path: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{:.1},{:.1}", x_of(*x), y_of(*y)))
            .collect();
        let _ = write!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        );
        for (x, y) in points {
            let _ = write!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>",
                x_of(*x),
                y_of(*y)
            );
        }
    }
    let mut labels: Vec<f64> = points().map(|(x, _)| *x).collect();
    labels.sort_by(f64::total_cmp);
    let mut last = f64::NEG_INFINITY;
    for x in labels {
        // Numbers that would overlap are left out.
        if x_of(x) < last + 44.0 {
            continue;
        }
        last = x_of(x);
        let _ = write!(
            svg,
            "<text x=\"{last:.1}\" y=\"{:.1}\" class=\"name\">{}{}</text>",
            HEIGHT - 8.0,
            short(x),
            escaped(below)
        );
    }
    svg.push_str("</svg>");
    legend(&mut svg, series.iter().map(|(name, _)| name.as_str()));
    svg
}

/// Names of the series below the graph, as text that wraps.
fn legend<'a>(to: &mut String, names: impl Iterator<Item = &'a str>) {
    to.push_str("<p class=\"legend\">");
    for (number, name) in names.enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let _ = write!(
            to,
            "<span><i style=\"background:{colour}\"></i>{}</span> ",
            escaped(name)
        );
    }
    to.push_str("</p>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let all = [
            (0.0, "0"),
            (5.25, "5.25"),
            (1234.0, "1.23 k"),
            (14_880_952.0, "14.9 M"),
            (2e9, "2 G"),
        ];
        for (value, text) in all {
            assert_eq!(short(value), text);
        }
        assert_eq!((nice(0.7), nice(13.0), nice(250.0)), (1.0, 20.0, 250.0));
    }

    #[test]
    fn nothing_to_draw_is_no_error() {
        assert!(bars("a", &[], &[]).contains("</svg>"));
        for axis in [Axis::Linear, Axis::Logarithmic] {
            assert!(!lines("a", "", axis, &[]).contains("NaN"));
            let zero = lines(
                "a",
                "",
                axis,
                &[("b".into(), vec![(0.0, 0.0), (0.0, -3.0)])],
            );
            assert!(!zero.contains("NaN") && !zero.contains("inf"), "{zero}");
        }
        assert!(bars("<a>", &["x".into()], &[("y".into(), vec![None])]).contains("&lt;a&gt;"));
    }
}
