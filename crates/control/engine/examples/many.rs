//! How long a router takes to come up with many interfaces and routes, and to take one change.
//!
//! `cargo run --release -p weir-engine --example many -- 10000`

use std::time::Instant;

use weir_engine::{Options, Router};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: usize = std::env::args()
        .nth(1)
        .map_or(Ok(10_000), |count| count.parse())?;
    let mut text = String::from("interfaces:\n");
    for number in 0..count {
        text += &format!(
            "  e{number}: {{ device: {{ driver: 'null' }}, addresses: [ 10.{}.{}.1/24 ] }}\n",
            number / 256,
            number % 256
        );
    }
    text += "routes:\n";
    for number in 0..count {
        let (high, low) = (number / 256, number % 256);
        text += &format!("  - {{ prefix: 20.{high}.{low}.0/24, via: 10.{high}.{low}.2 }}\n");
    }
    let began = Instant::now();
    let config = weir_config::check("many.yaml", &text)
        .map_err(|findings| format!("{findings:?}"))?
        .0;
    println!("check               {:?}", began.elapsed());
    let began = Instant::now();
    let router = Router::start(&config, &Options::default())?;
    println!("start               {:?}", began.elapsed());
    let mut other = config.clone();
    if let Some(interface) = other.interfaces.get_mut("e7") {
        interface.mtu = 1400;
    }
    let began = Instant::now();
    router.apply(&other)?;
    println!("one MTU             {:?}", began.elapsed());
    let began = Instant::now();
    router.apply(&weir_config::Config::start_of(&config))?;
    println!("everything away     {:?}", began.elapsed());
    router.stop();
    Ok(())
}
