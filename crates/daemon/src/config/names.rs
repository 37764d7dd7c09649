//! Names of users and groups.

use std::collections::BTreeSet;

use nix::unistd::{Group, User};

/// Resolves names of users and groups.
pub trait Names {
    /// The number of a user.
    fn user(&self, name: &str) -> Option<u32>;
    /// The numbers of all users of a group, those with it as their first group too.
    fn group(&self, name: &str) -> Option<Vec<u32>>;
}

/// As the system knows them.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemNames;

/// Lists the local users with their primary groups; users of a network directory are found if their group lists them.
const PASSWD: &str = "/etc/passwd";

impl Names for SystemNames {
    fn user(&self, name: &str) -> Option<u32> {
        User::from_name(name).ok().flatten().map(|user| user.uid.as_raw())
    }

    fn group(&self, name: &str) -> Option<Vec<u32>> {
        let group = Group::from_name(name).ok().flatten()?;
        let listed = group.mem.iter().filter_map(|member| self.user(member));
        let passwd = std::fs::read_to_string(PASSWD).unwrap_or_default();
        let all: BTreeSet<u32> = listed.chain(first_members(&passwd, group.gid.as_raw())).collect();
        Some(all.into_iter().collect())
    }
}

/// passwd(5): name:password:UID:GID:...
fn first_members(passwd: &str, group: u32) -> impl Iterator<Item = u32> {
    passwd.lines().filter_map(move |line| {
        let mut fields = line.split(':').skip(2);
        let (user, first) = (fields.next()?.parse().ok()?, fields.next()?.parse::<u32>().ok()?);
        (first == group).then_some(user)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_members__are_those_whose_group_it_is() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:100::/:\nbob:x:1001:100::/:\nodd\neve:x:x:100::/:\n";
        assert_eq!(first_members(passwd, 100).collect::<Vec<_>>(), [1000, 1001]);
    }

    #[test]
    fn system_names__know_root() {
        assert_eq!(SystemNames.user("root"), Some(0));
        assert!(SystemNames.group("root").is_some_and(|members| members.contains(&0)));
        assert_eq!(SystemNames.user("nobody of this name"), None);
        assert_eq!(SystemNames.group("no group of this name"), None);
    }
}
