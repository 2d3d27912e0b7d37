//! IPFIX over TLS, several sockets of one address, BMP, live queries as a stream.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;
use weir_collector::bench::{ipfix_message, sflow_datagram};

use crate::{Running, send, start};

fn address(running: &Running, prefix: &str) -> SocketAddr {
    let line = running
        .lines
        .iter()
        .find_map(|line| line.strip_prefix(prefix));
    line.expect("a line").trim().parse().expect("an address")
}

struct Certificates {
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Certificates {
    fn new() -> Certificates {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("key");
        Certificates {
            authority: CertifiedIssuer::self_signed(params, key).expect("authority"),
        }
    }

    /// A certificate and its key, PEM.
    fn issue(&self, name: &str) -> (String, KeyPair) {
        let key = KeyPair::generate().expect("key");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("name");
        let certificate = params.signed_by(&key, &self.authority).expect("signed");
        (certificate.pem(), key)
    }

    fn client(&self, own: Option<(String, KeyPair)>) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).expect("root");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        match own {
            None => builder.with_no_client_auth(),
            Some((pem, key)) => {
                use rustls::pki_types::pem::PemObject as _;
                let certificate =
                    CertificateDer::from_pem_slice(pem.as_bytes()).expect("certificate");
                let key = PrivateKeyDer::try_from(key.serialize_der()).expect("key");
                builder
                    .with_client_auth_cert(vec![certificate], key)
                    .expect("client")
            }
        }
    }
}

