//! quinn: memory from one end to the other by one stream, on one thread an end.

mod args;
mod work;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use args::{Args, Wrong};
use quinn::congestion::{BbrConfig, CubicConfig};
use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TransportConfig, VarInt};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use work::{Count, Pace, WINDOW_BYTES};

/// The name in the certificate.
const NAME: &str = "peer";
/// A silence of so long is the end.
const IDLE_MS: u32 = 10_000;

fn main() -> Result<(), Wrong> {
    let args = Args::read()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { if args.serves { serve(&args).await } else { send(&args).await } })
}

async fn serve(args: &Args) -> Result<(), Wrong> {
    let own = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    fs::write(&args.certificate, own.cert.der())?;
    let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
    let mut config = ServerConfig::with_single_cert(vec![own.cert.der().clone()], key.into())?;
    config.transport_config(Arc::new(transport(args)?));
    let endpoint = endpoint(args, args.address, Some(config))?;
    let connection = endpoint.accept().await.ok_or("the endpoint is closed")?.await?;
    let mut stream = connection.accept_uni().await?;
    let mut count = Count::default();
    // The other end closes the connection when its time is over.
    while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX, true).await {
        count.add(chunk.bytes.len());
    }
    count.print();
    Ok(())
}

async fn send(args: &Args) -> Result<(), Wrong> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(fs::read(&args.certificate)?))?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(Arc::new(transport(args)?));
    let endpoint = endpoint(args, SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), None)?;
    let connection = endpoint.connect_with(config, args.address, NAME)?.await?;
    let mut stream = connection.open_uni().await?;
    let mut pace = Pace::new(args.time, args.rate_bps);
    let piece = vec![0; pace.piece_bytes()];
    while let Some(wait) = pace.next(piece.len()) {
        tokio::time::sleep(wait).await;
        stream.write_all(&piece).await?;
    }
    connection.close(0_u32.into(), b"the time is over");
    endpoint.wait_idle().await;
    Ok(())
}

fn endpoint(args: &Args, address: SocketAddr, server: Option<ServerConfig>) -> Result<Endpoint, Wrong> {
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(datagram_bytes(args))?;
    let socket = std::net::UdpSocket::bind(address)?;
    let runtime = quinn::default_runtime().ok_or("there is no runtime")?;
    Ok(Endpoint::new(config, server, socket, runtime)?)
}

/// What an IP packet leaves for the content of a UDP datagram.
fn datagram_bytes(args: &Args) -> u16 {
    args.mtu.saturating_sub(if args.address.is_ipv6() { 48 } else { 28 })
}

fn transport(args: &Args) -> Result<TransportConfig, Wrong> {
    let mut transport = TransportConfig::default();
    transport
        // The path is known: nothing is left to be probed.
        .initial_mtu(datagram_bytes(args))
        .mtu_discovery_config(None)
        .stream_receive_window(WINDOW_BYTES.into())
        .receive_window(WINDOW_BYTES.into())
        .send_window(WINDOW_BYTES.into())
        // Where the last packet is lost on the way, the receiving end hears of no end.
        .max_idle_timeout(Some(VarInt::from_u32(IDLE_MS).into()));
    match args.congestion.as_deref() {
        None | Some("cubic") => transport.congestion_controller_factory(Arc::new(CubicConfig::default())),
        Some("bbr") => transport.congestion_controller_factory(Arc::new(BbrConfig::default())),
        Some(other) => return Err(format!("--cc {other}: it is cubic or bbr").into()),
    };
    Ok(transport)
}
