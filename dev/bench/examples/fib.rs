//! The forwarding tables alone: how long a full one takes to load, what it occupies, what a lookup costs,
//! and how many changes a second go in while a reader looks up at full rate.
//!
//! `fib [4|6] [PREFIXES]`; run it with real-time priority, on two cores.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use ipnet::{Ipv4Net, Ipv6Net};
use weir_cpu::{Task, dispatch, tsc, tsc_hz};
use weir_fib::synthetic::{Random, destinations4, destinations6, internet4, internet6};
use weir_fib::{Fib4, Fib4Writer, Fib6, Fib6Writer, FibError, Memory};
use weir_ring::qsbr::{Domain, Reader};

const VECTOR: usize = 256;
const HOPS: u32 = 16;
const DESTINATIONS: usize = 1 << 20;

/// A family of addresses.
trait Family {
    type Net: Copy;
    type Address: Copy + Sync;
    type Fib: Send + Sync;
    type Writer;
    fn routes(seed: u64, count: usize) -> Vec<(Self::Net, u32)>;
    fn destinations(seed: u64, routes: &[(Self::Net, u32)]) -> Vec<Self::Address>;
    fn writer(domain: &Domain) -> Result<Self::Writer, FibError>;
    fn fib(writer: &Self::Writer) -> Arc<Self::Fib>;
    fn extend(writer: &mut Self::Writer, routes: &[(Self::Net, u32)]) -> Result<(), FibError>;
    fn insert(
        writer: &mut Self::Writer,
        net: Self::Net,
        group: u32,
    ) -> Result<Option<u32>, FibError>;
    fn remove(writer: &mut Self::Writer, net: Self::Net) -> Option<u32>;
    fn memory(writer: &Self::Writer) -> Memory;
    fn batch(fib: &Self::Fib, addresses: &[Self::Address], groups: &mut [u32]);
    fn one(fib: &Self::Fib, address: Self::Address) -> u32;
}

macro_rules! family {
    ($name:ident, $net:ty, $address:ty, $fib:ty, $writer:ty, $routes:ident, $destinations:ident) => {
        struct $name;
        impl Family for $name {
            type Net = $net;
            type Address = $address;
            type Fib = $fib;
            type Writer = $writer;
            fn routes(seed: u64, count: usize) -> Vec<($net, u32)> {
                $routes(seed, count, HOPS)
            }
            fn destinations(seed: u64, routes: &[($net, u32)]) -> Vec<$address> {
                $destinations(seed, DESTINATIONS, routes)
            }
            fn writer(domain: &Domain) -> Result<$writer, FibError> {
                <$writer>::new(domain)
            }
            fn fib(writer: &$writer) -> Arc<$fib> {
                writer.fib().clone()
            }
            fn extend(writer: &mut $writer, routes: &[($net, u32)]) -> Result<(), FibError> {
                writer.extend(routes)
            }
            fn insert(
                writer: &mut $writer,
                net: $net,
                group: u32,
            ) -> Result<Option<u32>, FibError> {
                writer.insert(net, group)
            }
            fn remove(writer: &mut $writer, net: $net) -> Option<u32> {
                writer.remove(net)
            }
            fn memory(writer: &$writer) -> Memory {
                writer.memory()
            }
            #[inline(always)]
            fn batch(fib: &$fib, addresses: &[$address], groups: &mut [u32]) {
                fib.lookup_batch(addresses, groups);
            }
            #[inline(always)]
            fn one(fib: &$fib, address: $address) -> u32 {
                fib.lookup(address)
            }
        }
    };
}

family!(V4, Ipv4Net, u32, Fib4, Fib4Writer, internet4, destinations4);
family!(
    V6,
    Ipv6Net,
    u128,
    Fib6,
    Fib6Writer,
    internet6,
    destinations6
);

/// Looks all destinations up; the sum of the groups, so that nothing is left out.
struct Pass<'a, F: Family> {
    fib: &'a F::Fib,
    destinations: &'a [F::Address],
    batched: bool,
}

impl<F: Family> Task for Pass<'_, F> {
    type Output = u64;
    #[inline(always)]
    fn run(self) -> u64 {
        let mut sum = 0;
        let mut groups = [0u32; VECTOR];
        for vector in self.destinations.chunks(VECTOR) {
            let groups = &mut groups[..vector.len()];
            if self.batched {
                F::batch(self.fib, vector, groups);
            } else {
                groups
                    .iter_mut()
                    .zip(vector)
                    .for_each(|(group, &address)| *group = F::one(self.fib, address));
            }
            sum += groups.iter().map(|&group| u64::from(group)).sum::<u64>();
        }
        sum
    }
}

/// Clocks a lookup: the median of some rounds.
fn clocks<F: Family>(
    fib: &F::Fib,
    destinations: &[F::Address],
    batched: bool,
    rounds: usize,
) -> f64 {
    let mut all: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = tsc();
            std::hint::black_box(dispatch(Pass::<F> {
                fib,
                destinations,
                batched,
            }));
            (tsc() - start) as f64 / destinations.len() as f64
        })
        .collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Looks up until instructed to stop, as a worker does: a quiescent state a vector. Clocks a lookup.
