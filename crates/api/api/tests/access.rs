//! Who may do what: over plain TCP with tokens, over TLS with tokens and certificates, over the
//! Unix socket by the peer's credentials.

mod common;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use common::{Mood, Place, TestRouter, fitting, plain, plain_tcp, with_tcp};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use weir_api::*;

fn serve(settings: &ServerSettings) -> (Arc<TestRouter>, ServerHandle) {
    let router = Arc::new(TestRouter::new(Mood::Good));
    let server = Server::serve(settings, Arc::clone(&router) as Arc<dyn Router>).unwrap();
    (router, server)
}

/// What changes something if it is let through: every row that is not for those who look.
fn changes() -> impl Iterator<Item = &'static Endpoint> {
    ENDPOINTS
        .iter()
        .filter(|endpoint| endpoint.role == Role::Admin)
}

#[test]
fn the_table_lets_nobody_change_by_looking() {
    for endpoint in ENDPOINTS {
        let looks = endpoint.method == "GET"
            || ["/v1/config/check", "/v1/config/plan", "/v1/config/diff"].contains(&endpoint.path);
        assert_eq!(
            endpoint.role == Role::ReadOnly,
            looks,
            "{} {}",
            endpoint.method,
            endpoint.path
        );
    }
    assert!(changes().count() >= 10);
}

#[test]
fn without_a_token_nothing_is_reported_and_nothing_changes() {
    let place = Place::new();
    let (router, server) = serve(&with_tcp(&place));
    let address = server.tcp_addresses()[0];
    for endpoint in ENDPOINTS {
        let (path, body) = fitting(endpoint);
        for token in [None, Some("wrong"), Some(""), Some("lookdo")] {
            let (status, text, head) = plain_tcp(address, token, endpoint.method, &path, body);
            assert_eq!(status, 401, "{} {path} {token:?}: {text}", endpoint.method);
            assert!(
                head.contains("www-authenticate: bearer") && head.contains("connection: close"),
                "{head}"
            );
            assert!(text.contains(r#""code":"unauthorized""#), "{text}");
        }
    }
    // Paths that do not exist are no secret worth a different answer.
    assert_eq!(plain_tcp(address, None, "GET", "/v1/nothing", "").0, 401);
    assert!(router.is_untouched());
}

#[test]
fn who_may_look_cannot_change_anything() {
    let place = Place::new();
    let (router, server) = serve(&with_tcp(&place));
    let address = server.tcp_addresses()[0];
    for endpoint in ENDPOINTS
        .iter()
        .filter(|endpoint| !matches!(endpoint.reply, Reply::Events))
    {
        let (path, body) = fitting(endpoint);
        let (status, text, _) = plain_tcp(address, Some("look"), endpoint.method, &path, body);
        let expected = if endpoint.role == Role::Admin {
            403
        } else {
            200
        };
        assert_eq!(status, expected, "{} {path}: {text}", endpoint.method);
    }
    assert!(router.is_untouched());
    // The same requests change something when an admin sends them: the test above can fail.
    for endpoint in changes() {
        let (path, body) = fitting(endpoint);
        let (status, text, _) = plain_tcp(address, Some("do"), endpoint.method, &path, body);
        assert_eq!(status, 200, "{} {path}: {text}", endpoint.method);
    }
    let changes = router.changes.lock().unwrap();
    assert_eq!(changes.len(), 6);
    assert!(
        changes.iter().all(|(_, caller)| caller.author() == "robot"),
        "{changes:?}"
    );
}

#[test]
fn who_may_look_is_refused_before_the_body_is_read() {
    let place = Place::new();
    let (_router, server) = serve(&with_tcp(&place));
    let (status, ..) = plain_tcp(
        server.tcp_addresses()[0],
        Some("look"),
        "POST",
        "/v1/config/apply",
        "this is no JSON",
    );
    assert_eq!(status, 403);
}

#[test]
fn an_unsafe_listener_is_refused() {
    let place = Place::new();
    let start = |settings: &ServerSettings| {
        Server::serve(settings, Arc::new(TestRouter::new(Mood::Good)))
            .unwrap_err()
            .to_string()
    };
    let mut settings = with_tcp(&place);
    settings.listeners[0].address = "0.0.0.0:0".parse().unwrap();
    assert_eq!(
        start(&settings),
        "the API does not listen on 0.0.0.0:0 without TLS (give it a certificate, or a loopback address)"
    );
    let mut settings = with_tcp(&place);
    settings.tokens.clear();
    assert_eq!(
        start(&settings),
        "nobody could ask the API on 127.0.0.1:0 (add a token, or the CA of clients' certificates)"
    );
    let settings = ServerSettings {
        group: Some("no-such-group".to_owned()),
        ..ServerSettings::new(place.socket())
    };
    assert!(
        start(&settings).starts_with("the API's group \"no-such-group\" does not exist"),
        "{}",
        start(&settings)
    );
    assert!(!place.socket().exists());
}

#[test]
fn a_taken_address_is_reported_and_leaves_no_socket() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut settings = with_tcp(&place);
    settings.listeners[0].address = taken.local_addr().unwrap();
    let error = Server::serve(&settings, Arc::new(TestRouter::new(Mood::Good)))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("the API cannot listen on 127.0.0.1:"),
        "{error}"
    );
    assert!(!place.socket().exists());
}

