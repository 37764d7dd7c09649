//! A POSIX ACL as the value of its extended attribute: version 2 (u32 LE), then entries of tag, permissions (u16 LE
//! each) and id (u32 LE).

const VERSION: [u8; 4] = 2_u32.to_le_bytes();
const ENTRY_BYTES: usize = 8;
/// `ACL_USER` and `ACL_GROUP`: entries with the id of one user or group.
const USER: u16 = 2;
const GROUP: u16 = 8;

/// `ACL_USER_OBJ`, `ACL_GROUP_OBJ`, `ACL_MASK` and `ACL_OTHER`.
const OWNER: u16 = 1;
const OWNING_GROUP: u16 = 4;
const MASK: u16 = 16;
const OTHER: u16 = 32;

/// The permissions that a file made under this default ACL has at most, as a mode (acl(5): object creation and default
/// ACLs); `None` if it is not an ACL.
pub(crate) fn permitted(acl: &[u8]) -> Option<u16> {
    let (mut owner, mut group, mut mask, mut other) = (0, 0, None, 0);
    for entry in entries(acl)? {
        let permissions = u16::from_le_bytes(entry.get(2..4)?.try_into().ok()?) & 0o7;
        match u16::from_le_bytes(entry.get(..2)?.try_into().ok()?) {
            OWNER => owner = permissions,
            OWNING_GROUP => group = permissions,
            MASK => mask = Some(permissions),
            OTHER => other = permissions,
            _ => {}
        }
    }
    Some(owner << 6 | mask.unwrap_or(group) << 3 | other)
}

/// An entry that names a user or a group: whether it is a group, and its id.
pub(crate) fn owners(acl: &[u8]) -> impl Iterator<Item = (bool, u32)> {
    entries(acl).into_iter().flatten().filter_map(owner)
}

/// The ACL with other ids; `None` if it is not an ACL.
pub(crate) fn with_owners(acl: &[u8], mut local: impl FnMut(bool, u32) -> u32) -> Option<Vec<u8>> {
    let mut written = VERSION.to_vec();
    for entry in entries(acl)? {
        let (head, id) = entry.split_at_checked(4)?;
        written.extend(head);
        match owner(entry) {
            Some((is_group, id)) => written.extend(local(is_group, id).to_le_bytes()),
            None => written.extend(id),
        }
    }
    Some(written)
}

fn entries(acl: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let entries = acl.strip_prefix(&VERSION)?;
    entries.len().is_multiple_of(ENTRY_BYTES).then(|| entries.chunks_exact(ENTRY_BYTES))
}

fn owner(entry: &[u8]) -> Option<(bool, u32)> {
    let tag = u16::from_le_bytes(entry.get(..2)?.try_into().ok()?);
    let id = u32::from_le_bytes(entry.get(4..)?.try_into().ok()?);
    (tag == USER || tag == GROUP).then_some((tag == GROUP, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_owners__changes_the_ids_of_users_and_groups_only() {
        let entry = |tag: u16, id: u32| [&tag.to_le_bytes()[..], &[7, 0], &id.to_le_bytes()].concat();
        let acl = |ids: [u32; 4]| {
            let entries = [(1, ids[0]), (USER, ids[1]), (GROUP, ids[2]), (16, ids[3])];
            [&VERSION[..], &entries.map(|(tag, id)| entry(tag, id)).concat()].concat()
        };
        let (from, to) = (acl([u32::MAX, 5, 6, u32::MAX]), acl([u32::MAX, 1005, 2006, u32::MAX]));
        assert_eq!(owners(&from).collect::<Vec<_>>(), [(false, 5), (true, 6)]);
        let local = |is_group, id| if is_group { 2000 + id } else { 1000 + id };
        assert_eq!(with_owners(&from, local), Some(to));
        for broken in [&[][..], &[1, 0, 0, 0], &[2, 0, 0, 0, 1]] {
            assert_eq!(with_owners(broken, local), None);
            assert_eq!(owners(broken).count(), 0);
        }
    }
}
