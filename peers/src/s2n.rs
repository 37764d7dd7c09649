//! s2n-quic: memory from one end to the other by one stream, on one thread an end.

mod args;
mod work;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};

use args::{Args, Wrong};
use bytes::Bytes;
use s2n_quic::client::Connect;
use s2n_quic::provider::io::tokio::Provider;
use s2n_quic::provider::limits::Limits;
use s2n_quic::{Client, Server};
use work::{Count, Pace, WINDOW_BYTES};

/// The name in the certificate.
const NAME: &str = "peer";

fn main() -> Result<(), Wrong> {
    let args = Args::read()?;
    if let Some(other) = &args.congestion {
        return Err(format!("--cc {other}: s2n-quic runs its usual one here").into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { if args.serves { serve(&args).await } else { send(&args).await } })
}

async fn serve(args: &Args) -> Result<(), Wrong> {
    let own = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let certificate = own.cert.pem();
    fs::write(&args.certificate, &certificate)?;
    let mut server = Server::builder()
        .with_tls((certificate.as_str(), own.signing_key.serialize_pem().as_str()))?
        .with_io(io(args, args.address)?)?
        .with_limits(limits()?)?
        .start()?;
    let mut connection = server.accept().await.ok_or("the endpoint is closed")?;
    let mut stream = connection.accept_receive_stream().await?.ok_or("there is no stream")?;
    let mut count = Count::default();
    // The other end closes the connection when its time is over.
    while let Ok(Some(bytes)) = stream.receive().await {
        count.add(bytes.len());
    }
    count.print();
    Ok(())
}

async fn send(args: &Args) -> Result<(), Wrong> {
    let certificate = fs::read_to_string(&args.certificate)?;
    let mut client = Client::builder()
        .with_tls(certificate.as_str())?
        .with_io(io(args, SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?)?
        .with_limits(limits()?)?
        .start()?;
    let mut connection = client.connect(Connect::new(args.address).with_server_name(NAME)).await?;
    let mut stream = connection.open_send_stream().await?;
    let mut pace = Pace::new(args.time, args.rate_bps);
    let piece = Bytes::from(vec![0; pace.piece_bytes()]);
    while let Some(wait) = pace.next(piece.len()) {
        tokio::time::sleep(wait).await;
        stream.send(piece.clone()).await?;
    }
    connection.close(0_u32.into());
    client.wait_idle().await?;
    Ok(())
}

fn io(args: &Args, address: SocketAddr) -> Result<Provider, Wrong> {
    // The path is known: nothing is left to be probed.
    let io = Provider::builder().with_receive_address(address)?.with_max_mtu(args.mtu)?.with_initial_mtu(args.mtu)?;
    Ok(io.build()?)
}

fn limits() -> Result<Limits, Wrong> {
    let window = u64::from(WINDOW_BYTES);
    Ok(Limits::new()
        .with_data_window(window)?
        .with_unidirectional_data_window(window)?
        .with_max_send_buffer_size(WINDOW_BYTES)?)
}
