//! XCP's router rule (Katabi, Handley & Rohrs 2002, section 3.5; draft-falk-xcp-spec-03, section 4), and two rules
//! derived from it.
//!
//! Once per mean round-trip time a link computes the total change of the rates through it, and distributes it over the
//! packets of the next interval: gains in equal parts for all sessions, losses in proportion to their rates. It has no
//! state per session.
//!
//! - iXCP (Zan & Yang 2007, section 3) shuffles only among the sessions that name this link as their limit.
//! - P-XCP (Zhou, Yeung & Li 2004) multiplies spare bandwidth by all sessions over those that no earlier link limits
//!   more.

use fairwave_units::{Bytes, Duration, Time};

use super::{LinkController, LinkSetup, Passage};
use crate::header::{CongestionHeader, LinkId, XcpHeader};
use crate::scheme::option::{CLOSED_POSITIVE, CLOSED_UNIT, POSITIVE, TypedOption, flag, number};
use crate::scheme::{OptionSpec, Scheme, config, entry};
use crate::session::tcp_options::{MIN_RTO, SACK};
use crate::session::{MakeController, Xcp};

/// XCP's rule at a link.
#[derive(Clone, Debug)]
pub struct XcpLink {
    id: LinkId,
    kind: XcpKind,
    config: XcpConfig,
    capacity_bps: f64,
    /// Measurements since the start of the interval.
    sums: Sums,
    interval_began: Time,
    next_control: Time,
    /// Rest of this interval's pool, for all sessions.
    spare: XcpPool,
    /// Rest of the pool for sessions that this link limits, iXCP only.
    shuffled: XcpPool,
    mean_rtt: Duration,
    /// The queue that did not drain during the last queue period, and the minimum so far in this one.
    persistent_queue_bytes: u64,
    least_queue_bytes: u64,
    next_queue: Time,
}

config! {
    /// Constants of XCP. Katabi, Handley & Rohrs 2002, section 3.5: 0.4, 0.226, 0.1.
    pub struct XcpConfig(options) {
        /// Share of the spare bandwidth given out per interval; stable for 0 < alpha < pi / (4 sqrt 2).
        pub alpha: f64 = ALPHA.of(options),
        /// Share of the persistent queue drained per interval; alpha^2 sqrt 2.
        pub beta: f64 = BETA.of(options),
        /// Share of the traffic shuffled per interval.
        pub gamma: f64 = GAMMA.of(options),
    }
}

/// Variant of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XcpKind {
    /// Katabi, Handley & Rohrs 2002.
    Plain,
    /// iXCP: Zan & Yang 2007.
    Improved,
    /// P-XCP: Zhou, Yeung & Li 2004.
    Scaled,
}

/// Measurements of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    /// Bytes of all packets.
    input_bytes: f64,
    /// Sum of the packets' intervals, and the same weighted by their round-trip times.
    interval_s: f64,
    interval_rtt_s2: f64,
    /// Sums of the sessions that this link limits: iXCP uses what their headers state. P-XCP uses whether an earlier
    /// link granted less; it cannot know about later ones.
    limited_bytes: f64,
    limited_interval_s: f64,
}

/// Total rise and total fall of the rates at a link within an interval, each in bit/s and at least zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct XcpPools {
    /// Total rise, shared out by the time between packets.
    pub positive_bps: f64,
    /// Total fall, shared out by bytes.
    pub negative_bps: f64,
}

/// The rest of [`XcpPools`], and a packet's share.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct XcpPool {
    left: XcpPools,
    per_interval_s_bps: f64,
    per_byte_bps: f64,
}

impl XcpConfig {
    /// XCP's control law for one interval that showed `input_bytes` in `interval_s`, with a queue of `queue_bytes` that
    /// did not drain, for sessions with a mean round-trip time of `mean_rtt_s`; at most `shuffled_bps` of the traffic
    /// are shuffled (Katabi, Handley & Rohrs 2002, Eqs. 1 and 4; per second, as in draft-falk-xcp-spec-03 s4.2).
    fn control(&self, interval: &XcpInterval, shuffled_bps: f64) -> (f64, f64) {
        let spare_bps = interval.capacity_bps - interval.input_bps();
        let drained_bps = interval.queue_bytes * 8.0 / interval.mean_rtt_s;
        let change_bps = self.alpha * spare_bps - self.beta * drained_bps;
        let shuffle_bps = (self.gamma * shuffled_bps - change_bps.abs()).max(0.0);
        (change_bps, shuffle_bps)
    }
}

/// An interval, as input of the control law.
#[derive(Clone, Copy, Debug)]
struct XcpInterval {
    capacity_bps: f64,
    length_s: f64,
    input_bytes: f64,
    queue_bytes: f64,
    mean_rtt_s: f64,
}

