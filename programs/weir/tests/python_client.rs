//! The Python client (`clients/python`): its tests run against a router of their own.
//!
//! They also hold the client's types and operations against the router's OpenAPI document;
//! `UPDATE_GOLDEN=1` writes them again. Skipped in one line where there is no Python.

mod live;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use live::{Folder, Router, TOKEN, free_port, has_program, python_environment, tree};

/// `python3` that finds the client in the tree and leaves nothing in it.
fn python(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(tree().join("clients/python"))
        .env("PYTHONPATH", "src")
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// What a test may use of a Python that is old.
fn has_python() -> bool {
    if !has_program("python3") {
        return false;
    }
    let is_new = ["-c", "import sys; sys.exit(sys.version_info < (3, 11))"];
    let has = Command::new("python3")
        .args(is_new)
        .status()
        .unwrap()
        .success();
    if !has {
        eprintln!("skipped: python3 is older than 3.11");
    }
    has
}

#[test]
fn the_client_does_to_a_router_what_its_tests_say() {
    if !has_python() {
        return;
    }
    let folder = Folder::new("python");
    let (port, papers) = (free_port(), write_papers(&folder));
    let mut router = Router::start(folder, &tcp(port, &papers));
    let output = python("python3")
        .args([
            "-W", "error", "-m", "unittest", "discover", "-s", "tests", "-v",
        ])
        .env("WEIR_TEST_SOCKET", router.socket())
        .env("WEIR_TEST_CONFIG", router.config())
        .env("WEIR_TEST_PID", router.pid().to_string())
        .env("WEIR_TEST_ADDRESS", format!("localhost:{port}"))
        .env("WEIR_TEST_PAPERS", papers)
        .env("WEIR_TEST_TOKEN", TOKEN.0)
        .output()
        .unwrap();
    let said = said(&output);
    eprintln!("{said}");
    assert!(
        output.status.success() && router.runs(),
        "{said}\n{}",
        router.log()
    );
}

/// The API over TCP: with TLS, for a token that may look and for a client's certificate.
fn tcp(port: u16, papers: &Path) -> String {
    let at = |name: &str| papers.join(name).display().to_string();
    format!(
        "api:
  listen: [{{address: 127.0.0.1, port: {port}, tls: {{certificate: {}, key: {}, client-ca: {}, client-role: admin}}}}]
  tokens: [{{name: monitor, sha256: {}}}]
",
        at("router.pem"),
        at("router.key"),
        at("client.pem"),
        TOKEN.1
    )
}

/// Certificates that vouch for themselves: of the router, and of a client.
fn write_papers(folder: &Folder) -> PathBuf {
    let papers = folder.file("papers");
    std::fs::create_dir_all(&papers).unwrap();
    for (name, host) in [("router", "localhost"), ("client", "operator")] {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(vec![host.to_owned()])
            .unwrap()
            .self_signed(&key)
            .unwrap();
        std::fs::write(papers.join(format!("{name}.pem")), certificate.pem()).unwrap();
        std::fs::write(papers.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
    papers
}

#[test]
#[ignore = "installs setuptools; `make test-long` runs it"]
fn it_is_installed_by_pip_from_the_tree() {
    let folder = Folder::new("pip");
    let Some(programs) = python_environment(&folder, &["setuptools>=77"]) else {
        return;
    };
    // A build writes beside the sources.
    let copy = folder.file("client");
    copy_folder(&tree().join("clients/python"), &copy);
    let site = folder.file("site");
    let pip = [
        "install",
        "-q",
        "--disable-pip-version-check",
        "--no-index",
        "--no-build-isolation",
        "--target",
    ];
    let output = Command::new(programs.join("pip"))
        .args(pip)
        .arg(&site)
        .arg(&copy)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(site.join("weir/py.typed").exists());
    let version = "import importlib.metadata, weir; print(weir.connect.__name__, importlib.metadata.version('weir'))";
    let output = Command::new(programs.join("python"))
        .args(["-c", version])
        .env("PYTHONPATH", &site)
        .current_dir(&folder.0)
        .output()
        .unwrap();
    assert_eq!(
        said(&output).trim(),
        format!("connect {}", env!("CARGO_PKG_VERSION"))
    );
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
#[ignore = "installs mypy; `make test-long` runs it"]
fn every_line_is_typed() {
    let folder = Folder::new("mypy");
    let Some(programs) = python_environment(&folder, &["mypy"]) else {
        return;
    };
    let output = python(programs.join("mypy"))
        .arg("--cache-dir")
        .arg(folder.file("cache"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
}
