//! Namespaces without being root.

use std::fs::{read_to_string, write};
use std::io;

use nix::sched::{CloneFlags, unshare};
use rustix::process::{getegid, geteuid};

/// Permissions that a system may restrict: the setting, and the restricting value.
const SETTINGS: [(&str, &str); 3] = [
    ("kernel.unprivileged_userns_clone", "0"),
    ("user.max_user_namespaces", "0"),
    ("kernel.apparmor_restrict_unprivileged_userns", "1"),
];

/// Makes this process root of a user namespace, with an empty network; a process that is root already stays unchanged.
/// user_namespaces(7).
///
/// To be called before any thread starts: a process with several threads cannot change its user namespace.
///
/// # Errors
///
/// If the system forbids that, the error names the setting, or suggests root.
pub fn become_root() -> io::Result<()> {
    if geteuid().is_root() {
        return Ok(());
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let enter = || {
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)?;
        // A process that may not leave its groups may map its own.
        write("/proc/self/setgroups", "deny")?;
        write("/proc/self/uid_map", format!("0 {user} 1"))?;
        write("/proc/self/gid_map", format!("0 {group} 1"))
    };
    enter().map_err(|error| io::Error::new(error.kind(), explained(&error)))
}

/// Explains the cause, and the command to type.
fn explained(error: &io::Error) -> String {
    let forbids = SETTINGS.iter().find(|(name, forbidden)| {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        read_to_string(path).is_ok_and(|value| value.trim() == *forbidden)
    });
    let why = match forbids {
        Some((name, value)) => format!("{name} is {value}: \"sudo sysctl {name}={}\" allows it", allowed(name)),
        None => "the system or a container around it forbids it".to_owned(),
    };
    format!("no user namespace for this process ({error}): {why}, and so does running as root (sudo)")
}

fn allowed(name: &str) -> &'static str {
    match name {
        "kernel.apparmor_restrict_unprivileged_userns" => "0",
        "user.max_user_namespaces" => "10000",
        _ => "1",
    }
}