impl XcpInterval {
    fn input_bps(&self) -> f64 {
        self.input_bytes * 8.0 / self.length_s
    }
}

/// One step of XCP's control law, for use outside a link: the total change of the rates (Katabi, Handley & Rohrs 2002,
/// Eqs. 1 and 4, in bit/s as in draft-falk-xcp-spec-03 s4.2). `interval_s` and `mean_rtt_s` are above zero;
/// `queue_bytes` is the queue that did not drain.
pub fn xcp_control(
    config: &XcpConfig,
    capacity_bps: f64,
    interval_s: f64,
    input_bytes: f64,
    queue_bytes: f64,
    mean_rtt_s: f64,
) -> XcpPools {
    let interval = XcpInterval { capacity_bps, length_s: interval_s, input_bytes, queue_bytes, mean_rtt_s };
    let (change_bps, shuffle_bps) = config.control(&interval, interval.input_bps());
    XcpPools::of(change_bps).and(shuffle_bps)
}

impl XcpPools {
    fn of(change_bps: f64) -> Self {
        Self { positive_bps: change_bps.max(0.0), negative_bps: (-change_bps).max(0.0) }
    }

    fn net_bps(self) -> f64 {
        self.positive_bps - self.negative_bps
    }

    fn and(self, shuffle_bps: f64) -> Self {
        Self { positive_bps: self.positive_bps + shuffle_bps, negative_bps: self.negative_bps + shuffle_bps }
    }
}

impl XcpPool {
    /// Pools for traffic with these sums; empty without traffic.
    fn new(pools: XcpPools, interval_s: f64, bytes: f64) -> Self {
        let mut pool = Self::default();
        if interval_s > 0.0 {
            pool.left.positive_bps = pools.positive_bps;
            pool.per_interval_s_bps = pools.positive_bps / interval_s;
        }
        if bytes > 0.0 {
            pool.left.negative_bps = pools.negative_bps;
            pool.per_byte_bps = pools.negative_bps / bytes;
        }
        pool
    }

    /// A packet's share, and whether it was cut because the pool is exhausted.
    fn share(&self, interval_s: f64, bytes: f64) -> (XcpPools, bool) {
        let whole = self.whole(interval_s, bytes);
        let share = XcpPools {
            positive_bps: whole.positive_bps.min(self.left.positive_bps),
            negative_bps: whole.negative_bps.min(self.left.negative_bps),
        };
        (share, share != whole)
    }

    /// A packet's share if its two parts must be equal: the smaller of both.
    fn balanced_share(&self, interval_s: f64, bytes: f64) -> (XcpPools, bool) {
        let whole = self.whole(interval_s, bytes);
        let there = |left: f64, wanted: f64| if wanted > left { left / wanted } else { 1.0 };
        let part =
            there(self.left.positive_bps, whole.positive_bps).min(there(self.left.negative_bps, whole.negative_bps));
        (XcpPools { positive_bps: part * whole.positive_bps, negative_bps: part * whole.negative_bps }, part < 1.0)
    }

    fn whole(&self, interval_s: f64, bytes: f64) -> XcpPools {
        XcpPools { positive_bps: self.per_interval_s_bps * interval_s, negative_bps: self.per_byte_bps * bytes }
    }

    /// Takes out a share, which is at most the rest.
    fn take(&mut self, share: XcpPools) {
        self.left.positive_bps -= share.positive_bps;
        self.left.negative_bps -= share.negative_bps;
    }

    /// Reduces the fall that is still to be taken by `unused_bps`, and returns the excess.
    fn forgive(&mut self, unused_bps: f64) -> f64 {
        let forgiven_bps = unused_bps.min(self.left.negative_bps);
        self.left.negative_bps -= forgiven_bps;
        unused_bps - forgiven_bps
    }
}

impl XcpLink {
    /// The rule for a link that starts at time zero.
    pub fn new(kind: XcpKind, config: XcpConfig, setup: &LinkSetup) -> Self {
        // Links that started together would otherwise stay synchronised (ns-2 draws the first times as well).
        let first = |phase: f64| Time::ZERO + part(FIRST_INTERVAL, 0.5 + phase);
        Self {
            id: setup.id,
            kind,
            config,
            capacity_bps: setup.capacity.as_bps(),
            sums: Sums::default(),
            interval_began: Time::ZERO,
            next_control: first(setup.phase),
            spare: XcpPool::default(),
            shuffled: XcpPool::default(),
            mean_rtt: FIRST_INTERVAL,
            persistent_queue_bytes: 0,
            least_queue_bytes: 0,
            next_queue: first((setup.phase + 0.618).fract()),
        }
    }

