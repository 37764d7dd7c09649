//! What transfers of files count, and the rate that a user allows them.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fairwave_files::{GetOptions, PutOptions, Share, ShareOptions, Transfer, get, put};
use fairwave_host::Endpoint;
use fairwave_units::Rate;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

use crate::net::hosts::{Hosts, dedicated};
use fairwave_wan::Way;

const PATIENCE: fairwave_units::Duration = fairwave_units::Duration::from_secs(60);
const DELAY: Duration = Duration::from_millis(10);

/// Host 1 has a file that host 0 gets, or takes what that puts.
struct Stage {
    hosts: Hosts,
    share: Arc<Share>,
    ends: [Endpoint; 2],
    transfer: Transfer,
    _home: tempfile::TempDir,
}

impl Stage {
    fn new(gives: bool, bytes: usize, capacity_mbps: f64, way: Way, limit: Option<Rate>) -> Self {
        let home = tempfile::tempdir().expect("there is room");
        let (file, destination) = (home.path().join("file"), home.path().join("destination"));
        plant(&file, bytes);
        fs::create_dir(&destination).expect("there is room");
        let hosts = Hosts::new(2, 71, DELAY);
        hosts.relay.set_both(0, way);
        let (paths, writable_into) =
            if gives { (vec![], Some(destination.clone())) } else { (vec![file.clone()], None) };
        let share = Share::new(paths, ShareOptions { writable_into, ..ShareOptions::default() });
        let share = Arc::new(share.expect("it is there"));
        let config = dedicated(capacity_mbps);
        let (server, ticket) = hosts.serve(1, &config, false, share.accept());
        let client = hosts.endpoint(0, &config);
        let transfer = if gives {
            put(&client, &ticket, &[file], &PutOptions { limit, ..PutOptions::default() })
        } else {
            get(&client, &ticket, GetOptions { destination, limit, ..GetOptions::default() })
        };
        let transfer = transfer.expect("the server is there");
        Self { hosts, share, ends: [client, server], transfer, _home: home }
    }

    fn reach(&self, bytes: u64) {
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while self.hosts.relay.delivered(1, 0) + self.hosts.relay.delivered(0, 1) < bytes {
            assert!(std::time::Instant::now() < deadline, "stuck: {:?}", self.transfer.progress());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn finish(&self) {
        let outcome = self.transfer.wait(Some(PATIENCE));
        let outcome = outcome.unwrap_or_else(|| panic!("stuck: {:?}", self.transfer.progress()));
        assert!(outcome.is_complete(), "{outcome:?}");
    }
}

fn plant(path: &Path, bytes: usize) {
    let mut content = vec![0; bytes];
    Pcg64Mcg::new(7).fill_bytes(&mut content);
    fs::write(path, content).expect("there is room");
}

#[test]
fn transfer__counts_the_packets_that_were_lost_at_both_ends() {
    let Some(_turn) = crate::net::world() else { return };
    for gives in [false, true] {
        let way = Way { delay: DELAY, loss: 0.01, ..Way::default() };
        let stage = Stage::new(gives, 8_000_000, 60.0, way, None);
        stage.finish();
        // The server hears of the end a little later.
        let there = stage.share.transfers()[0].transfer.clone();
        assert!(there.wait(Some(PATIENCE)).is_some(), "it goes on");
        let counts = [&stage.transfer, &there].map(Transfer::retransmitted_packets);
        // 8 MB are 5600 packets of 1400 B or more and less than 7200, of which 1 % gets lost: 56 to 72, give or take
        // four standard deviations of 8.5; the sink misses some that the source skipped or sent twice.
        for count in counts {
            assert!(count.is_some_and(|count| (20..=110).contains(&count)), "gives: {gives}, {counts:?}");
        }
        stage.ends.iter().for_each(Endpoint::close);
    }
}

#[test]
fn transfer__does_not_exceed_its_limit_after_a_stall() {
    const LIMIT_MBPS: f64 = 30.0;
    let Some(_turn) = crate::net::world() else { return };
    for gives in [false, true] {
        let way = Way { delay: DELAY, ..Way::default() };
        let stage = Stage::new(gives, 30_000_000, 200.0, way, Some(Rate::mbps(LIMIT_MBPS)));
        stage.reach(3_000_000);
        stage.hosts.relay.set_both(0, Way { is_blackhole: true, ..way });
        std::thread::sleep(Duration::from_secs(2));
        stage.hosts.relay.set_both(0, way);
        let (from, to) = if gives { (0, 1) } else { (1, 0) };
        let rate = |one: &(f64, u64), other: &(f64, u64)| (other.1 - one.1) as f64 * 8.0 / (other.0 - one.0) / 1e6;
        let mut came = Vec::new();
        let begin = std::time::Instant::now();
        // It goes on: to where a second has half of the limit again, which takes longer where the machine is busy with
        // other work.
        let mut goes_on = false;
        while begin.elapsed() < Duration::from_secs(4) || !goes_on {
            assert!(begin.elapsed() < Duration::from_secs(60), "gives: {gives}: {:?}", stage.transfer.progress());
            came.push((begin.elapsed().as_secs_f64(), stage.hosts.relay.delivered(from, to)));
            goes_on |= came.len() > 20 && rate(&came[came.len() - 21], &came[came.len() - 1]) > LIMIT_MBPS * 0.5;
            std::thread::sleep(Duration::from_millis(50));
        }
        // A source makes up for 100 ms for which its process was kept from sending, and the relay for some of its own.
        let most = came.windows(21).map(|span| rate(&span[0], &span[20])).fold(0.0, f64::max);
        println!("gives: {gives}: at most {most:.1} Mb/s in a second");
        assert!(most < LIMIT_MBPS * 1.2, "gives: {gives}: {most:.1} Mb/s");
        stage.transfer.stop();
    }
}
