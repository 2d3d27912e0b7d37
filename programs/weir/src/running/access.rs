//! Who reaches the API, from the configuration's words to the API's.

use std::net::SocketAddr;
use std::path::Path;

use weir_api::{Role, ServerSettings, TcpListen, Tls, Token};

/// The API's settings for a router on `socket`.
pub(super) fn settings(api: &weir_config::Api, socket: &Path) -> ServerSettings {
    ServerSettings {
        group: api.group.clone(),
        read_only_group: api.read_only_group.clone(),
        listeners: api.listen.iter().map(listener).collect(),
        tokens: api.tokens.iter().map(token).collect(),
        metrics: api
            .metrics
            .map(|metrics| SocketAddr::new(metrics.address, metrics.port)),
        ..ServerSettings::new(socket)
    }
}

fn listener(listen: &weir_config::Listen) -> TcpListen {
    let tls = |tls: &weir_config::Tls| Tls {
        certificate: tls.certificate.clone(),
        key: tls.key.clone(),
        client_ca: tls.client_ca.clone(),
        client_role: role(tls.client_role),
    };
    TcpListen {
        address: SocketAddr::new(listen.address, listen.port),
        tls: listen.tls.as_ref().map(tls),
    }
}

fn token(token: &weir_config::Token) -> Token {
    Token {
        name: token.name.clone(),
        sha256: token.sha256.0,
        role: role(token.role),
    }
}

fn role(role: weir_config::Role) -> Role {
    match role {
        weir_config::Role::ReadOnly => Role::ReadOnly,
        weir_config::Role::Admin => Role::Admin,
    }
}
