//! TLS of TCP listeners: certificates from files, clients' certificates verified when asked for.
//!
//! rustls with the `ring` provider, TLS 1.2 and 1.3, HTTP/1.1. Everything that can be wrong with
//! the files is reported when the server starts.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use crate::settings::Tls;
use crate::socket::ServeError;

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Gets a listener's TLS ready. Clients without a certificate are let in when they may show a token.
pub(crate) fn acceptor(tls: &Tls, tokens: bool) -> Result<TlsAcceptor, ServeError> {
    let failed = |error: rustls::Error| ServeError::Tls {
        file: tls.certificate.clone(),
        reason: error.to_string(),
    };
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    let builder = match &tls.client_ca {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let refused = |reason: String| ServeError::Tls {
                file: file.clone(),
                reason,
            };
            let roots = roots(file).map_err(refused)?;
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
            let verifier = if tokens {
                verifier.allow_unauthenticated()
            } else {
                verifier
            };
            builder.with_client_cert_verifier(
                verifier
                    .build()
                    .map_err(|error| refused(error.to_string()))?,
            )
        }
    };
    let refused = |file: &Path, reason: String| ServeError::Tls {
        file: file.to_owned(),
        reason,
    };
    let chain =
        certificates(&tls.certificate).map_err(|reason| refused(&tls.certificate, reason))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key)
        .map_err(|error| refused(&tls.key, error.to_string()))?;
    let mut config = builder.with_single_cert(chain, key).map_err(failed)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The certificates in a file.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(certificates) if certificates.is_empty() => {
            Err("there is no certificate in it".to_owned())
        }
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(error.to_string()),
    }
}

/// The roots in a file.
pub(crate) fn roots(file: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    Ok(roots)
}
