//! How fast a tree goes from one directory to another through two endpoints of one process, beside a bare loop that creates,
//! writes and renames as many files:
//!
//! ```text
//! cargo run --release -p fairwave-host --example tree_speed -- 100000 1024 /dev/shm
//! ```

#![allow(missing_docs)]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use fairwave_host::{
    Durable, Endpoint, EndpointConfig, GetOptions, Identity, Keyring, PathKind, Share, ShareId, ShareOptions, Validity,
    get,
};
use fairwave_units::Rate;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [count, bytes, place] = arguments.as_slice() else {
        return Err("usage: tree_speed FILES BYTES DIRECTORY".into());
    };
    let (count, bytes): (usize, usize) = (count.parse()?, bytes.parse()?);
    let place = Path::new(place).join(format!("tree-speed-{}", std::process::id()));
    fs::create_dir(&place)?;
    let outcome = run(&place, count, bytes);
    fs::remove_dir_all(&place)?;
    outcome
}

fn run(place: &Path, count: usize, bytes: usize) -> Result<(), Box<dyn Error>> {
    let [given, bare, taken] = ["given", "bare", "taken"].map(|name| place.join(name));
    let content = vec![0x5a; bytes];
    write(&given, count, &content, false)?;

    let began = Instant::now();
    write(&bare, count, &content, true)?;
    let bare_s = began.elapsed().as_secs_f64();

    let capacity = Some(Rate::gbps(100.0));
    let config = EndpointConfig {
        listen: Some(([127, 0, 0, 1], 0).into()),
        send_capacity: capacity,
        receive_capacity: capacity,
        path: PathKind::Dedicated,
        ..EndpointConfig::default()
    };
    let keyring = Arc::new(Keyring::in_memory(Identity::random()?, ShareId::of([&given], false)));
    let server = Endpoint::bind(&config)?;
    let ticket = keyring.issue(Validity::default(), vec![server.local_addr()])?;
    let share = Arc::new(Share::new(vec![given], ShareOptions::default())?);
    server.listen(keyring, share.accept());

    let client = Endpoint::bind(&config)?;
    let began = Instant::now();
    let options = GetOptions { destination: taken, durable: Durable::None, ..GetOptions::default() };
    let transfer = get(&client, &ticket, options)?;
    let outcome = transfer.wait(None).ok_or("no outcome")?;
    let wall_s = began.elapsed().as_secs_f64();
    if !outcome.is_complete() || outcome.files != count as u64 {
        return Err(format!("it is not complete: {outcome:?}").into());
    }
    let total = (count * bytes) as f64;
    println!("files     {count} of {bytes} B");
    println!("fairwave  {wall_s:.3} s  {:.0} files/s  {:.3} GB/s", count as f64 / wall_s, total / wall_s / 1e9);
    println!("bare loop {bare_s:.3} s  {:.0} files/s  {:.3} GB/s", count as f64 / bare_s, total / bare_s / 1e9);
    Ok(())
}

/// A thousand files to a directory.
fn write(root: &Path, count: usize, content: &[u8], is_renamed: bool) -> std::io::Result<()> {
    let mut directory = PathBuf::new();
    for index in 0..count {
        if index % 1000 == 0 {
            directory = root.join(format!("{:04}", index / 1000));
            fs::create_dir_all(&directory)?;
        }
        let path = directory.join(format!("{:04}", index % 1000));
        if is_renamed {
            let temporary = directory.join("temporary");
            fs::write(&temporary, content)?;
            fs::rename(&temporary, &path)?;
        } else {
            fs::write(&path, content)?;
        }
    }
    Ok(())
}
