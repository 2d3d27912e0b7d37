//! Runs a case untimed, for `cargo xtask instructions`: the words of `weir bench --untimed`, without the rest of weir.
//! Without a case it names those that it can run.
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (Some(turns), name) = (
        words.get(2).and_then(|turns| turns.parse().ok()),
        words.get(3),
    ) else {
        eprintln!("usage: count bench --untimed TURNS [CASE]");
        std::process::exit(2);
    };
    for &case in weir_bench::Case::ALL
        .iter()
        .filter(|case| name.is_none_or(|name| name == case.name()))
    {
        match weir_bench::run_untimed(case, if name.is_some() { turns } else { 0 }) {
            Ok(Some(packets)) => println!("{} {packets}", case.name()),
            Ok(None) => {}
            Err(error) => {
                eprintln!("{}: {error}", case.name());
                std::process::exit(1);
            }
        }
    }
}
