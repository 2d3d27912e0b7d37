//! The walk through the table of commands, and what comes of it: shortened words, Tab, `?`.

use clap::CommandFactory;
use proptest::prelude::*;

use super::help::help;
use super::objects::Objects;
use super::suggest::suggest;
use super::tree::{Ambiguous, Known, NothingKnown, Position};
use super::*;
use crate::render::Screen;

fn tree() -> Command {
    built(Cli::command())
}

fn socket(path: &str) -> Where {
    Where {
        socket: Some(path.into()),
        ..Where::default()
    }
}

fn nobody() -> Objects {
    Objects::new(socket("/nonexistent/api.sock"))
}

fn whole(line: &str, known: &dyn Known) -> Result<String, Ambiguous> {
    let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    Position::after(&tree(), &mut words, known)?;
    Ok(words.join(" "))
}

/// An interface with the name of a command's beginning.
struct Addr1;

impl Known for Addr1 {
    fn exists(&self, _argument: &clap::Arg, value: &str) -> bool {
        value == "ad"
    }
}

#[test]
fn words_may_be_shortened_while_they_are_clear() {
    for (short, long) in [
        ("sh int", "show interface"),
        ("sh int addr", "show interface addr"),
        ("sh int ad", "show interface addr"),
        ("sh hard wan", "show hardware wan"),
        ("sho hardware-interfaces", "show hardware"),
        ("sh ip fib", "show ip fib"),
        ("sh ip nei", "show ip neighbors"),
        ("sh err", "show errors"),
        ("sh ru", "show runtime"),
        ("sh run", "show runtime"),
        ("sh running", "show config"),
        ("sh ver", "show version"),
        ("cl int", "clear interface"),
        ("clear interfaces", "clear interface"),
        ("--socket show sh int", "--socket show show interface"),
        (
            "--json --socket=sh sh int",
            "--json --socket=sh show interface",
        ),
        ("sh --watch 2 int wan", "show --watch 2 interface wan"),
        ("tr add any", "trace add any"),
        ("sh int wan", "show interface wan"),
        ("be l2xc afxdp", "bench l2xc afxdp"),
        ("config check -c sh", "config check -c sh"),
        ("config check -csh", "config check -csh"),
        ("sfl dec -r x", "sflow decode -r x"),
        ("sh int -- ad", "show interface -- ad"),
        ("xyzzy sh int", "xyzzy sh int"),
        ("-x sh", "-x show"),
    ] {
        assert_eq!(whole(short, &NothingKnown).as_deref(), Ok(long), "{short}");
    }
}

#[test]
fn what_is_not_clear_is_reported() {
    let ambiguous = whole("sh r", &NothingKnown).unwrap_err();
    assert_eq!(
        ambiguous.to_string(),
        "\"r\" is not clear: rx-placement, runtime, route"
    );
    assert!(whole("s", &NothingKnown).is_err());
    // A hidden command must be written out: `i` is the interface.
    assert_eq!(
        whole("sh i", &NothingKnown).as_deref(),
        Ok("show interface")
    );
}

#[test]
fn a_name_that_exists_wins_over_a_shortened_word() {
    assert_eq!(
        whole("sh int ad", &Addr1).as_deref(),
        Ok("show interface ad")
    );
    assert_eq!(
        whole("sh int addr", &Addr1).as_deref(),
        Ok("show interface addr")
    );
}

fn suggested(line: &str) -> Vec<String> {
    let (before, word) = line.rsplit_once(' ').unwrap_or(("", line));
    let mut words: Vec<String> = before.split_whitespace().map(str::to_owned).collect();
    let tree = tree();
    let position = Position::after(&tree, &mut words, &NothingKnown).unwrap();
    suggest(&position, word, &nobody())
        .into_iter()
        .map(|suggestion| suggestion.word)
        .collect()
}

#[test]
fn tab_knows_words_options_and_values() {
    assert_eq!(suggested("sh"), ["show"]);
    assert_eq!(suggested("show ha"), ["hardware"]);
    assert_eq!(suggested("show hw"), ["hw"]);
    assert_eq!(suggested("sh int "), ["addr", "rx-placement"]);
    assert_eq!(
        suggested("show hardware --"),
        [
            "--all",
            "--watch",
            "--socket",
            "--router",
            "--ca",
            "--token-file",
            "--json"
        ]
    );
    assert_eq!(
        suggested("show hardware --all --"),
        [
            "--watch",
            "--socket",
            "--router",
            "--ca",
            "--token-file",
            "--json"
        ]
    );
    assert_eq!(suggested("completions "), ["bash", "zsh", "fish"]);
    assert_eq!(
        suggested("sflow decode --format "),
        ["text", "line", "json", "none"]
    );
    assert_eq!(
        suggested("bench ip4"),
        weir_bench::Case::ALL
            .iter()
            .map(|case| case.name())
            .filter(|name| name.starts_with("ip4"))
            .collect::<Vec<_>>()
    );
    assert_eq!(suggested("complete "), ["bash", "zsh", "fish"]);
    assert!(
        suggested("compl").iter().all(|word| word == "completions"),
        "hidden commands are not listed"
    );
    assert!(suggested("show errors --by-worker=x ").is_empty());
}

