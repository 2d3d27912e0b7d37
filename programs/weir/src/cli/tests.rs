//! The table itself, and what it makes of VPP's spellings.

use clap::CommandFactory;
use clap::error::ErrorKind;

use super::*;

fn parse(line: &str) -> Cli {
    Cli::try_parse_from(line.split_whitespace()).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn command(line: &str) -> Command {
    parse(line).command.unwrap()
}

fn refused(line: &str) -> clap::Error {
    Cli::try_parse_from(line.split_whitespace())
        .map(drop)
        .expect_err(line)
}

fn shown(line: &str) -> Show {
    match command(line) {
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
            assert!(
                argument.get_help().is_some(),
                "{path}: {}",
                argument.get_id()
            );
        }
        command
            .get_subcommands()
            .for_each(|inner| walk(inner, &path));
    }
    walk(&Cli::command(), "");
}

/// The help names the socket's default place, which is the configuration's.
#[test]
fn the_default_socket_is_reported() {
    let default = default_socket().display().to_string();
    let help = Cli::command().render_help().to_string();
    assert!(help.contains(&default), "{help}");
}

/// Each example in a help text is a command line that is understood.
#[test]
fn examples_are_understood() {
    let mut tried = 0;
    let mut texts = vec![Cli::command()];
    while let Some(next) = texts.pop() {
        let text = next
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let lines = text
            .lines()
            .filter_map(|line| line.strip_prefix("  "))
            .map(|line| line.trim_start_matches("sudo "));
        for line in lines.filter(|line| line.starts_with("weir")) {
            let end = [" > ", " | ", "  "]
                .iter()
                .filter_map(|mark| line.find(mark))
                .min()
                .unwrap_or(line.len());
            let words = crate::shell::split::split(&line[..end])
                .words
                .into_iter()
                .map(Into::into)
                .collect();
            let words = crate::shell::written_out(words).unwrap();
            Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{line}: {error}"));
            tried += 1;
        }
        texts.extend(next.get_subcommands().cloned());
    }
    assert!(tried > 25, "{tried}");
}

#[test]
fn both_spellings_mean_the_same() {
    for line in [
        "show interface wan",
        "show interfaces wan",
        "show int wan",
        "sh int wan",
    ] {
        assert!(
            matches!(shown(&format!("weir {line}")), Show::Interface(args) if args.name.as_deref() == Some("wan")),
            "{line}"
        );
    }
    for line in [
        "show hardware wan",
        "show hardware-interfaces wan",
        "show hw wan --verbose",
    ] {
        assert!(
            matches!(shown(&format!("weir {line}")), Show::Hardware(args) if args.interface.as_deref() == Some("wan")),
            "{line}"
        );
    }
    assert!(
        matches!(shown("weir show rx-placement wan"), Show::RxPlacement(of) if of.interface.as_deref() == Some("wan"))
    );
    let aspect = |line: &str| match shown(line) {
        Show::Interface(ShowInterfaceArgs {
            name: None,
            aspect: Some(aspect),
        }) => aspect,
        other => panic!("{line}: {other:?}"),
    };
    assert!(
        matches!(aspect("weir show interface rx-placement"), InterfaceAspect::RxPlacement(of) if of.interface.is_none())
    );
    assert!(
        matches!(aspect("weir show int addr wan"), InterfaceAspect::Addr(of) if of.interface.as_deref() == Some("wan"))
    );
    for line in ["show ip neighbors", "show ip neighbor"] {
        assert!(
            matches!(
                shown(&format!("weir {line}")),
                Show::Ip(ShowIp::Neighbors(_))
            ),
            "{line}"
        );
    }
    for line in ["show neighbors", "show neighbor", "show arp"] {
        assert!(
            matches!(shown(&format!("weir {line}")), Show::Neighbors(_)),
            "{line}"
        );
    }
    assert!(
        matches!(shown("weir show ip fib 10.0.0.1"), Show::Ip(ShowIp::Fib(args)) if args.prefix.as_deref() == Some("10.0.0.1"))
    );
    for line in ["show route", "show routes", "show fib"] {
        assert!(
            matches!(shown(&format!("weir {line}")), Show::Route(_)),
            "{line}"
        );
    }
    for line in ["show errors", "show error", "show err --by-worker"] {
        assert!(
            matches!(shown(&format!("weir {line}")), Show::Errors(_)),
            "{line}"
        );
    }
    for (line, what) in [
        ("interface", ClearWhat::Interface),
        ("interfaces", ClearWhat::Interface),
        ("runtime", ClearWhat::Runtime),
    ] {
        assert!(
            matches!(command(&format!("weir clear {line}")), Command::Clear(args) if args.what == what),
            "{line}"
        );
    }
}

