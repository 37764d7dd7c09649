//! Two endpoints in one process: one offers some bytes, the other reads them in order.
//!
//! ```text
//! cargo run --release --package fairwave-host --example memory
//! ```

use std::error::Error;
use std::io::Read;
use std::sync::Arc;

use fairwave_host::{
    Endpoint, EndpointConfig, Identity, Keyring, MemorySource, ShareId, StreamReader, Terms, Validity,
};

fn main() -> Result<(), Box<dyn Error>> {
    // The end that has something.
    let bytes: Arc<[u8]> = (0..50_000_000_u32).map(|at| (at % 251) as u8).collect();
    let source = MemorySource::new([(1, Arc::clone(&bytes))]);
    let server = Endpoint::bind(&EndpointConfig { listen: Some("127.0.0.1:0".parse()?), ..EndpointConfig::default() })?;
    let keyring = Arc::new(Keyring::in_memory(Identity::random()?, ShareId(1)));
    server.listen(
        Arc::clone(&keyring),
        Box::new(move |visitor| {
            println!("{} says {:?}", visitor.from, String::from_utf8_lossy(visitor.greeting));
            Ok((Terms::default(), Box::new(source.clone())))
        }),
    );
    let ticket = keyring.issue(Validity { lasts_s: Some(3600), is_once: false }, vec![server.local_addr()])?;

    // The end that wants it.
    let client = Endpoint::bind(&EndpointConfig::default())?;
    let mut reader = StreamReader::open(&client, &ticket, b"hello", 1, 0..bytes.len() as u64)?;
    let mut read = Vec::new();
    reader.read_to_end(&mut read)?;
    let stats = reader.session().stats();
    println!("{} bytes, {} packets, {:?}", read.len(), stats.received_packets, stats.sink);
    assert!(read == *bytes, "what was read is what was offered");
    Ok(())
}
