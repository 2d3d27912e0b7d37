//! How a client reaches a router: over the Unix socket, or over TCP with TLS and a token.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, Error as TlsError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use crate::client::ClientError;
use crate::tls;

/// Where the router is.
#[derive(Clone)]
pub(super) enum Target {
    Unix(PathBuf),
    /// Host and port, the token to show, and how to verify the router.
    Tcp {
        address: String,
        token: Option<String>,
        tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    },
}

/// A stream to a router.
pub(super) trait Wire: AsyncRead + AsyncWrite + Send {}
impl<T: AsyncRead + AsyncWrite + Send> Wire for T {}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Tcp { address, .. } => f.write_str(address),
        }
    }
}

/// Tokens are not shown.
impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl Target {
    /// A router at `address` (`host:port`) with a certificate that `ca` vouches for.
    pub(super) fn tls(address: &str, ca: &Path, token: Option<&str>) -> Result<Self, ClientError> {
        let broken = |reason: String| ClientError::Broken {
            router: address.to_owned(),
            reason,
        };
        let host = address
            .rsplit_once(':')
            .map_or(address, |(host, _)| host)
            .trim_matches(['[', ']']);
        let name =
            ServerName::try_from(host.to_owned()).map_err(|error| broken(error.to_string()))?;
        let roots =
            tls::roots(ca).map_err(|reason| broken(format!("{}: {reason}", ca.display())))?;
        let config = ClientConfig::builder_with_provider(tls::provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| broken(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self::Tcp {
            address: address.to_owned(),
            token: token.map(str::to_owned),
            tls: Some((Arc::new(config), name)),
        })
    }

    pub(super) fn token(&self) -> Option<&str> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp { token, .. } => token.as_deref(),
        }
    }

    pub(super) async fn connect(&self) -> io::Result<Pin<Box<dyn Wire>>> {
        match self {
            Self::Unix(path) => Ok(Box::pin(UnixStream::connect(path).await?)),
            Self::Tcp {
                address, tls: None, ..
            } => {
                // What is sent here can be read on the way: the token, and configurations.
                let all: Vec<_> = tokio::net::lookup_host(address).await?.collect();
                if let Some(far) = all.iter().find(|to| !to.ip().is_loopback()) {
                    return Err(io::Error::other(format!(
                        "{far} is not a loopback address, and without TLS the token could be read \
                         on the way: give --ca FILE"
                    )));
                }
                Ok(Box::pin(TcpStream::connect(all.as_slice()).await?))
            }
            Self::Tcp {
                address,
                tls: Some((config, name)),
                ..
            } => {
                let stream = TcpStream::connect(address).await?;
                Ok(Box::pin(
                    TlsConnector::from(Arc::clone(config))
                        .connect(name.clone(), stream)
                        .await?,
                ))
            }
        }
    }
}

/// Why a router's certificate was refused and what to do, for the reasons that operators meet.
pub(super) fn certificate_problem(error: &io::Error) -> Option<String> {
    let TlsError::InvalidCertificate(problem) = error.get_ref()?.downcast_ref::<TlsError>()? else {
        return None;
    };
    let text = match problem {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the router's certificate is not signed by the one in the file of --ca: give the file of the \
             authority that signed it, or the router's own certificate if it is self-signed"
                .to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!(
                "the router's certificate is for another name or address than that of --router: use one that \
                 stands in its subjectAltName ({problem})"
            )
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("the router's certificate has expired: renew it ({problem})")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("the router's certificate is not valid yet: compare the clocks ({problem})")
        }
        // webpki's own error is not part of rustls's interface.
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "the router's certificate is that of an authority (CA:TRUE), which no server may present: \
             make one with basicConstraints=critical,CA:FALSE, as docs/security.md shows"
                .to_owned()
        }
        _ => return None,
    };
    Some(text)
}