/// A name that is also a word can still be said.
#[test]
fn names_like_words_can_be_said() {
    assert!(
        matches!(shown("weir show interface -- addr"), Show::Interface(args) if args.name.as_deref() == Some("addr"))
    );
}

#[test]
fn json_and_socket_may_stand_anywhere() {
    for line in [
        "weir --socket /s show --json interface wan",
        "weir show interface wan --json --socket /s",
        "weir show --json ip fib --socket /s",
    ] {
        let cli = parse(line);
        assert_eq!(cli.at.socket.as_deref(), Some("/s".as_ref()), "{line}");
        assert!(
            cli.json && matches!(cli.command, Some(Command::Show(_))),
            "{line}"
        );
    }
}

/// `--json` is everywhere, also where a command has it as its own.
#[test]
fn every_command_has_json() {
    fn walk(command: &clap::Command) {
        assert!(
            command
                .get_arguments()
                .any(|argument| argument.get_long() == Some("json")),
            "{command}"
        );
        command.get_subcommands().for_each(walk);
    }
    let mut tree = Cli::command();
    tree.build();
    walk(&tree);
    for line in [
        "weir --json bench l2xc",
        "weir bench l2xc --json",
        "weir bench --json l2xc",
    ] {
        assert!(
            matches!(command(line), Command::Bench(args) if args.json),
            "{line}"
        );
    }
    for line in ["weir --json demo", "weir demo --json"] {
        assert!(
            matches!(command(line), Command::Demo(args) if args.json),
            "{line}"
        );
    }
}

/// What a value is stands in the table of kinds, under the name that the help shows.
#[test]
fn every_value_has_a_kind() {
    fn walk(command: &clap::Command, seen: &mut Vec<&'static str>) {
        for argument in command
            .get_arguments()
            .filter(|argument| crate::shell::takes_value(argument))
        {
            let kind = kind::Kind::of(argument);
            assert!(kind.is_some(), "{command} {}", argument.get_id());
            seen.extend(kind.map(|kind| kind.name));
        }
        command
            .get_subcommands()
            .for_each(|inner| walk(inner, seen));
    }
    let mut tree = Cli::command();
    tree.build();
    let mut seen = Vec::new();
    walk(&tree, &mut seen);
    for kind in kind::KINDS {
        assert!(seen.contains(&kind.name), "no value is a {}", kind.name);
    }
}

#[test]
fn traces_have_bounds() {
    let add = |line: &str| match command(line) {
        Command::Trace(TraceArgs {
            what: TraceCommand::Add(args),
        }) => args,
        other => panic!("{line}: {other:?}"),
    };
    let args = add("weir trace add any");
    assert_eq!(
        (args.node.as_str(), args.count, args.interface),
        ("any", 50, None)
    );
    let args = add("weir trace add ip4-lookup 7 --interface wan");
    assert_eq!(
        (args.node.as_str(), args.count, args.interface.as_deref()),
        ("ip4-lookup", 7, Some("wan"))
    );
    for count in ["0", "10001", "-1", "x"] {
        assert_eq!(
            refused(&format!("weir trace add any {count}")).exit_code(),
            2,
            "{count}"
        );
    }
}

