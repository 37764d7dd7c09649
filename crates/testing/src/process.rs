//! Child processes of tests.

#![allow(unsafe_code, reason = "`pre_exec` is unsafe: its closure runs between fork and exec")]

use std::io;
use std::ops::{Deref, DerefMut};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output};

use rustix::process::{Signal, set_parent_process_death_signal};

/// A child process that never outlives its test: dropping this kills and reaps it, and the kernel kills it if the test
/// process is killed.
#[derive(Debug)]
pub struct Process {
    /// `None` after [`Process::wait_with_output`].
    child: Option<Child>,
}

impl Process {
    /// Spawns a command. The child is also killed when the calling *thread* ends (`prctl(2)`, `PR_SET_PDEATHSIG`).
    ///
    /// # Panics
    /// If it cannot be spawned.
    #[track_caller]
    pub fn spawn(command: &mut Command) -> Self {
        // SAFETY: the closure makes one system call, which allocates nothing and takes no lock.
        unsafe { command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?)) };
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self { child: Some(child) }
    }

    /// Waits until the process has ended, and returns what it printed to its pipes.
    pub fn wait_with_output(mut self) -> io::Result<Output> {
        let child = self.child.take().expect("taken only here");
        child.wait_with_output()
    }
}

/// Takes over a child that was spawned elsewhere, for instance in another network namespace. It is killed and reaped on
/// drop; [`end_with_parent`] in the child covers a test process that is killed.
impl From<Child> for Process {
    fn from(child: Child) -> Self {
        Self { child: Some(child) }
    }
}

impl Deref for Process {
    type Target = Child;

    fn deref(&self) -> &Child {
        self.child.as_ref().expect("taken only by value")
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut Child {
        self.child.as_mut().expect("taken only by value")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended and been reaped already. A stopped process is killed as well.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Asks the kernel to kill this process when the thread ends that it is a child of now: after the thread that spawned
/// it has ended, the parent's main thread.
pub fn end_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Stdio;

    use super::*;
    use crate::wait_for;

    fn exists(id: u32) -> bool {
        Path::new("/proc").join(id.to_string()).exists()
    }

    #[test]
    fn drop__kills_and_reaps_even_a_stopped_process() {
        let process = Process::spawn(Command::new("sh").args(["-c", "kill -STOP $$; sleep 1000"]));
        let id = process.id();
        let stat = || std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        wait_for("the process is stopped", || stat().contains(") T "));
        drop(process);
        assert!(!exists(id));
    }

    #[test]
    fn spawn__ends_the_child_with_its_thread() {
        let id = std::thread::spawn(|| {
            let process = Process::spawn(Command::new("sleep").arg("1000").stdin(Stdio::null()));
            let id = process.id();
            // As if the test process had been killed: nothing is dropped.
            std::mem::forget(process);
            id
        });
        let id = id.join().expect("it does not panic");
        let pid = rustix::process::Pid::from_raw(id.cast_signed()).expect("it is not 0");
        wait_for("the kernel has killed it", || {
            rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG).is_ok_and(|ended| ended.is_some())
        });
        assert!(!exists(id));
    }
}
