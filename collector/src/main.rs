//! The command `weir-collector`.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use weir_collector::config::Config;
use weir_collector::receive::now;
use weir_collector::store::Store;
use weir_collector::store::state::StateDb;
use weir_collector::users::{self, Role};
use weir_collector::{doctor, import};

/// Receives sFlow, IPFIX and NetFlow, stores flows, answers queries, serves a console.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the collector.
    Run {
        /// Configuration file; without one everything has its default.
        #[arg(short, long)]
        config: Option<PathBuf>,
        /// Folder of all data, instead of the configured one.
        #[arg(short, long)]
        data: Option<PathBuf>,
    },
    /// Check a configuration file.
    Check {
        /// The file.
        config: PathBuf,
    },
    /// Add a user or change one; the password is read from standard input. The collector must not run.
    User {
        /// Folder of all data.
        #[arg(short, long)]
        data: PathBuf,
        /// viewer, operator or admin.
        #[arg(short, long, default_value = "admin")]
        role: Role,
        /// Show the traffic of this tenant only; the role must be viewer.
        #[arg(short, long)]
        tenant: Option<String>,
        /// Name of the user.
        name: String,
    },
    /// Make an API token and print it. The collector must not run.
    Token {
        /// Folder of all data.
        #[arg(short, long)]
        data: PathBuf,
        /// viewer, operator or admin.
        #[arg(short, long, default_value = "viewer")]
        role: Role,
        /// Show the traffic of this tenant only; the role must be viewer.
        #[arg(short, long)]
        tenant: Option<String>,
        /// Days until it ends.
        #[arg(long, default_value_t = 365)]
        days: u32,
        /// What it is for.
        name: String,
    },
    /// Store the datagrams of capture files (pcap, pcapng), or the records of nfcapd files (read by nfdump). The collector must not
    /// run.
    Import {
        /// Configuration file, for names; without one everything has its default.
        #[arg(short, long)]
        config: Option<PathBuf>,
        /// Folder of all data, instead of the configured one.
        #[arg(short, long)]
        data: Option<PathBuf>,
        /// UDP port of the datagrams; without it 6343, 4739, 2055, 9995 and 9996.
        #[arg(long)]
        port: Option<u16>,
        /// Also files that were imported before.
        #[arg(long)]
        again: bool,
        /// The files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Print the alerts that capture files would have raised by the rules of a configuration.
    Replay {
        /// Configuration file with the rules.
        #[arg(short, long)]
        config: PathBuf,
        /// UDP port of the datagrams; without it 6343, 4739, 2055, 9995 and 9996.
        #[arg(long)]
        port: Option<u16>,
        /// The files, in the order of time.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Say what on this machine would keep the collector from working well.
    Doctor {
        /// Configuration file; without one everything has its default.
        #[arg(short, long)]
        config: Option<PathBuf>,
        /// Folder of all data, instead of the configured one.
        #[arg(short, long)]
        data: Option<PathBuf>,
    },
    /// Measure decoding and storing on this machine.
    Bench {
        /// Rows of each measurement.
        #[arg(long, default_value_t = 1_000_000)]
        rows: usize,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

fn main() -> ExitCode {
    let filter =
        tracing_subscriber::EnvFilter::try_from_env("WEIR_LOG").unwrap_or_else(|_| "warn".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    match command(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("weir-collector: {error}");
            ExitCode::FAILURE
        }
    }
}

fn command(command: Command) -> Result<(), Box<dyn std::error::Error>> {
    match command {
        Command::Run { config, data } => {
            runtime()?.block_on(weir_collector::run::run(configuration(config, data)?))?;
        }
        Command::Import {
            config,
            data,
            port,
            again,
            files,
        } => {
            let config = configuration(config, data)?;
            let store = Store::open(&config.data, now())?;
            for path in files {
                let import = import::import(&config, &store, &path, port, again);
                let counts = runtime()?.block_on(import)?;
                println!("{}: {}", path.display(), text(counts));
            }
        }
        Command::Replay {
            config,
            port,
            files,
        } => {
            let (counts, alerts) = import::replay(&Config::read(&config)?, &files, port)?;
            println!("{}", text(counts));
            for alert in &alerts {
                println!("{}", serde_json::to_string(alert)?);
            }
            println!("{} alerts", alerts.len());
        }
        Command::Doctor { config, data } => {
            let findings = doctor::examine(&configuration(config, data)?);
            for finding in &findings {
                println!("{finding}");
            }
            if findings.iter().any(|finding| finding.is_problem) {
                return Err("at least one finding is a problem".into());
            }
        }
        Command::Check { config } => {
            Config::read(&config)?;
            println!("{}: no errors", config.display());
        }
        Command::User {
            data,
            role,
            tenant,
            name,
        } => {
            let mut password = String::new();
            std::io::stdin().read_to_string(&mut password)?;
            users::set_user(
                &open(&data)?,
                &name,
                password.trim_end_matches(['\r', '\n']),
                role,
                tenant,
            )?;
            println!("user {name} has the role {role:?}");
        }
        Command::Token {
            data,
            role,
            tenant,
            days,
            name,
        } => {
            let ends = now() + i64::from(days) * 86_400;
            println!(
                "{}",
                users::add_token(&open(&data)?, &name, role, ends, tenant)?
            );
        }
        Command::Bench { rows, json } => weir_collector::bench::run(rows, json)?,
    }
    Ok(())
}

fn configuration(
    file: Option<PathBuf>,
    data: Option<PathBuf>,
) -> Result<Config, Box<dyn std::error::Error>> {
    let mut config = match file {
        Some(path) => Config::read(&path)?,
        None => Config::default(),
    };
    if let Some(data) = data {
        config.data = data;
    }
    config.data = std::path::absolute(&config.data)?;
    Ok(config)
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
}

fn text(counts: import::Counts) -> String {
    let import::Counts {
        frames,
        datagrams,
        rows,
        broken,
    } = counts;
    format!("{frames} frames, {broken} of them broken, {datagrams} datagrams, {rows} rows")
}

fn open(data: &std::path::Path) -> Result<StateDb, Box<dyn std::error::Error>> {
    std::fs::create_dir_all(data)?;
    Ok(StateDb::open(&data.join("state.redb"))?)
}
