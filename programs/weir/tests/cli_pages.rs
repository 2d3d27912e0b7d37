//! What is written from the table of commands: completion scripts, man pages; and files of commands.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// A directory that goes away with the test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("weir-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run(program: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .env_remove("WEIR_SOCKET")
        .env("LC_ALL", "C.UTF-8");
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// Whether a program is there; says in one line when not.
fn has(program: &str) -> bool {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|folder| folder.join(program).is_file());
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

#[test]
fn completion_scripts_are_correct_scripts() {
    let place = Place::new("completions");
    for shell in ["bash", "zsh", "fish"] {
        let (code, script, error) = run(WEIR, &["completions", shell]);
        assert_eq!((code, error.as_str()), (Some(0), ""));
        let file = place.file(shell, &script);
        if has(shell) {
            let (code, said, error) = run(shell, &["-n", &file]);
            assert_eq!(
                (code, said.as_str(), error.as_str()),
                (Some(0), "", ""),
                "{shell}"
            );
        }
    }
}

/// What bash would offer for a line.
fn offered_by_bash(place: &Place, line: &str) -> Vec<String> {
    let script = format!(
        "cd {} && source <({WEIR} completions bash)\n\
         COMP_LINE=$1 COMP_POINT=${{#1}}\n\
         read -ra COMP_WORDS <<< \"$1\"; COMP_WORDS[0]={WEIR}; [[ $1 == *' ' ]] && COMP_WORDS+=('')\n\
         COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n\
         _weir && printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        place.0.display()
    );
    let (code, said, error) = run("bash", &["-c", &script, "bash", line]);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{line}");
    said.lines()
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn bash_offers_words_values_and_files() {
    let place = Place::new("bash");
    place.file("here.yaml", "");
    assert_eq!(offered_by_bash(&place, "weir show ha"), ["hardware"]);
    assert_eq!(
        offered_by_bash(&place, "weir sh int "),
        ["addr", "rx-placement"]
    );
    assert_eq!(
        offered_by_bash(&place, "weir --json completions "),
        ["bash", "zsh", "fish"]
    );
    assert_eq!(
        offered_by_bash(&place, "weir config check -c he"),
        ["here.yaml"]
    );
    assert_eq!(offered_by_bash(&place, "weir xyzzy "), [""; 0]);
}

#[test]
fn the_other_shells_get_words_with_their_meaning() {
    let (code, text, error) = run(WEIR, &["complete", "fish", "--", "show", "tot"]);
    assert_eq!(
        (code, text.as_str(), error.as_str()),
        (
            Some(0),
            "totals\tThe balance of packets since the router started\n",
            ""
        )
    );
    assert_eq!(
        run(WEIR, &["complete", "zsh", "--", "man", ""]).1,
        "\tfolders\n"
    );
    assert_eq!(run(WEIR, &["complete", "zsh", "--"]).1, "");
    assert_eq!(
        run(WEIR, &["complete", "bash", "--line=weir sh ru"]).1,
        "runtime\tCalls, packets and clocks of each node on each worker\n"
    );
}

#[test]
fn man_pages_are_written_and_have_no_warnings() {
    let place = Place::new("man");
    let folder = place.0.display().to_string();
    let (code, said, _) = run(WEIR, &["man", &folder]);
    assert!(
        code == Some(0) && said.ends_with(&format!("man pages in {folder}\n")),
        "{said}"
    );
    let pages: Vec<_> = fs::read_dir(&place.0)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    for name in [
        "weir.1",
        "weir-show.1",
        "weir-show-interface-addr.1",
        "weir-config-check.1",
    ] {
        assert!(pages.iter().any(|page| page.ends_with(name)), "{name}");
    }
    assert!(
        !pages.iter().any(|page| page.ends_with("weir-complete.1")),
        "hidden commands have no page"
    );
    if has("groff") {
        for page in &pages {
            let page = page.display().to_string();
            let (code, text, error) = run("groff", &["-man", "-ww", "-Tutf8", "-Kutf8", &page]);
            assert_eq!((code, error.as_str()), (Some(0), ""), "{page}");
            // Bold is a letter struck twice.
            let plain: String = text
                .split('\u{8}')
                .map(|part| part.strip_prefix(char::is_uppercase).unwrap_or(part))
                .collect();
            assert!(
                plain.contains("NAME") && plain.contains("SYNOPSIS"),
                "{page}: {plain}"
            );
        }
    }
    let (code, _, error) = run(WEIR, &["man", "/nonexistent"]);
    assert!(
        code == Some(1) && error.starts_with("weir: cannot write /nonexistent/weir.1: "),
        "{error}"
    );
}

#[test]
fn a_file_of_commands_is_run() {
    let place = Place::new("exec");
    let good = place.file("good.yaml", "interfaces:\n  wan:\n    mtu: 1500\n");
    let text = format!(
        "# the morning's checks\n\ncomment {{ not\nconfig check -c /nonexistent\n}} config check -c {good} # again\nco ch -c '{good}'\nquit\nxyzzy\n"
    );
    let (code, said, error) = run(WEIR, &["exec", &place.file("a.weir", &text)]);
    let once = format!(
        "{good} is right: 1 interface, 0 routes\n1 interface has no `device`, so no packets come in or leave there: wan\n"
    );
    assert_eq!((code, said, error.as_str()), (Some(0), once.repeat(2), ""));
    let (code, said, _) = run(
        WEIR,
        &[
            "--json",
            "exec",
            &place.file("b.weir", &format!("config check -c {good}\n")),
        ],
    );
    assert!(
        code == Some(0)
            && serde_json::from_str::<serde_json::Value>(&said).unwrap()["valid"] == true,
        "{said}"
    );
}

#[test]
fn the_first_failure_ends_a_file_and_is_reported_with_its_line() {
    let place = Place::new("exec-fails");
    let nobody = format!("show version --socket {}/none.sock", place.0.display());
    let file = place.file(
        "a.weir",
        &format!("# one\n{nobody}\nxyzzy\nsh r\nrun -c x\n"),
    );
    let (code, said, error) = run(WEIR, &["exec", &file]);
    assert_eq!((code, said.as_str()), (Some(3), ""));
    assert!(
        error.starts_with(&format!("weir: {file}:2: no weir answers on"))
            && error.lines().count() == 1,
        "{error}"
    );
    let (code, _, error) = run(WEIR, &["exec", "--keep-going", &file]);
    assert_eq!((code, error.lines().count()), (Some(3), 4), "{error}");
    for (line, sentence) in [
        (3, "unrecognized subcommand 'xyzzy'"),
        (4, "\"r\" is not clear"),
        (5, "is no command for a file"),
    ] {
        assert!(
            error
                .lines()
                .any(|said| said.starts_with(&format!("weir: {file}:{line}: "))
                    && said.contains(sentence)),
            "{line}: {error}"
        );
    }
}

#[test]
fn broken_files_of_commands_are_refused() {
    let place = Place::new("exec-broken");
    for (name, bytes, sentence) in [
        ("open", b"help 'x\n".to_vec(), "nobody closed"),
        (
            "comment",
            b"comment { never\nhelp\n".to_vec(),
            "a comment { that nobody closed",
        ),
        ("binary", vec![0xff; 100], "not text in UTF-8"),
        ("long", vec![b'x'; 100_000], "64 KiB"),
        ("nul", b"show \0\n".to_vec(), "unrecognized subcommand"),
    ] {
        let file = place.0.join(name);
        fs::write(&file, bytes).unwrap();
        let (code, _, error) = run(WEIR, &["exec", &file.display().to_string()]);
        assert!(
            code == Some(2) && error.contains(sentence),
            "{name}: {code:?} {error}"
        );
    }
    let own = place.0.join("own.weir");
    fs::write(&own, format!("exec {}\n", own.display())).unwrap();
    let (code, _, error) = run(WEIR, &["exec", &own.display().to_string()]);
    assert!(
        code == Some(1) && error.contains("does it run itself?"),
        "{error}"
    );
    assert_eq!(run(WEIR, &["exec", "/nonexistent"]).0, Some(1));
    assert_eq!(run(WEIR, &["exec", "/dev/zero"]).0, Some(2));
}

#[test]
fn standard_input_can_be_run() {
    let mut child = Command::new(WEIR)
        .args(["exec", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"help\ncompletions bash\n")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "completions are for shells");
}

/// Without a terminal and without commands on standard input: the help.
#[test]
fn without_a_terminal_there_is_help() {
    let (code, said, error) = run(WEIR, &[]);
    assert!(
        code == Some(0)
            && error.is_empty()
            && said.contains("Exit codes")
            && said.contains("Usage: weir"),
        "{code:?} {said} {error}"
    );
    let (code, _, error) = run(WEIR, &["sh", "r"]);
    assert_eq!(
        (code, error.as_str()),
        (
            Some(2),
            "weir: \"r\" is not clear: rx-placement, runtime, route\n"
        )
    );
}
