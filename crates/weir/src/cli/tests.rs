//! The table itself, and what it makes of VPP's spellings.

use clap::CommandFactory;
use clap::error::ErrorKind;

use super::*;

fn parse(line: &str) -> Cli {
    Cli::try_parse_from(line.split_whitespace()).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn refused(line: &str) -> clap::Error {
    Cli::try_parse_from(line.split_whitespace()).map(drop).expect_err(line)
}

fn shown(line: &str) -> Show {
    match parse(line).command {
        Command::Show(args) => args.what,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn the_table_is_consistent() {
    Cli::command().debug_assert();
}

/// Every command and argument has a help text: the table is the documentation.
#[test]
fn everything_is_explained() {
    fn walk(command: &clap::Command, path: &str) {
        let path = format!("{path} {}", command.get_name());
        assert!(command.get_about().is_some(), "{path}");
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{path}: {}", argument.get_id());
        }
        command.get_subcommands().for_each(|inner| walk(inner, &path));
    }
    walk(&Cli::command(), "");
}

/// The help names the socket's default place, which is the configuration's.
#[test]
fn the_default_socket_is_told() {
    let default = crate::client::default_socket().display().to_string();
    let help = Cli::command().render_help().to_string();
    assert!(help.contains(&default), "{help}");
}

/// Each example in a help text is a command line that is understood.
#[test]
fn examples_are_understood() {
    let mut tried = 0;
    for text in [EXAMPLES, SHOW_EXAMPLES, TRACE_EXAMPLES, DEMO_EXAMPLES, BENCH_EXAMPLES, COMPLETIONS_EXAMPLES, DECODE_EXAMPLES] {
        for line in text.lines().filter_map(|line| line.strip_prefix("  ")) {
            let line = line.trim_start_matches("sudo ");
            let end = [" > ", " | ", "  "].iter().filter_map(|mark| line.find(mark)).min().unwrap_or(line.len());
            parse(&line[..end]);
            tried += 1;
        }
    }
    assert!(tried > 20, "{tried}");
}

#[test]
fn both_spellings_mean_the_same() {
    for line in ["show interface wan", "show interfaces wan", "show int wan", "sh int wan"] {
        assert!(matches!(shown(&format!("weir {line}")), Show::Interface(args) if args.name.as_deref() == Some("wan")), "{line}");
    }
    for line in ["show hardware wan", "show hardware-interfaces wan", "show hw wan --verbose"] {
        assert!(matches!(shown(&format!("weir {line}")), Show::Hardware(args) if args.interface.as_deref() == Some("wan")), "{line}");
    }
    assert!(matches!(shown("weir show rx-placement wan"), Show::RxPlacement(of) if of.interface.as_deref() == Some("wan")));
    let aspect = |line: &str| match shown(line) {
        Show::Interface(ShowInterfaceArgs { name: None, aspect: Some(aspect) }) => aspect,
        other => panic!("{line}: {other:?}"),
    };
    assert!(matches!(aspect("weir show interface rx-placement"), InterfaceAspect::RxPlacement(of) if of.interface.is_none()));
    assert!(matches!(aspect("weir show int addr wan"), InterfaceAspect::Addr(of) if of.interface.as_deref() == Some("wan")));
    for line in ["show ip neighbors", "show ip neighbor"] {
        assert!(matches!(shown(&format!("weir {line}")), Show::Ip(ShowIp::Neighbors(_))), "{line}");
    }
    for line in ["show neighbors", "show neighbor", "show arp"] {
        assert!(matches!(shown(&format!("weir {line}")), Show::Neighbors(_)), "{line}");
    }
    assert!(matches!(shown("weir show ip fib 10.0.0.1"), Show::Ip(ShowIp::Fib(args)) if args.prefix.as_deref() == Some("10.0.0.1")));
    for line in ["show route", "show routes", "show fib"] {
        assert!(matches!(shown(&format!("weir {line}")), Show::Route(_)), "{line}");
    }
    for line in ["show errors", "show error", "show err --by-worker"] {
        assert!(matches!(shown(&format!("weir {line}")), Show::Errors(_)), "{line}");
    }
    for (line, what) in [("interface", ClearWhat::Interface), ("interfaces", ClearWhat::Interface), ("runtime", ClearWhat::Runtime)] {
        assert!(matches!(parse(&format!("weir clear {line}")).command, Command::Clear(args) if args.what == what), "{line}");
    }
}

/// A name that is also a word can still be said.
#[test]
fn names_like_words_can_be_said() {
    assert!(matches!(shown("weir show interface -- addr"), Show::Interface(args) if args.name.as_deref() == Some("addr")));
}

#[test]
fn json_and_socket_may_stand_anywhere() {
    for line in
        ["weir --socket /s show --json interface wan", "weir show interface wan --json --socket /s", "weir show --json ip fib --socket /s"]
    {
        let cli = parse(line);
        assert_eq!(cli.socket.as_deref(), Some("/s".as_ref()), "{line}");
        assert!(matches!(cli.command, Command::Show(args) if args.json), "{line}");
    }
}

#[test]
fn every_show_has_json() {
    let command = Cli::command();
    let show = command.find_subcommand("show").unwrap();
    for what in show.get_subcommands().filter(|what| what.get_name() != "ip") {
        let line = format!("weir show {} --json", what.get_name());
        let json = match parse(&line).command {
            Command::Show(ShowArgs { what: Show::Trace(args), .. }) => args.json,
            Command::Show(args) => args.json,
            other => panic!("{other:?}"),
        };
        assert!(json, "{line}");
    }
}

#[test]
fn traces_have_bounds() {
    let add = |line: &str| match parse(line).command {
        Command::Trace(TraceArgs { what: TraceCommand::Add(args) }) => args,
        other => panic!("{line}: {other:?}"),
    };
    let args = add("weir trace add any");
    assert_eq!((args.node.as_str(), args.count, args.interface), ("any", 50, None));
    let args = add("weir trace add ip4-lookup 7 --interface wan");
    assert_eq!((args.node.as_str(), args.count, args.interface.as_deref()), ("ip4-lookup", 7, Some("wan")));
    for count in ["0", "10001", "-1", "x"] {
        assert_eq!(refused(&format!("weir trace add any {count}")).exit_code(), 2, "{count}");
    }
}

#[test]
fn bench_and_demo_take_their_arguments() {
    let bench = |line: &str| match parse(line).command {
        Command::Bench(args) => (args.cases, args.json, args.other),
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(bench("weir bench"), (vec![], false, None));
    assert_eq!(bench("weir bench l2xc ip4 --json"), (vec!["l2xc".to_owned(), "ip4".to_owned()], true, None));
    assert_eq!(bench("weir bench afxdp --json"), (vec![], true, Some(BenchOther::Afxdp)));
    let Command::Demo(demo) = parse("weir demo --duration 10s --json --rate 50000").command else { panic!() };
    assert_eq!((demo.duration, demo.json, demo.rate), (Some(Duration::from_secs(10)), true, Some(50_000)));
    assert_eq!(refused("weir demo --rate 0").exit_code(), 2);
}

#[test]
fn durations_have_units() {
    for (text, milliseconds) in [("10s", 10_000), ("10", 10_000), ("500ms", 500), ("2m", 120_000), ("1h", 3_600_000)] {
        assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
    }
    for text in ["", "s", "0s", "-1s", "1.5s", "10 s", "1d", "99999999999999999999s", "18446744073709551615h"] {
        assert!(duration(text).is_err(), "{text}");
    }
}

#[test]
fn decode_reads_or_listens() {
    let decode = |line: &str| match parse(line).command {
        Command::Sflow(SflowCommand::Decode(args)) => args,
        other => panic!("{line}: {other:?}"),
    };
    let args = decode("weir sflow decode -r x.pcap --port 9999 --format line");
    assert_eq!((args.read, args.listen, args.port, args.format), (Some("x.pcap".into()), None, 9999, DecodeFormat::Line));
    for (text, address) in [("127.0.0.1:1", "127.0.0.1:1"), ("[::1]:2", "[::1]:2"), (":3", "[::]:3"), ("4", "[::]:4")] {
        assert_eq!(decode(&format!("weir sflow decode -l {text}")).listen, Some(address.parse().unwrap()), "{text}");
    }
    assert_eq!(refused("weir sflow decode").kind(), ErrorKind::MissingRequiredArgument);
    assert_eq!(refused("weir sflow decode -r x -l 6343").kind(), ErrorKind::ArgumentConflict);
    assert_eq!(refused("weir sflow decode -l localhost").exit_code(), 2);
    assert_eq!(refused("weir sflow decode -r x --port 0").exit_code(), 2);
}

#[test]
fn what_is_not_understood_is_usage() {
    for line in ["weir", "weir show", "weir show nonsense", "weir run", "weir config check", "weir completions tcsh", "weir clear sflow"] {
        assert_eq!(refused(line).exit_code(), 2, "{line}");
    }
    for line in ["weir --help", "weir show --help", "weir --version"] {
        assert_eq!(refused(line).exit_code(), 0, "{line}");
    }
}
