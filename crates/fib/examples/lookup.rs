//! What lookups cost: `cargo run --release --example lookup -p weir-fib [routes]`.
//!
//! A table of random prefixes with lengths as on the Internet, random destinations that are covered,
//! vectors of 256. Each figure is the median of nine passes, in TSC clocks (and nanoseconds) a lookup: one by one
//! (independent), as a batch, and one by one where each address depends on the answer before.

use std::time::Instant;

use ipnet::Ipv4Net;
use weir_fib::{Fib4, Fib4Writer};
use weir_ring::qsbr::Domain;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Per mille of each length in a full table (rounded from public table reports); the rest is /24.
const LENGTHS: [(u8, u64); 10] = [(8, 1), (12, 1), (14, 1), (16, 14), (18, 14), (19, 26), (20, 46), (21, 55), (22, 115), (23, 108)];

fn prefix(random: &mut Random) -> Ipv4Net {
    let mut dice = random.next() >> 20;
    dice %= 1000;
    let mut len = 24;
    for (candidate, share) in LENGTHS {
        if dice < share {
            len = candidate;
            break;
        }
        dice -= share;
    }
    let address = 0x0100_0000 + ((random.next() >> 16) % 0xdf00_0000) as u32;
    Ipv4Net::new(address.into(), len).map(|net| net.trunc()).unwrap_or_default()
}

fn median(mut pass: impl FnMut() -> u64, lookups: usize) -> f64 {
    let mut clocks: Vec<f64> = (0..9).map(|_| pass() as f64 / lookups as f64).collect();
    clocks.sort_by(f64::total_cmp);
    clocks[4]
}

fn measure(fib: &Fib4, addresses: &[u32], name: &str) {
    let mut groups = [0u32; 256];
    let mut sum = 0u64;
    let single = median(
        || {
            let start = weir_cpu::tsc();
            for (address, group) in addresses.chunks(256).flat_map(|chunk| chunk.iter().zip(0..)) {
                groups[group] = fib.lookup(*address);
            }
            sum += u64::from(groups[0]);
            weir_cpu::tsc() - start
        },
        addresses.len(),
    );
    let batch = median(
        || {
            let start = weir_cpu::tsc();
            for chunk in addresses.chunks(256) {
                fib.lookup_batch(chunk, &mut groups[..chunk.len()]);
                sum += u64::from(groups[0]);
            }
            weir_cpu::tsc() - start
        },
        addresses.len(),
    );
    let dependent = median(
        || {
            let (start, mut last) = (weir_cpu::tsc(), 0);
            for address in addresses {
                last = fib.lookup(address ^ (last & 1 << 24));
                sum += u64::from(last);
            }
            weir_cpu::tsc() - start
        },
        addresses.len(),
    );
    let both = |clocks: f64| format!("{clocks:6.1} ({:5.1} ns)", clocks * 1e9 / weir_cpu::tsc_hz() as f64);
    println!("{name:28} one by one {}   batch {}   dependent {}   (checksum {sum})", both(single), both(batch), both(dependent));
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let wanted: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let mut random = Random(0x5eed_0001);
    let mut writer = Fib4Writer::new(&Domain::new(1))?;
    writer.insert("0.0.0.0/0".parse()?, 1)?;
    println!("TSC {} MHz", weir_cpu::tsc_hz() / 1_000_000);
    let addresses: Vec<u32> = (0..1 << 20).map(|_| random.next() as u32).collect();
    measure(writer.fib(), &addresses, "a default route");
    let mut prefixes: Vec<Ipv4Net> = (0..wanted).map(|_| prefix(&mut random)).collect();
    let start = Instant::now();
    for (n, &prefix) in prefixes.iter().enumerate() {
        writer.insert(prefix, 1 + n as u32 % 16)?;
    }
    let took = start.elapsed();
    prefixes.sort_unstable();
    prefixes.dedup();
    println!(
        "{} routes in {:.3} s, {:.0} ns each; {:?}",
        writer.len(),
        took.as_secs_f64(),
        took.as_nanos() as f64 / wanted as f64,
        writer.memory()
    );
    let covered = |random: &mut Random| {
        let prefix = prefixes[(random.next() >> 11) as usize % prefixes.len()];
        u32::from(prefix.network()) | (random.next() >> 13) as u32 & u32::from(prefix.hostmask())
    };
    let addresses: Vec<u32> = (0..1 << 20).map(|_| covered(&mut random)).collect();
    measure(writer.fib(), &addresses, "1M random covered addresses");
    measure(writer.fib(), &addresses[..65536].repeat(16), "64k random covered addresses");
    let start = Instant::now();
    let changes = 200_000;
    for n in 0..changes {
        let prefix = prefixes[(random.next() >> 11) as usize % prefixes.len()];
        if n % 2 == 0 {
            writer.remove(prefix);
        } else {
            writer.insert(prefix, 3)?;
        }
    }
    println!("changes: {:.0} ns each", start.elapsed().as_nanos() as f64 / f64::from(changes));
    let start = Instant::now();
    writer.insert("0.0.0.0/0".parse()?, 2)?;
    println!("default route replaced: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    Ok(())
}
