//! Memory available for a run: free memory of the machine, and the limits of the process.

use std::fs;
use std::path::Path;

/// Bytes that this process may still allocate, as far as the system reports it; `None` if it does not.
///
/// The minimum of what Linux counts as available, of the rest in the control groups of this process (a container's
/// limit), and of the limit of its address space (`ulimit -v`).
pub fn available_bytes() -> Option<u64> {
    let text = |path: &str| fs::read_to_string(path).ok();
    let machine = text("/proc/meminfo").and_then(|text| meminfo(&text));
    let address_space = text("/proc/self/limits").and_then(|text| limit(&text));
    let groups = text("/proc/self/cgroup").map(|text| group_places(&text)).unwrap_or_default();
    let groups = groups.iter().filter_map(|place| left_in_group(Path::new(place)));
    groups.chain(machine).chain(address_space).min()
}

/// `MemAvailable` and free swap of /proc/meminfo.
fn meminfo(text: &str) -> Option<u64> {
    let kib = |name: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix("kB")?.trim().parse().ok())
    };
    Some((kib("MemAvailable:")? + kib("SwapFree:").unwrap_or(0)) << 10)
}

/// The limit of the address space in /proc/self/limits.
fn limit(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("Max address space")?.split_whitespace().next()?.parse().ok())
}

/// The directories of the memory groups in /proc/self/cgroup, from the innermost outwards.
fn group_places(text: &str) -> Vec<String> {
    let mut places = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let root = match controllers {
            "" => "/sys/fs/cgroup",
            _ if controllers.split(',').any(|controller| controller == "memory") => "/sys/fs/cgroup/memory",
            _ => continue,
        };
        let mut path = path.trim_end_matches('/');
        loop {
            places.push(format!("{root}{path}"));
            let Some(slash) = path.rfind('/') else { break };
            path = &path[..slash];
        }
    }
    places
}

/// Remaining memory of a control group, version 2 or 1; its cache of files counts as free.
fn left_in_group(place: &Path) -> Option<u64> {
    let number = |name: &str| -> Option<u64> { fs::read_to_string(place.join(name)).ok()?.trim().parse().ok() };
    let most = number("memory.max").or_else(|| number("memory.limit_in_bytes"))?;
    let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
    let stat = fs::read_to_string(place.join("memory.stat")).unwrap_or_default();
    let cache = stat.lines().find_map(|line| line.strip_prefix("inactive_file ")?.parse::<u64>().ok()).unwrap_or(0);
    Some(most.saturating_sub(used.saturating_sub(cache)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo__is_available_memory_and_free_swap() {
        let text = "MemTotal:       24684000 kB\nMemFree: 1000 kB\nMemAvailable:   2048 kB\nSwapFree:  1024 kB\n";
        assert_eq!(meminfo(text), Some(3 << 20));
        assert_eq!(meminfo("MemTotal: 1 kB\n"), None);
    }

    #[test]
    fn limit__of_the_address_space() {
        let line = "Max address space         1073741824           unlimited            bytes\n";
        assert_eq!(limit(line), Some(1 << 30));
        assert_eq!(limit(&line.replace("1073741824", "unlimited ")), None);
    }

    #[test]
    fn group_places__climb_to_the_root() {
        assert_eq!(group_places("0::/a/b\n"), ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"]);
        let first = "5:cpu,cpuacct:/x\n4:memory:/docker\n0::/\n";
        let places = ["/sys/fs/cgroup/memory/docker", "/sys/fs/cgroup/memory", "/sys/fs/cgroup"];
        assert_eq!(group_places(first), places);
    }

    #[test]
    fn left_in_group__counts_the_cache_as_free() {
        let place = std::env::temp_dir().join(format!("fairwave-test-group-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        for (name, text) in
            [("memory.max", "1000\n"), ("memory.current", "700\n"), ("memory.stat", "anon 500\ninactive_file 200\n")]
        {
            fs::write(place.join(name), text).unwrap();
        }
        assert_eq!(left_in_group(&place), Some(500));
        fs::write(place.join("memory.max"), "max\n").unwrap();
        assert_eq!(left_in_group(&place), None);
        fs::remove_dir_all(place).unwrap();
    }
}
