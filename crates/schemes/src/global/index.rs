//! Index of the sessions that cross each resource.

use super::problem::{MaxMinError, NONE, Problem};

/// The sessions of each resource in ascending order, one list after another.
pub(super) struct Index {
    offsets: Vec<u32>,
    sessions: Vec<u32>,
}

impl Index {
    /// Inverts the paths and checks their resource numbers.
    pub(super) fn build(problem: &Problem<'_>) -> Result<Self, MaxMinError> {
        let resources = problem.capacities_bps.len();
        // First the number of sessions of resource r at r + 1, then, by summing, the start of its list at r.
        let mut offsets = vec![0_u32; resources + 1];
        let mut last_session = vec![NONE; resources];
        for session in 0..problem.sessions() {
            for &resource in problem.paths.of(session) {
                if resource == NONE {
                    continue;
                }
                let Some(last) = last_session.get_mut(resource as usize) else {
                    return Err(MaxMinError::UnknownResource { session, resource, resources });
                };
                if *last == session as u32 {
                    return Err(MaxMinError::RepeatedResource { session, resource });
                }
                *last = session as u32;
                offsets[resource as usize + 1] += 1;
            }
        }
        let mut sum = 0;
        for offset in &mut offsets {
            sum += *offset;
            *offset = sum;
        }
        // Next free position of each list.
        let mut next = last_session;
        next.copy_from_slice(&offsets[..resources]);
        let mut sessions = vec![0; sum as usize];
        for session in 0..problem.sessions() {
            for &resource in problem.paths.of(session) {
                if resource != NONE {
                    let place = &mut next[resource as usize];
                    sessions[*place as usize] = session as u32;
                    *place += 1;
                }
            }
        }
        Ok(Self { offsets, sessions })
    }

    /// The sessions that cross a resource.
    #[inline]
    pub(super) fn sessions_of(&self, resource: u32) -> &[u32] {
        let r = resource as usize;
        &self.sessions[self.offsets[r] as usize..self.offsets[r + 1] as usize]
    }
}
