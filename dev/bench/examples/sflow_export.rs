//! `weir bench sflow-export` without the rest of `weir`: builds in a minute.

fn main() {
    match weir_bench::sflow_export(std::time::Duration::from_secs(1), |_| {}) {
        Ok(found) => println!("{found:#?}"),
        Err(error) => eprintln!("{error}"),
    }
}