fn read<F: Family>(
    fib: &F::Fib,
    mut reader: Reader,
    destinations: &[F::Address],
    stop: &AtomicBool,
    started: &AtomicBool,
) -> f64 {
    let (mut rounds, start) = (0u64, tsc());
    started.store(true, Ordering::Relaxed);
    let mut spent = 0;
    while !stop.load(Ordering::Relaxed) {
        for part in destinations.chunks(16 * VECTOR) {
            for vector in part.chunks(VECTOR) {
                reader.quiesce();
                std::hint::black_box(dispatch(Pass::<F> {
                    fib,
                    destinations: vector,
                    batched: true,
                }));
            }
            rounds += part.len() as u64;
        }
        spent = tsc() - start;
    }
    spent as f64 / rounds as f64
}

/// Half of the changes give a route another group, a quarter each removes one and adds one.
fn change<F: Family>(
    writer: &mut F::Writer,
    routes: &[(F::Net, u32)],
    random: &mut Random,
    missing: &mut Vec<usize>,
) {
    let n = random.below(routes.len() as u64) as usize;
    match random.below(4) {
        0 => {
            if F::remove(writer, routes[n].0).is_some() {
                missing.push(n);
            }
        }
        1 if !missing.is_empty() => {
            let n = missing.swap_remove(random.below(missing.len() as u64) as usize);
            let _ = F::insert(writer, routes[n].0, routes[n].1);
        }
        _ => {
            let _ = F::insert(
                writer,
                routes[n].0,
                1 + random.below(u64::from(HOPS)) as u32,
            );
            missing.retain(|&other| other != n);
        }
    }
}

fn beside<F: Family>(
    domain: &Domain,
    writer: &mut F::Writer,
    routes: &[(F::Net, u32)],
    destinations: &[F::Address],
    rate: Option<f64>,
) -> (f64, f64) {
    let Ok(reader) = domain.register() else {
        return (0.0, 0.0);
    };
    let (stop, started) = (AtomicBool::new(false), AtomicBool::new(false));
    let fib = F::fib(writer);
    std::thread::scope(|scope| {
        let (stop, started) = (&stop, &started);
        let handle = scope.spawn(move || {
            let _ = weir_cpu::pin_to(1);
            read::<F>(&fib, reader, destinations, stop, started)
        });
        // With real-time priority nobody else gets this core before it is left for a moment.
        while !started.load(Ordering::Relaxed) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let _ = weir_cpu::pin_to(0);
        let start = Instant::now();
        let (mut random, mut missing, mut done) = (Random::new(5), Vec::new(), 0u64);
        while start.elapsed().as_secs_f64() < 2.0 {
            match rate {
                Some(rate) if done as f64 >= rate * start.elapsed().as_secs_f64() => {
                    std::hint::spin_loop()
                }
                _ => {
                    change::<F>(writer, routes, &mut random, &mut missing);
                    done += 1;
                }
            }
        }
        let rate = done as f64 / start.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        (rate, handle.join().unwrap_or(0.0))
    })
}

fn report<F: Family>(name: &str, count: usize) -> Result<(), FibError> {
    let routes = F::routes(1, count);
    let destinations = F::destinations(2, &routes);
    let domain = Domain::new(1);

    let mut writer = F::writer(&domain)?;
    let start = Instant::now();
    F::extend(&mut writer, &routes)?;
    let whole = start.elapsed().as_secs_f64();
    let memory = F::memory(&writer);
    let fib = F::fib(&writer);
    println!("{name}: {count} prefixes at once in {whole:.3} s; {memory:?}");
    println!(
        "  {:.1} bytes a prefix for lookups, {:.1} in all",
        memory.table as f64 / count as f64,
        (memory.table + memory.routes) as f64 / count as f64
    );
    println!(
        "  {:.1} clocks a lookup batched, {:.1} one by one",
        clocks::<F>(&fib, &destinations, true, 31),
        clocks::<F>(&fib, &destinations, false, 31)
    );

    let mut single = F::writer(&domain)?;
    let start = Instant::now();
    for &(net, group) in &routes {
        F::insert(&mut single, net, group)?;
    }
    let memory = F::memory(&single);
    println!(
        "  one by one in {:.3} s, then {:.1} bytes a prefix for lookups",
        start.elapsed().as_secs_f64(),
        memory.table as f64 / count as f64
    );
    let fib = F::fib(&single);
    println!(
        "  then {:.1} clocks a lookup batched",
        clocks::<F>(&fib, &destinations, true, 31)
    );

    for rate in [Some(0.0), None, Some(300_000.0), Some(0.0)] {
        let (updates, clocks) = beside::<F>(&domain, &mut writer, &routes, &destinations, rate);
        println!("  {updates:.0} changes a second beside a reader at {clocks:.2} clocks a lookup");
    }
    let memory = F::memory(&writer);
    println!(
        "  after these {:.1} bytes a prefix for lookups, {memory:?}",
        memory.table as f64 / count as f64
    );
    Ok(())
}

fn main() -> Result<(), FibError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let family = arguments.first().map_or("", String::as_str);
    let count = arguments.get(1).and_then(|count| count.parse().ok());
    println!(
        "{} at {:.2} GHz",
        weir_cpu::model_name(),
        tsc_hz() as f64 / 1e9
    );
    if family != "6" {
        report::<V4>("IPv4", count.unwrap_or(1_000_000))?;
    }
    if family != "4" {
        report::<V6>("IPv6", count.unwrap_or(250_000))?;
    }
    Ok(())
}