#[test]
fn ipfix_comes_over_tls_from_exporters_with_a_certificate() {
    let folder = tempfile::tempdir().expect("folder");
    let certificates = Certificates::new();
    let (pem, key) = certificates.issue("localhost");
    for (name, text) in [
        ("cert.pem", pem),
        ("key.pem", key.serialize_pem()),
        ("ca.pem", certificates.authority.pem()),
    ] {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let at = folder.path().display();
    let running = start(
        folder.path(),
        &format!(
            "tls: {{listen: ['127.0.0.1:0'], certificate: '{at}/cert.pem', key: '{at}/key.pem', client_ca: '{at}/ca.pem'}}\n"
        ),
    );
    let tls = address(&running, "listening on tls ");
    let connect = |own| {
        let config = Arc::new(certificates.client(own));
        let name = ServerName::try_from("localhost").expect("name");
        let connection = ClientConnection::new(config, name).expect("connection");
        StreamOwned::new(connection, TcpStream::connect(tls).expect("connected"))
    };
    let mut stream = connect(Some(certificates.issue("exporter")));
    for number in 0..5 {
        // Cut at odd places.
        for part in ipfix_message(number * 24, 24, number == 0).chunks(333) {
            stream.write_all(part).expect("sent");
        }
    }
    stream.flush().expect("sent");
    let health = running.wait("/store/durable", 5 * 24);
    assert_eq!(health["datagrams"]["rejected"], 0);
    // Without a certificate nothing comes in, and that is counted. TLS 1.3 tells the client only when it reads.
    let mut stranger = connect(None);
    let _ = stranger.write_all(&ipfix_message(0, 24, true));
    let _ = stranger.flush();
    let health = running.wait("/datagrams/rejected", 1);
    assert_eq!(health["rows"], 5 * 24);
    // What is no TLS at all.
    TcpStream::connect(tls)
        .expect("connected")
        .write_all(&ipfix_message(0, 24, true))
        .expect("sent");
    let exporters = running.wait("/datagrams/rejected", 2);
    assert_eq!(exporters["datagrams"]["balance"], true);
    let exporters = running.get("/api/v1/exporters");
    assert_eq!(
        exporters["exporters"][0]["counters"]["reasons"]["tls-failed"], 2,
        "{exporters}"
    );
}

#[test]
fn several_sockets_share_an_address_and_lose_nothing() {
    let folder = tempfile::tempdir().expect("folder");
    let running = start(folder.path(), "threads: 4\n");
    // Each source has a sequence and a template of its own; each stays with one socket.
    for source in 0..16 {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("socket");
        for number in 0..10 {
            socket
                .send_to(&ipfix_message(number * 24, 24, number == 0), running.udp)
                .expect("sent");
        }
        // One source after the other: the receive buffer is small where the kernel grants no more.
        running.wait("/datagrams/decoded", 10 * (source + 1));
    }
    let health = running.wait("/rows", 16 * 10 * 24);
    assert_eq!(
        (
            &health["datagrams"]["waiting"],
            &health["datagrams"]["lost"]
        ),
        (&0.into(), &0.into()),
        "{health}"
    );
    let sockets = health["sockets"].as_array().expect("sockets");
    assert_eq!(sockets.len(), 4);
    let used = sockets
        .iter()
        .filter(|socket| socket["received"] != 0)
        .count();
    assert!(used > 1, "16 sources went to one socket of four: {health}");
}

/// A BMP message: common header, and per-peer header where the type has one (RFC 7854, 4.1 and 4.2).
fn bmp(kind: u8, peer: bool, body: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    if peer {
        content.extend([0, 0]);
        content.extend([0; 8]);
        content.extend([0; 12]);
        content.extend([192, 0, 2, 77]);
        content.extend(65_001_u32.to_be_bytes());
        content.extend([192, 0, 2, 77]);
        content.extend([0; 8]);
    }
    content.extend(body);
    let mut message = vec![3];
    message.extend((content.len() as u32 + 6).to_be_bytes());
    message.push(kind);
    message.extend(content);
    message
}

/// A BGP message (RFC 4271, 4.1).
fn bgp(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![0xff; 16];
    message.extend((body.len() as u16 + 19).to_be_bytes());
    message.push(kind);
    message.extend(body);
    message
}

#[test]
fn as_paths_come_by_bmp() {
    let folder = tempfile::tempdir().expect("folder");
    let running = start(folder.path(), "bmp: {listen: '127.0.0.1:0'}\n");
    let mut session =
        TcpStream::connect(address(&running, "listening for BMP on tcp ")).expect("connected");
    // Initiation with a name, peer up with two OPEN messages that have four-octet AS numbers.
    let mut name = vec![0, 2, 0, 5];
    name.extend(b"test1");
    session.write_all(&bmp(4, false, &name)).expect("sent");
    let open = |number: u16| {
        let mut body = vec![4];
        body.extend(number.to_be_bytes());
        body.extend([0, 90, 192, 0, 2, 1, 8, 2, 6, 65, 4, 0, 0]);
        body.extend(number.to_be_bytes());
        bgp(1, &body)
    };
    let mut up = vec![0; 12];
    up.extend([192, 0, 2, 1]);
    up.extend([0, 179, 0, 179]);
    up.extend(open(65_000));
    up.extend(open(65_001));
    session.write_all(&bmp(3, true, &up)).expect("sent");
    // An update: 192.0.2.0/24 by 65001 1299 64999, community 65001:77.
    let mut attributes = vec![0x40, 1, 1, 0, 0x40, 2, 14, 2, 3];
    for number in [65_001_u32, 1299, 64_999] {
        attributes.extend(number.to_be_bytes());
    }
    attributes.extend([0x40, 3, 4, 192, 0, 2, 77, 0xc0, 8, 4]);
    attributes.extend((65_001_u32 << 16 | 77).to_be_bytes());
    let mut update = vec![0, 0];
    update.extend((attributes.len() as u16).to_be_bytes());
    update.extend(attributes);
    update.extend([24, 192, 0, 2]);
    session
        .write_all(&bmp(0, true, &bgp(2, &update)))
        .expect("sent");
    running.wait("/bmp/prefixes", 1);
    // Samples to 192.0.2.x, without a route of their own.
    send(
        running.udp,
        (1..=10).map(|number| sflow_datagram(number, 7, 10)),
    );
    running.wait("/store/durable", 70);
    let answer = running.get("/api/v1/query?from=-1h&points=0&dimensions=DstAS,ASPath,Communities&filter=ASPath%3DAS1299");
    assert_eq!(
        answer["rows"][0]["key"],
        serde_json::json!(["AS64999", "65001 1299 64999", "65001:77"]),
        "{answer}"
    );
    assert_eq!(answer["stored_rows"], 70);
    let none = running.get("/api/v1/query?from=-1h&points=0&filter=Communities%3D65001:78");
    assert_eq!(none["stored_rows"], 0);
    // The session ends: so do its paths.
    drop(session);
    running.wait("/bmp/prefixes", 0);
}

#[test]
fn a_live_query_is_a_subscription() {
    let folder = tempfile::tempdir().expect("folder");
    let running = start(folder.path(), "");
    let mut stream =
        TcpStream::connect(running.url.trim_start_matches("http://")).expect("connected");
    let host = running.url.trim_start_matches("http://");
    write!(stream, "GET /api/v1/live/stream?dimensions=Format&metric=packets&seconds=10 HTTP/1.1\r\nhost: {host}\r\n\r\n").expect("sent");
    send(
        running.udp,
        (1..=5).map(|number| sflow_datagram(number, 7, 10)),
    );
    let mut seen = 0.0;
    // Events go on until one has all that was sent.
    for line in BufReader::new(stream).lines() {
        let line = line.expect("a line");
        if let Some(data) = line.strip_prefix("data: ") {
            let event: Value = serde_json::from_str(data).expect("JSON");
            seen = event["rows"][0]["total"].as_f64().unwrap_or(0.0);
            if seen == 350.0 {
                break;
            }
        }
    }
    assert_eq!(seen, 350.0);
}