#[test]
fn the_listener_for_metrics_has_nothing_else() {
    let place = Place::new();
    let settings = ServerSettings {
        metrics: Some("127.0.0.1:0".parse().unwrap()),
        ..ServerSettings::new(place.socket())
    };
    let (router, server) = serve(&settings);
    let address = server.tcp_addresses()[0];
    let (status, text, head) = plain_tcp(address, None, "GET", "/metrics", "");
    assert_eq!(status, 200, "{text}");
    assert!(
        head.contains("content-type: application/openmetrics-text; version=1.0.0"),
        "{head}"
    );
    assert!(text.ends_with("# EOF\n"), "{text}");
    for endpoint in ENDPOINTS
        .iter()
        .filter(|endpoint| endpoint.path != "/metrics")
    {
        let (path, body) = fitting(endpoint);
        assert_eq!(
            plain_tcp(address, None, endpoint.method, &path, body).0,
            404,
            "{path}"
        );
    }
    assert_eq!(plain_tcp(address, None, "POST", "/metrics", "{}").0, 405);
    assert!(router.is_untouched());
}

/// Certificates of a test: an authority, a router and a client, and a stranger's authority.
struct Papers {
    ca: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
    other_ca: PathBuf,
    client: PathBuf,
    client_key: PathBuf,
    stranger: PathBuf,
    stranger_key: PathBuf,
}

impl Papers {
    fn new(place: &Place) -> Self {
        let authority = |name: &str| {
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.distinguished_name.push(DnType::CommonName, name);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
        };
        let (ca, other) = (authority("authority"), authority("other authority"));
        let file = |name: &str, text: String| {
            let path = place.0.join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let issue = |issuer: &CertifiedIssuer<'_, KeyPair>, name: &str| {
            let key = KeyPair::generate().unwrap();
            let mut params =
                CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()])
                    .unwrap();
            params.distinguished_name.push(DnType::CommonName, name);
            let certificate = params.signed_by(&key, issuer).unwrap();
            (
                file(&format!("{name}.pem"), certificate.pem()),
                file(&format!("{name}.key"), key.serialize_pem()),
            )
        };
        let (certificate, key) = issue(&ca, "router");
        let (client, client_key) = issue(&ca, "client");
        let (stranger, stranger_key) = issue(&other, "stranger");
        let (ca, other_ca) = (file("ca.pem", ca.pem()), file("other-ca.pem", other.pem()));
        Self {
            ca,
            certificate,
            key,
            other_ca,
            client,
            client_key,
            stranger,
            stranger_key,
        }
    }

    fn tls(&self, client_ca: bool) -> Tls {
        let client_ca = client_ca.then(|| self.ca.clone());
        Tls {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            client_ca,
            client_role: Role::Admin,
        }
    }
}