    /// End of an interval: computes the pools of the next one.
    fn control(&mut self, now: Time) {
        let Sums { input_bytes, interval_s, interval_rtt_s2, limited_bytes, limited_interval_s } =
            std::mem::take(&mut self.sums);
        self.mean_rtt = if interval_s > 0.0 {
            Duration::from_secs_f64(interval_rtt_s2 / interval_s).unwrap_or(MAX_INTERVAL)
        } else {
            FIRST_INTERVAL
        };
        // The traffic is that of the interval that ends, the round-trip time is the new one.
        let length_s = now.since(self.interval_began).as_secs_f64();
        let interval = XcpInterval {
            capacity_bps: self.capacity_bps,
            length_s,
            input_bytes,
            queue_bytes: self.persistent_queue_bytes as f64,
            mean_rtt_s: self.mean_rtt.max(MIN_INTERVAL).as_secs_f64(),
        };
        let is_ixcp = self.kind == XcpKind::Improved;
        let shuffled_bytes = if is_ixcp { limited_bytes } else { input_bytes };
        let (mut change_bps, shuffle_bps) = self.config.control(&interval, shuffled_bytes * 8.0 / length_s);
        if self.kind == XcpKind::Scaled && change_bps > 0.0 {
            // Sums of intervals over the interval: number of sessions. At least one counts as limited here.
            change_bps *= (interval_s / limited_interval_s.max(length_s)).max(1.0);
        }
        let spare = XcpPools::of(change_bps);
        if is_ixcp {
            self.spare = XcpPool::new(spare, interval_s, input_bytes);
            // Rate that is taken from the sessions limited here has to return to them.
            let has_limited = limited_bytes > 0.0 && limited_interval_s > 0.0;
            let shuffle = XcpPools::default().and(if has_limited { shuffle_bps } else { 0.0 });
            self.shuffled = XcpPool::new(shuffle, limited_interval_s, limited_bytes);
        } else {
            self.spare = XcpPool::new(spare.and(shuffle_bps), interval_s, input_bytes);
        }
        self.interval_began = now;
        self.next_control = now.saturating_add(self.mean_rtt.max(MIN_INTERVAL).min(MAX_INTERVAL));
    }

    /// Adds a packet's share to its header.
    fn grant(&mut self, bytes: f64, header: &mut XcpHeader) {
        if header.rtt.is_none() {
            header.change_bps = 0.0;
            return;
        }
        let is_limited_here = header.bottleneck == self.id;
        let (spare, is_spare_cut) = self.spare.share(header.interval_s, bytes);
        let (shuffled, is_shuffled_cut) = if is_limited_here {
            self.shuffled.balanced_share(header.interval_s, bytes)
        } else {
            (XcpPools::default(), false)
        };
        // Each pool pays only for its own grants: if the shuffle were paid from the spare bandwidth, sessions limited
        // elsewhere would find none left, and would name this link as their limit.
        self.spare.take(spare);
        self.shuffled.take(shuffled);
        let change_bps = spare.net_bps() + shuffled.net_bps();
        if header.change_bps >= change_bps {
            if self.kind == XcpKind::Scaled {
                self.sums.limited_interval_s += header.interval_s;
            }
            if header.change_bps > change_bps {
                // A pool that is exhausted before its interval ends does not show which link limits a session.
                let is_cut = is_spare_cut || is_shuffled_cut;
                header.next_bottleneck = if is_cut { header.bottleneck } else { self.id };
            }
            header.change_bps = change_bps;
        } else {
            // draft-falk-xcp-spec-03 s4.4: an earlier link granted less. The part that is not used here offsets what
            // must be taken from the others; the rest remains to be granted.
            let unused_bps = self.spare.forgive(change_bps - header.change_bps);
            let unused_bps = if is_limited_here { self.shuffled.forgive(unused_bps) } else { unused_bps };
            let returned_bps = unused_bps.min(spare.positive_bps);
            self.spare.left.positive_bps += returned_bps;
            self.shuffled.left.positive_bps += (unused_bps - returned_bps).min(shuffled.positive_bps);
        }
    }
}

impl LinkController for XcpLink {
    fn on_arrival(&mut self, passage: &Passage, header: Option<&CongestionHeader>) {
        let bytes = f64::from(passage.bytes);
        self.sums.input_bytes += bytes;
        let Some(CongestionHeader::Xcp(header)) = header else { return };
        let is_limited_here = header.bottleneck == self.id;
        if is_limited_here {
            self.sums.limited_bytes += bytes;
        }
        // Packets before the first measured round-trip time count only as bytes.
        if let Some(rtt) = header.rtt {
            self.sums.interval_s += header.interval_s;
            self.sums.interval_rtt_s2 += header.interval_s * rtt.min(MAX_INTERVAL).as_secs_f64();
            if is_limited_here && self.kind != XcpKind::Scaled {
                self.sums.limited_interval_s += header.interval_s;
            }
        }
    }