#[test]
fn bench_and_demo_take_their_arguments() {
    let bench = |line: &str| match command(line) {
        Command::Bench(args) => (args.cases, args.json, args.other),
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(bench("weir bench"), (vec![], false, None));
    assert_eq!(
        bench("weir bench l2xc ip4 --json"),
        (vec!["l2xc".to_owned(), "ip4".to_owned()], true, None)
    );
    let afxdp = |rounds, seconds| Some(BenchOther::Afxdp(AfxdpArgs { rounds, seconds }));
    assert_eq!(
        bench("weir bench afxdp --json"),
        (vec![], true, afxdp(5, 3))
    );
    assert_eq!(
        bench("weir bench afxdp --rounds 1 --seconds 1"),
        (vec![], false, afxdp(1, 1))
    );
    let Command::Demo(demo) = command("weir demo --duration 10s --json --rate 50000") else {
        panic!()
    };
    assert_eq!(
        (demo.duration, demo.json, demo.rate),
        (Some(Duration::from_secs(10)), true, Some(50_000))
    );
    assert_eq!(refused("weir demo --rate 0").exit_code(), 2);
}

#[test]
fn durations_have_units() {
    for (text, milliseconds) in [
        ("10s", 10_000),
        ("10", 10_000),
        ("500ms", 500),
        ("2m", 120_000),
        ("1h", 3_600_000),
    ] {
        assert_eq!(
            duration(text),
            Ok(Duration::from_millis(milliseconds)),
            "{text}"
        );
    }
    for text in [
        "",
        "s",
        "0s",
        "-1s",
        "1.5s",
        "10 s",
        "1d",
        "99999999999999999999s",
        "18446744073709551615h",
    ] {
        assert!(duration(text).is_err(), "{text}");
    }
}

#[test]
fn decode_reads_or_listens() {
    let decode = |line: &str| match command(line) {
        Command::Sflow(SflowCommand::Decode(args)) => args,
        other => panic!("{line}: {other:?}"),
    };
    let args = decode("weir sflow decode -r x.pcap --port 9999 --format line");
    assert_eq!(
        (args.read, args.listen, args.port, args.format),
        (Some("x.pcap".into()), None, 9999, Some(DecodeFormat::Line))
    );
    for (text, address) in [
        ("127.0.0.1:1", "127.0.0.1:1"),
        ("[::1]:2", "[::1]:2"),
        (":3", "[::]:3"),
        ("4", "[::]:4"),
    ] {
        assert_eq!(
            decode(&format!("weir sflow decode --listen {text}")).listen,
            Some(address.parse().unwrap()),
            "{text}"
        );
    }
    let args = decode(
        "weir sflow decode -p 7000 -L srcIP,dstIP -f 192.0.2.1/6343 -f [2001:db8::1]/1 -f host:2",
    );
    assert_eq!(args.columns, ["srcIP", "dstIP"]);
    assert_eq!(
        args.forward,
        [
            ("192.0.2.1".into(), 6343),
            ("2001:db8::1".into(), 1),
            ("host".into(), 2)
        ]
    );
    assert_eq!(decode("weir sflow decode -r x -P 0.5").playback, Some(0.5));
    for wrong in [
        "-r x --listen 6343",
        "-l -j",
        "-t -T",
        "-g -L a",
        "-P 2",
        "-r x -P 0",
        "-r x -P -1",
        "-r x -P nan",
        "-f host",
        "-f host/0",
        "-f /1",
        "-f host/65536",
        "-d 0",
        "--listen localhost",
        "-r x --port 0",
    ] {
        assert_eq!(
            refused(&format!("weir sflow decode {wrong}")).exit_code(),
            2,
            "{wrong}"
        );
    }
}

#[test]
fn flow_decode_reads_or_listens() {
    let decode = |line: &str| match command(line) {
        Command::Flow(FlowCommand::Decode(args)) => args,
        other => panic!("{line}: {other:?}"),
    };
    let args = decode("weir flow decode -r x.pcap --port 9999 --format csv");
    assert_eq!(
        (args.read, args.listen, args.port, args.format),
        (
            Some("x.pcap".into()),
            None,
            Some(9999),
            Some(FlowFormat::Csv)
        )
    );
    assert_eq!(
        decode("weir flow decode -l 4739").listen,
        Some("[::]:4739".parse().unwrap())
    );
    assert_eq!(
        refused("weir flow decode").kind(),
        ErrorKind::MissingRequiredArgument
    );
    assert_eq!(
        refused("weir flow decode -r x -l 4739").kind(),
        ErrorKind::ArgumentConflict
    );
    assert_eq!(refused("weir flow").exit_code(), 2);
}

#[test]
fn what_is_not_understood_is_usage() {
    for line in [
        "weir show",
        "weir show nonsense",
        "weir run",
        "weir config check",
        "weir completions tcsh",
        "weir clear sflow",
    ] {
        assert_eq!(refused(line).exit_code(), 2, "{line}");
    }
    for line in ["weir --help", "weir show --help", "weir --version"] {
        assert_eq!(refused(line).exit_code(), 0, "{line}");
    }
}