fn with_tls(place: &Place, tls: Tls, tokens: bool) -> ServerSettings {
    let mut settings = with_tcp(place);
    settings.listeners[0].tls = Some(tls);
    if !tokens {
        settings.tokens.clear();
    }
    settings
}

#[test]
fn over_tls_a_token_decides() {
    let place = Place::new();
    let papers = Papers::new(&place);
    let (router, server) = serve(&with_tls(&place, papers.tls(false), true));
    let address = format!("localhost:{}", server.tcp_addresses()[0].port());
    let client = |token| Client::tls(&address, &papers.ca, token).unwrap();
    assert_eq!(
        client(Some("look")).version().unwrap(),
        router.version().unwrap()
    );
    let code = |client: Client| {
        client
            .sflow_patch(&SflowPatch {
                sampling_rate: 10.into(),
                ..SflowPatch::default()
            })
            .map_err(|error| error.refusal().map(|refusal| refusal.code))
    };
    assert_eq!(
        code(client(None)).unwrap_err(),
        Some(ErrorCode::Unauthorized)
    );
    assert_eq!(
        code(client(Some("look"))).unwrap_err(),
        Some(ErrorCode::Forbidden)
    );
    assert!(router.is_untouched());
    assert_eq!(code(client(Some("do"))).unwrap().revision, 19);
    // A router that another authority vouches for is not talked to.
    let error = Client::tls(&address, &papers.other_ca, Some("do"))
        .unwrap()
        .version()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("is not signed by the one in the file of --ca"),
        "{error}"
    );
    // Nor is anything sent without TLS.
    let error = Client::tcp(&address, Some("do")).version().unwrap_err();
    assert!(matches!(error, ClientError::Broken { .. }), "{error}");
}

/// Asks with curl; `None` when the handshake fails. curl is another program's idea of TLS.
fn curl(papers: &Papers, port: u16, arguments: &[&str]) -> Option<u16> {
    let mut command = Command::new("curl");
    command
        .args([
            "-s",
            "-m",
            "20",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            "--cacert",
        ])
        .arg(&papers.ca)
        .args(arguments);
    let output = command
        .arg(format!("https://localhost:{port}/v1/clear/errors"))
        .output()
        .unwrap();
    if output.status.success() {
        String::from_utf8_lossy(&output.stdout).parse().ok()
    } else {
        None
    }
}

fn has(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
}

fn with_certificate<'p>(certificate: &'p Path, key: &'p Path) -> [&'p str; 4] {
    [
        "--cert",
        certificate.to_str().unwrap(),
        "--key",
        key.to_str().unwrap(),
    ]
}