    fn on_departure(&mut self, passage: &Passage, header: Option<&mut CongestionHeader>) {
        self.least_queue_bytes = self.least_queue_bytes.min(passage.queue_bytes);
        if let Some(CongestionHeader::Xcp(header)) = header {
            self.grant(f64::from(passage.bytes), header);
        }
    }

    fn next_timer(&self) -> Time {
        self.next_control.min(self.next_queue)
    }

    fn on_timer(&mut self, now: Time, queue_bytes: u64) {
        if now >= self.next_control {
            self.control(now);
        }
        if now >= self.next_queue {
            self.persistent_queue_bytes = self.least_queue_bytes.min(queue_bytes);
            self.least_queue_bytes = queue_bytes;
            // Half of the round-trip time without queueing; never all of it, or the queue would be drained twice.
            let draining_s = queue_bytes as f64 * 8.0 / self.capacity_bps;
            let period = Duration::from_secs_f64((self.mean_rtt.as_secs_f64() - draining_s).max(0.0) / 2.0);
            self.next_queue = now.saturating_add(period.unwrap_or_default().max(MIN_QUEUE_PERIOD));
        }
    }
}

fn part(whole: Duration, share: f64) -> Duration {
    Duration::from_secs_f64(whole.as_secs_f64() * share).unwrap_or(whole)
}

/// First interval, before any measurement (ns-2).
const FIRST_INTERVAL: Duration = Duration::from_millis(50);
/// Minimum interval (ns-2); the draft recommends 5 to 10 ms.
const MIN_INTERVAL: Duration = Duration::from_millis(1);
/// Maximum interval (ns-2).
const MAX_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum period of the persistent queue (ns-2).
const MIN_QUEUE_PERIOD: Duration = Duration::from_millis(2);

/// The scheme's registry entry.
pub(super) const SCHEME: Scheme = entry::at_packets(
    entry::link("xcp", "routers write into every packet how to change its window", "Katabi, Handley & Rohrs 2002", 20),
    &OPTIONS,
    SOURCE,
    |options, setup| Box::new(XcpLink::new(XcpKind::Plain, XcpConfig::from_options(options), setup)),
);
/// XCP on paths that have only the end nodes' access links.
pub(super) const ENDPOINT: Scheme = Scheme {
    name: "endpoint-xcp",
    help: "the XCP link rule at both ends' access links: xcp in a network without [[link]]",
    needs: "a network without [[link]]",
    cites: "Wu & Chien 2006, section 3",
    // A link's discipline is named xcp.
    link_controller: None,
    ..SCHEME
};
/// iXCP.
pub(super) const IMPROVED: Scheme = Scheme {
    // Zan & Yang 2007, section 3: eight bytes more in data packets, four in acknowledgements.
    ack_header: Bytes::new(24),
    ..entry::at_packets(
        entry::link("ixcp", "XCP that taxes only the sessions it limits: max-min fair", "Zan & Yang 2007", 28),
        &OPTIONS,
        SOURCE,
        |options, setup| Box::new(XcpLink::new(XcpKind::Improved, XcpConfig::from_options(options), setup)),
    )
};
/// P-XCP.
pub(super) const SCALED: Scheme = entry::at_packets(
    entry::link("pxcp", "XCP that scales spare bandwidth by its limited sessions", "Zhou, Yeung & Li 2004", 20),
    &OPTIONS,
    SOURCE,
    |options, setup| Box::new(XcpLink::new(XcpKind::Scaled, XcpConfig::from_options(options), setup)),
);
/// All kinds have the same source.
const SOURCE: MakeController =
    |options, window| Ok(Box::new(if WHOLE_WINDOWS.of(options) { Xcp::cut_down(window) } else { Xcp::new(window) }));
/// XCP answers a loss "in a similar manner to TCP" (Katabi, Handley & Rohrs 2002): with SACK, as a hole a round trip
/// would not do for its windows. Its scripts in ns-2 (tcl/ex/xcp) set `minrto_` to one second.
const OPTIONS: [OptionSpec; 6] =
    [ALPHA.spec(), BETA.spec(), GAMMA.spec(), WHOLE_WINDOWS.spec(), SACK.spec(), MIN_RTO.spec()];
const ALPHA: TypedOption<f64> = number("alpha", POSITIVE, "0.4", "share of the spare bandwidth given out per interval");
const BETA: TypedOption<f64> =
    number("beta", CLOSED_POSITIVE, "0.226", "share of the standing queue drained per interval");
const GAMMA: TypedOption<f64> = number("gamma", CLOSED_UNIT, "0.1", "share of the traffic shuffled per interval");
const WHOLE_WINDOWS: TypedOption<bool> =
    flag("whole_windows", "false", "windows are cut down to whole packets, as in ns-2");

#[cfg(test)]
mod tests;
