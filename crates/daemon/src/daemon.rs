//! A daemon that runs.

use std::io;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use crossbeam_channel::Sender;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thiserror::Error;

use crate::bind::{BindError, BoundSocket};
use crate::control_socket::{Bell, ControlSocket};
use crate::news::{Shared, TickerEvent};
use crate::settings::Settings;
use crate::shown::snapshot;
use crate::ticker::Ticker;
use crate::view::MachineView;
use fairwave_host::machine::MachineSnapshot;

/// A daemon that runs: processes take part at its socket, and their sessions share the machine's capacities. It ends
/// when it is dropped.
pub struct Daemon {
    shared: Arc<Shared>,
    bell: Arc<Bell>,
    ticker: Sender<TickerEvent>,
    made: Option<PathBuf>,
    threads: Vec<JoinHandle<()>>,
}

/// Why a daemon cannot be.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// It has no socket.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The system has no thread, descriptor or random number for it.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

impl Daemon {
    /// Starts one.
    pub fn start(settings: Settings) -> Result<Self, DaemonError> {
        Self::start_with(BoundSocket::bind(&settings.socket)?, settings)
    }

    /// Starts at a socket that another program bound, as systemd does
    /// ([`handed_sockets`](crate::notify::handed_sockets)).
    pub fn start_at(listener: UnixListener, settings: Settings) -> Result<Self, DaemonError> {
        Self::start_with(BoundSocket::handed(listener, &settings.socket)?, settings)
    }

    fn start_with(socket: BoundSocket, settings: Settings) -> Result<Self, DaemonError> {
        // A descriptor a process, and a few.
        let limit = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
        let number = getrandom::u64().map_err(io::Error::other)?;
        let limits = settings.limits;
        let bell = Arc::new(Bell::new()?);
        let shared = Arc::new(Shared {
            tick_reports: ArcSwap::default(),
            view: ArcSwap::from_pointee(MachineView::default()),
            is_wanted: AtomicBool::new(false),
        });
        let (ticker, news) = crossbeam_channel::unbounded();
        let seen = Arc::clone(&bell);
        let ticks = Ticker::new(settings, number, news, Arc::clone(&shared), Box::new(move || seen.seen()))?;
        shared.tick_reports.store(Arc::new(ticks.tick_reports()));
        let made = socket.made.clone();
        let control = ControlSocket::new(socket, Arc::clone(&bell), limits, ticker.clone(), Arc::clone(&shared));
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let threads = vec![
            thread("fairwave-tick").spawn(move || ticks.run())?,
            thread("fairwave-ctl").spawn(move || control.run())?,
        ];
        Ok(Self { shared, bell, ticker, made, threads })
    }

    /// The directory that it made for its socket, or `None` if it existed.
    pub fn made_directory(&self) -> Option<&Path> {
        self.made.as_deref()
    }

    /// The state of the machine at the next tick, with the sessions of all users.
    pub fn snapshot(&self) -> MachineSnapshot {
        let before = self.shared.view.load().tick;
        self.shared.is_wanted.store(true, Ordering::SeqCst);
        // Ticks are at most 200 ms apart.
        let until = Instant::now() + Duration::from_millis(500);
        while self.shared.view.load().tick == before && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        snapshot(&self.shared.view.load(), None)
    }

    /// The settings are these from now on, as far as they may change while it runs.
    pub fn reload(&self, settings: Settings) {
        let _ = self.ticker.send(TickerEvent::Reload(Box::new(settings)));
    }

    /// Whether it has ended by itself, which it never should.
    pub fn is_over(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.bell.stop();
        let _ = self.ticker.send(TickerEvent::Stop);
        for thread in self.threads.drain(..) {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}