#[test]
fn a_clients_certificate_is_a_way_in() {
    if !has("curl") {
        return eprintln!("skipped: needs curl");
    }
    let place = Place::new();
    let papers = Papers::new(&place);
    let own = with_certificate(&papers.client, &papers.client_key);
    let strange = with_certificate(&papers.stranger, &papers.stranger_key);
    let post = |more: &[&'static str]| [&["-X", "POST"][..], more].concat();
    {
        let (router, server) = serve(&with_tls(&place, papers.tls(true), false));
        let port = server.tcp_addresses()[0].port();
        assert_eq!(
            curl(&papers, port, &post(&[])),
            None,
            "no certificate, no tokens: no handshake"
        );
        assert_eq!(
            curl(&papers, port, &[&strange[..], &["-X", "POST"]].concat()),
            None,
            "a stranger's certificate"
        );
        assert!(router.is_untouched());
        assert_eq!(
            curl(&papers, port, &[&own[..], &["-X", "POST"]].concat()),
            Some(200)
        );
        assert!(!router.is_untouched());
    }
    {
        let (router, server) = serve(&with_tls(&place, papers.tls(true), true));
        let port = server.tcp_addresses()[0].port();
        assert_eq!(curl(&papers, port, &post(&[])), Some(401));
        assert_eq!(
            curl(&papers, port, &post(&["-H", "Authorization: Bearer look"])),
            Some(403)
        );
        assert_eq!(
            curl(&papers, port, &[&strange[..], &["-X", "POST"]].concat()),
            None,
            "a stranger's certificate"
        );
        assert!(router.is_untouched());
        assert_eq!(
            curl(&papers, port, &post(&["-H", "Authorization: Bearer do"])),
            Some(200)
        );
        assert_eq!(
            curl(&papers, port, &[&own[..], &["-X", "POST"]].concat()),
            Some(200)
        );
    }
    {
        let tls = Tls {
            client_role: Role::ReadOnly,
            ..papers.tls(true)
        };
        let (router, server) = serve(&with_tls(&place, tls, true));
        let port = server.tcp_addresses()[0].port();
        assert_eq!(
            curl(&papers, port, &[&own[..], &["-X", "POST"]].concat()),
            Some(403)
        );
        assert!(router.is_untouched());
    }
}

#[test]
fn papers_that_cannot_be_used_are_reported_with_their_file() {
    let place = Place::new();
    let papers = Papers::new(&place);
    let missing = place.0.join("missing.pem");
    let start = |tls: Tls| {
        let settings = with_tls(&place, tls, true);
        Server::serve(&settings, Arc::new(TestRouter::new(Mood::Good)))
            .unwrap_err()
            .to_string()
    };
    for (tls, file) in [
        (
            Tls {
                certificate: missing.clone(),
                ..papers.tls(false)
            },
            "missing.pem",
        ),
        (
            Tls {
                key: missing.clone(),
                ..papers.tls(false)
            },
            "missing.pem",
        ),
        (
            Tls {
                client_ca: Some(missing.clone()),
                ..papers.tls(false)
            },
            "missing.pem",
        ),
        (
            Tls {
                certificate: papers.key.clone(),
                ..papers.tls(false)
            },
            "router.key",
        ),
        (
            Tls {
                key: papers.certificate.clone(),
                ..papers.tls(false)
            },
            "router.pem",
        ),
        (
            Tls {
                key: papers.client_key.clone(),
                ..papers.tls(false)
            },
            "router.pem",
        ),
    ] {
        let error = start(tls);
        assert!(
            error.starts_with("cannot use ") && error.contains(file),
            "{error}"
        );
    }
}

/// Asks as another user, by a process of its own; needs root, setpriv and curl.
fn as_user(uid: u32, gid: u32, socket: &Path, method: &str, path: &str) -> Option<(u16, String)> {
    let mut command = Command::new("setpriv");
    command.args([
        format!("--reuid={uid}"),
        format!("--regid={gid}"),
        "--clear-groups".to_owned(),
    ]);
    command
        .args([
            "curl",
            "-s",
            "-m",
            "20",
            "-w",
            "\n%{http_code}",
            "-X",
            method,
            "--unix-socket",
        ])
        .arg(socket);
    let output = command.arg(format!("http://weir{path}")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (body, code) = text.rsplit_once('\n')?;
    output
        .status
        .success()
        .then(|| Some((code.parse().ok()?, body.to_owned())))?
}

/// Two groups of the system that nobody here is in, with their numbers.
fn two_groups() -> Option<[(String, u32); 2]> {
    let lines = BufReader::new(std::fs::File::open("/etc/group").ok()?).lines();
    let mut groups = lines.map_while(Result::ok).filter_map(|line| {
        let fields: Vec<_> = line.split(':').collect();
        let gid = fields.get(2)?.parse().ok()?;
        (gid != 0 && fields.get(3)?.is_empty()).then(|| (fields[0].to_owned(), gid))
    });
    Some([groups.next()?, groups.next()?])
}

#[test]
fn over_the_unix_socket_the_peers_credentials_decide() {
    if !rustix::process::geteuid().is_root() || !has("setpriv") || !has("curl") {
        return eprintln!("skipped: needs root, setpriv and curl");
    }
    let Some([(admins, admin_gid), (readers, reader_gid)]) = two_groups() else {
        return eprintln!("skipped: needs two groups without members");
    };
    let place = Place::new();
    let socket = place.socket();
    let settings = ServerSettings {
        group: Some(admins.clone()),
        read_only_group: Some(readers.clone()),
        ..ServerSettings::new(&socket)
    };
    let (router, server) = serve(&settings);
    let ask = |gid, method: &str, path: &str| as_user(7777, gid, &socket, method, path).unwrap();
    let (status, text) = ask(7777, "GET", "/v1/version");
    assert_eq!(status, 403, "a stranger");
    assert!(
        text.contains(&format!("join the group {admins} or {readers}")),
        "{text}"
    );
    assert_eq!(ask(reader_gid, "GET", "/v1/version").0, 200);
    for endpoint in changes() {
        assert_eq!(
            ask(reader_gid, endpoint.method, &fitting(endpoint).0).0,
            403,
            "{}",
            endpoint.path
        );
        assert_eq!(
            ask(7777, endpoint.method, &fitting(endpoint).0).0,
            403,
            "{}",
            endpoint.path
        );
    }
    assert!(router.is_untouched());
    assert_eq!(ask(admin_gid, "POST", "/v1/config/confirm").0, 200);
    let changes = router.changes.lock().unwrap().clone();
    assert!(
        matches!(changes[0].1.origin, Origin::Unix { uid: 7777, gid, pid: Some(_), .. } if gid == admin_gid),
        "{changes:?}"
    );
    assert_eq!(changes[0].1.author(), "uid 7777");
    drop(server);
    // Without readers, the kernel keeps everybody else out already.
    let (_router, _server) = serve(&ServerSettings {
        group: Some(admins),
        ..ServerSettings::new(&socket)
    });
    assert_eq!(as_user(7777, 7777, &socket, "GET", "/v1/version"), None);
    assert_eq!(
        as_user(7777, admin_gid, &socket, "POST", "/v1/clear/errors")
            .unwrap()
            .0,
        200
    );
}

#[test]
fn strangers_do_not_take_all_places_of_the_unix_socket() {
    if !rustix::process::geteuid().is_root() || !has("setpriv") || !has("python3") {
        return eprintln!("skipped: needs root, setpriv and python3");
    }
    let Some([_, (readers, _)]) = two_groups() else {
        return eprintln!("skipped: needs two groups without members");
    };
    let place = Place::new();
    let socket = place.socket();
    let limits = Limits {
        head_time: std::time::Duration::from_secs(60),
        ..Limits::default()
    };
    let (_router, _server) = serve(&ServerSettings {
        limits,
        read_only_group: Some(readers),
        ..ServerSettings::new(&socket)
    });
    let program = "import socket, sys\nall = []\nfor _ in range(150):\n s = socket.socket(socket.AF_UNIX)\n s.connect(sys.argv[1])\n all.append(s)\nprint('held', flush=True)\nsys.stdin.read()";
    let mut crowd = Command::new("setpriv")
        .args([
            "--reuid=7777",
            "--regid=7777",
            "--clear-groups",
            "/usr/bin/env",
            "python3",
            "-c",
            program,
        ])
        .arg(&socket)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(crowd.stdout.take().unwrap())
        .read_line(&mut said)
        .unwrap();
    let began = std::time::Instant::now();
    let asked = Client::new(&socket).version();
    drop(crowd.stdin.take());
    crowd.wait().unwrap();
    if said != "held\n" {
        return eprintln!("skipped: another user cannot run python3");
    }
    asked.unwrap();
    assert!(
        began.elapsed() < std::time::Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn the_router_is_reported_who_asks() {
    let place = Place::new();
    let (router, _server) = serve(&ServerSettings::new(place.socket()));
    let (status, ..) = plain(&place.socket(), "POST", "/v1/config/confirm", "");
    assert_eq!(status, 200);
    let changes = router.changes.lock().unwrap();
    let caller = &changes[0].1;
    let own = rustix::process::geteuid().as_raw();
    assert!(
        matches!(caller.origin, Origin::Unix { uid, pid: Some(pid), .. } if uid == own && pid == std::process::id()),
        "{caller:?}"
    );
    assert_eq!(caller.role, Role::Admin);
}
