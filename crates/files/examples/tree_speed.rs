//! How fast a tree goes from one directory to another through two endpoints of one process, beside a bare loop that
//! creates, writes and renames as many files; if they are to be durable, the loop makes each so before its name. The
//! two take turns:
//!
//! ```text
//! cargo run --release -p fairwave-files --example tree_speed -- 100000 1024 /dev/shm
//! cargo run --release -p fairwave-files --example tree_speed -- 1 1000000000 /var/tmp group 5
//! ```

#![allow(missing_docs)]

use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use fairwave_files::{Durable, GetOptions, Share, ShareOptions, get};
use fairwave_host::{Endpoint, EndpointConfig, Identity, Keyring, PathKind, ShareId, Validity};
use fairwave_units::Rate;
use rustix::time::{ClockId, clock_gettime};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [count, bytes, place, rest @ ..] = arguments.as_slice() else {
        return Err("usage: tree_speed FILES BYTES DIRECTORY [each|group|none [TIMES]]".into());
    };
    let (count, bytes): (usize, usize) = (count.parse()?, bytes.parse()?);
    let durable = rest.first().map_or(Ok(Durable::None), |durable| durable.parse())?;
    let times: usize = rest.get(1).map_or(Ok(1), |times| times.parse())?;
    let place = Path::new(place).join(format!("tree-speed-{}", std::process::id()));
    fs::create_dir(&place)?;
    let outcome = run(&place, count, bytes, durable, times);
    fs::remove_dir_all(&place)?;
    outcome
}

fn run(place: &Path, count: usize, bytes: usize, durable: Durable, times: usize) -> Result<(), Box<dyn Error>> {
    let [given, bare, taken] = ["given", "bare", "taken"].map(|name| place.join(name));
    write(&given, count, bytes, Way::Plain)?;
    // What is read is not to be written meanwhile.
    rustix::fs::syncfs(File::open(&given)?)?;
    println!("files     {count} of {bytes} B, durable: {durable:?}");
    for _ in 0..times {
        let began = Usage::now();
        write(&bare, count, bytes, if durable == Durable::None { Way::Renamed } else { Way::Durable })?;
        began.print("bare loop", count, bytes);
        let began = Usage::now();
        transfer(&given, &taken, count, durable)?;
        began.print("fairwave ", count, bytes);
        for directory in [&bare, &taken] {
            fs::remove_dir_all(directory)?;
        }
        if durable != Durable::None {
            rustix::fs::syncfs(File::open(&given)?)?;
        }
    }
    Ok(())
}

fn transfer(given: &Path, taken: &Path, count: usize, durable: Durable) -> Result<(), Box<dyn Error>> {
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
    let share = Arc::new(Share::new(vec![given.to_owned()], ShareOptions::default())?);
    server.listen(keyring, share.accept());

    let client = Endpoint::bind(&config)?;
    let options = GetOptions { destination: taken.to_owned(), durable, ..GetOptions::default() };
    let transfer = get(&client, &ticket, options)?;
    let outcome = transfer.wait(None).ok_or("no outcome")?;
    if !outcome.is_complete() || outcome.files != count as u64 {
        return Err(format!("it is not complete: {outcome:?}").into());
    }
    Ok(())
}

/// Start time, and the processor time used until then.
struct Usage {
    at: Instant,
    cpu_s: f64,
}

impl Usage {
    fn now() -> Self {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        Self { at: Instant::now(), cpu_s: cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9 }
    }

    fn print(&self, what: &str, count: usize, bytes: usize) {
        let wall_s = self.at.elapsed().as_secs_f64();
        let cpu_s = Self::now().cpu_s - self.cpu_s;
        let (files, total) = (count as f64, count as f64 * bytes as f64);
        println!(
            "{what} {wall_s:.3} s  {:.0} files/s  {:.3} GB/s  {:.2} CPU us/file  {:.3} CPU s/GB",
            files / wall_s,
            total / wall_s / 1e9,
            cpu_s / files * 1e6,
            cpu_s / total * 1e9
        );
    }
}

/// How a file is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Plain,
    /// Under another name first.
    Renamed,
    /// And made durable before it has its own.
    Durable,
}

/// A thousand files to a directory.
fn write(root: &Path, count: usize, bytes: usize, way: Way) -> std::io::Result<()> {
    let content: Vec<u8> = (0..bytes.min(1 << 20)).map(|at| (at % 251) as u8 ^ (at >> 12) as u8).collect();
    let mut directory = PathBuf::new();
    for index in 0..count {
        if index % 1000 == 0 {
            directory = root.join(format!("{:04}", index / 1000));
            fs::create_dir_all(&directory)?;
        }
        let path = directory.join(format!("{:04}", index % 1000));
        let first = if way == Way::Plain { path.clone() } else { directory.join("temporary") };
        let mut file = File::create(&first)?;
        let mut left = bytes;
        while left > 0 {
            let part = left.min(content.len());
            file.write_all(&content[..part])?;
            left -= part;
        }
        if way == Way::Durable {
            file.sync_all()?;
        }
        drop(file);
        if way != Way::Plain {
            fs::rename(first, path)?;
        }
    }
    Ok(())
}
