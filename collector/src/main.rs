//! The command `weir-collector`.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use weir_collector::config::Config;
use weir_collector::receive::now;
use weir_collector::store::state::StateDb;
use weir_collector::users::{self, Role};

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
        /// Days until it ends.
        #[arg(long, default_value_t = 365)]
        days: u32,
        /// What it is for.
        name: String,
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
            let mut config = match config {
                Some(path) => Config::read(&path)?,
                None => Config::default(),
            };
            if let Some(data) = data {
                config.data = data;
            }
            config.data = std::path::absolute(&config.data)?;
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .build()?;
            runtime.block_on(weir_collector::run::run(config))?;
        }
        Command::Check { config } => {
            Config::read(&config)?;
            println!("{}: no errors", config.display());
        }
        Command::User { data, role, name } => {
            let mut password = String::new();
            std::io::stdin().read_to_string(&mut password)?;
            users::set_user(
                &open(&data)?,
                &name,
                password.trim_end_matches(['\r', '\n']),
                role,
            )?;
            println!("user {name} has the role {role:?}");
        }
        Command::Token {
            data,
            role,
            days,
            name,
        } => {
            let ends = now() + i64::from(days) * 86_400;
            println!("{}", users::add_token(&open(&data)?, &name, role, ends)?);
        }
        Command::Bench { rows, json } => weir_collector::bench::run(rows, json)?,
    }
    Ok(())
}

fn open(data: &std::path::Path) -> Result<StateDb, Box<dyn std::error::Error>> {
    std::fs::create_dir_all(data)?;
    Ok(StateDb::open(&data.join("state.redb"))?)
}