#[test]
fn files_are_found_and_folders_go_on() {
    let folder = std::env::temp_dir().join(format!("weir-words-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("inner")).unwrap();
    for name in ["a.yaml", "b.yaml", ".hidden"] {
        std::fs::write(folder.join(name), "").unwrap();
    }
    let place = folder.display().to_string();
    let found = suggested(&format!("config check -c {place}/"));
    let hidden = suggested(&format!("config check --config {place}/.h"));
    let folders = suggested(&format!("man {place}/"));
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(
        found,
        [
            format!("{place}/a.yaml"),
            format!("{place}/b.yaml"),
            format!("{place}/inner/")
        ]
    );
    assert_eq!(hidden, [format!("{place}/.hidden")]);
    assert_eq!(folders, [format!("{place}/inner/")]);
    assert!(suggested("config check -c /nonexistent/").is_empty());
}

#[test]
fn a_question_lists_what_may_follow() {
    let ask = |line: &str| help(&shell_tree(), line, &nobody(), &Screen::default());
    let text = ask("");
    assert!(
        text.contains("  show ")
            && text.contains("  quit ")
            && !text.contains("  run ")
            && !text.contains("complete"),
        "{text}"
    );
    let text = ask("show ");
    assert!(
        text.contains("  interface ")
            && text.contains("Drops by node, reason and interface")
            && !text.contains("Enter"),
        "{text}"
    );
    let text = ask("sh int ");
    assert!(
        text.contains("  INTERFACE     Only this interface, in detail\n")
            && text.contains("  Enter         does it\n"),
        "{text}"
    );
    assert_eq!(
        ask("show ru"),
        "  runtime  Calls, packets and clocks of each node on each worker\n"
    );
    assert_eq!(ask("show xyz"), "  nothing here begins with \"xyz\"\n");
    assert!(ask("sh r x").contains("not clear"));
    assert!(
        ask("trace add any 5 --interface ")
            .starts_with("  INTERFACE  Only packets received on this interface\n")
    );
    let narrow = help(
        &shell_tree(),
        "",
        &nobody(),
        &Screen {
            width: Some(40),
            colour: false,
        },
    );
    assert!(
        narrow.lines().all(|line| line.chars().count() <= 40),
        "{narrow}"
    );
}

#[test]
fn lines_mean_commands() {
    let mean = |line: &str| {
        let words = line.split_whitespace().map(str::to_owned).collect();
        interpret(
            &shell_tree(),
            words,
            &nobody(),
            &socket("/run/x.sock"),
            true,
        )
    };
    assert!(
        matches!(mean("exit"), Ok(Meaning::Quit))
            && matches!(mean("q"), Ok(Meaning::Quit))
            && matches!(mean("qui"), Ok(Meaning::Quit))
    );
    assert!(matches!(mean("help"), Ok(Meaning::Help)));
    let Ok(Meaning::Command(cli)) = mean("sh int") else {
        panic!()
    };
    assert_eq!((&cli.at, cli.json), (&socket("/run/x.sock"), true));
    let Ok(Meaning::Command(cli)) = mean("sh int --socket /run/y.sock") else {
        panic!()
    };
    assert_eq!(cli.at.socket.as_deref(), Some("/run/y.sock".as_ref()));
    assert!(matches!(mean("run -c x"), Err(NotUnderstood::Elsewhere(word)) if word == "run"));
    assert!(matches!(mean("sh r"), Err(NotUnderstood::Ambiguous(_))));
    assert!(matches!(mean("xyzzy"), Err(NotUnderstood::Usage(_))));
}

/// A router that listens but says nothing costs no more than the patience, and that once.
#[test]
fn a_silent_router_keeps_nobody_waiting() {
    let place = std::env::temp_dir().join(format!("weir-silent-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&place);
    let silent = std::os::unix::net::UnixListener::bind(&place).unwrap();
    let objects = Objects::new(socket(&place.display().to_string()));
    let began = std::time::Instant::now();
    assert!(
        objects
            .list(crate::cli::kind::Source::Interfaces)
            .is_empty()
    );
    let waited = began.elapsed();
    for _ in 0..100 {
        assert!(
            objects
                .list(crate::cli::kind::Source::Interfaces)
                .is_empty()
        );
        assert!(objects.list(crate::cli::kind::Source::Nodes).is_empty());
    }
    let all = began.elapsed();
    drop(silent);
    std::fs::remove_file(&place).unwrap();
    assert!(
        waited >= std::time::Duration::from_millis(200),
        "{waited:?}"
    );
    assert!(all < std::time::Duration::from_secs(10), "{all:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever is typed: the walk, Tab and `?` have an answer.
    #[test]
    fn any_line_can_be_asked_about(line in "((show|sh|int|interface|config|apply|-c|--json|--socket=|--|trace|add|x|[a-z]{0,3}|'|\"|#|-[a-z]{0,2}|\\PC{0,3}) ?){0,8}") {
        thread_local!(static TREE: Command = shell_tree());
        TREE.with(|tree| {
            let _ = help(tree, &line, &nobody(), &Screen { width: Some(40), colour: true });
            let split = split::split(&line);
            if let Some((words, word, start)) = split.unfinished(&line) {
                let mut words = words.to_vec();
                assert!(line.is_char_boundary(start));
                if let Ok(position) = Position::after(tree, &mut words, &NothingKnown) {
                    let _ = suggest(&position, word, &nobody());
                }
            }
        });
    }
}
