//! How long a large configuration takes: 10,000 interfaces with addresses, 10,000 routes.
//!
//! Prints the time of each thing that is done with it, in milliseconds, the best of five runs:
//! `cargo run --release -p weir-config --example big [INTERFACES [ROUTES]]`

use std::fmt::Write;
use std::time::Instant;

use weir_config::{
    CheckOptions, Checked, Config, Plan, System, check_system, check_with, diff, plan, to_yaml,
};

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|argument| argument.parse().unwrap_or(10_000));
    let (interfaces, routes) = (
        arguments.next().unwrap_or(10_000),
        arguments.next().unwrap_or(10_000),
    );
    let text = file(interfaces, routes);
    println!(
        "{interfaces} interfaces, {routes} routes, {} bytes",
        text.len()
    );
    let checked = timed("check", || read(&text));
    let nothing = Config::default();
    let steps = timed("plan from nothing", || plan(&nothing, &checked.config));
    println!("  {} steps", steps.len());
    timed("plan to nothing", || plan(&checked.config, &nothing));
    let other = read(&text.replace("/24]", "/25]")).config;
    let steps = timed("plan with every subnet changed", || {
        plan(&checked.config, &other)
    });
    println!("  {} steps", steps.len());
    timed("plan when nothing changed", || {
        plan(&checked.config, &checked.config)
    });
    timed("plan, shown", || {
        Plan::between(&nothing, &checked.config).to_string()
    });
    timed("dump", || to_yaml(&checked.config));
    timed("diff", || diff("a", &checked.config, "b", &other));
    timed("check against a machine that lacks all of it", || {
        check_system(&checked, &System::default())
    });
}

fn read(text: &str) -> Checked {
    match check_with(&CheckOptions::new("big.yaml"), text.as_bytes()) {
        Ok(checked) => checked,
        Err(errors) => {
            errors.iter().take(3).for_each(|error| eprintln!("{error}"));
            std::process::exit(1);
        }
    }
}

fn timed<T>(what: &str, mut work: impl FnMut() -> T) -> T {
    let mut best = f64::MAX;
    let mut result = None;
    for _ in 0..5 {
        let start = Instant::now();
        result = Some(work());
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{what}: {:.0} ms", best * 1e3);
    match result {
        Some(result) => result,
        None => std::process::exit(1),
    }
}

fn file(interfaces: usize, routes: usize) -> String {
    let mut text = String::from("interfaces:\n");
    for n in 0..interfaces {
        // Writing to a string cannot fail.
        let (high, low) = (n >> 8, n & 255);
        let _ = writeln!(
            text,
            "  xe{n}:\n    device: {{driver: af-xdp, name: e{n}}}\n    addresses: [10.{high}.{low}.1/24]"
        );
    }
    text.push_str("routes:\n");
    for n in 0..routes {
        let hop = n % interfaces.max(1);
        let (high, middle, low) = (100 + (n >> 16), n >> 8 & 255, n & 255);
        let _ = writeln!(
            text,
            "  - {{prefix: {high}.{middle}.{low}.0/24, via: 10.{}.{}.2}}",
            hop >> 8,
            hop & 255
        );
    }
    text
}
