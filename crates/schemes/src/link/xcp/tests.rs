use super::*;
use crate::session::{CongestionController, Feedback, Sending, WindowConfig, Xcp};
use fairwave_units::Rate;
use proptest::prelude::*;

const HERE: LinkId = LinkId::of(7);
const ELSEWHERE: LinkId = LinkId::of(8);

/// 80 Mb/s: 1000 bytes in 0.1 ms. Its first interval ends after 25 ms.
fn link(kind: XcpKind) -> XcpLink {
    let setup = LinkSetup { id: HERE, capacity: Rate::mbps(80.0), packet_bytes: 1000, phase: 0.0 };
    XcpLink::new(kind, XcpConfig::default(), &setup)
}

fn passage(now: Time, queue_bytes: u64) -> Passage {
    Passage { now, bytes: 1000, is_data: true, queue_bytes }
}

fn header(bottleneck: LinkId, interval_s: f64) -> XcpHeader {
    let rtt = Some(Duration::from_millis(50));
    XcpHeader { rtt, interval_s, change_bps: f64::INFINITY, bottleneck, next_bottleneck: bottleneck }
}

/// `packets` arrive within the current interval.
fn arrive(link: &mut XcpLink, packets: u32, header: XcpHeader) {
    for _ in 0..packets {
        link.on_arrival(&passage(Time::ZERO, 0), Some(&CongestionHeader::Xcp(header)));
    }
}

/// The header of a departing packet after the link changed it.
fn depart(link: &mut XcpLink, header: XcpHeader) -> XcpHeader {
    let mut header = CongestionHeader::Xcp(header);
    link.on_departure(&passage(Time::ZERO, 0), Some(&mut header));
    let CongestionHeader::Xcp(header) = header else { unreachable!("links do not exchange headers") };
    header
}

fn near(ours: f64, expected: f64) {
    assert!((ours - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{ours} instead of {expected}");
}

#[test]
fn xcp_control__spare_bandwidth() {
    // 10^6 B in 0.1 s are 80 Mb/s of 100: 0.4 x 20 Mb/s - 0.226 x 400 kb / 0.1 s = 8 - 0.904 = 7.096 Mb/s; a tenth of
    // the traffic is 8 Mb/s, so 0.904 are shuffled.
    let pools = xcp_control(&XcpConfig::default(), 100e6, 0.1, 1e6, 50_000.0, 0.1);
    near(pools.positive_bps, 8e6);
    near(pools.negative_bps, 0.904e6);
}

#[test]
fn xcp_control__overload() {
    // 110 Mb/s: -4 - 0.904 = -4.904 Mb/s, and 11 - 4.904 = 6.096 shuffled.
    let pools = xcp_control(&XcpConfig::default(), 100e6, 0.1, 1.375e6, 50_000.0, 0.1);
    near(pools.positive_bps, 6.096e6);
    near(pools.negative_bps, 11e6);
}

#[test]
fn xcp_control__large_change_shuffles_nothing() {
    let pools = xcp_control(&XcpConfig::default(), 100e6, 0.1, 0.0, 0.0, 0.1);
    near(pools.positive_bps, 40e6);
    assert_eq!(pools.negative_bps, 0.0);
}

#[test]
fn control__shares_gains_by_session_and_losses_by_bytes() {
    // At capacity: 250 packets in 25 ms, and 8 Mb/s are shuffled. A sends 50 of them, B 200; the sums of their
    // intervals are 25 ms each. A packet of A gets 8 Mb/s x 0.5 / 50 = 80 kb/s, one of B 20; both pay 8 Mb/s / 250
    // = 32 kb/s.
    let mut xcp = link(XcpKind::Plain);
    let (a, b) = (header(HERE, 0.000_5), header(ELSEWHERE, 0.000_125));
    arrive(&mut xcp, 50, a);
    arrive(&mut xcp, 200, b);
    xcp.on_timer(xcp.next_timer(), 0);
    near(depart(&mut xcp, a).change_bps, 48e3);
    near(depart(&mut xcp, b).change_bps, -12e3);
}

#[test]
fn control__ixcp_taxes_only_sessions_that_it_limits() {
    // As above, but B reports that another link limits it: the tenth of A's traffic is shuffled, and all of it returns
    // to A.
    let mut xcp = link(XcpKind::Improved);
    let (a, b) = (header(HERE, 0.000_5), header(ELSEWHERE, 0.000_125));
    arrive(&mut xcp, 50, a);
    arrive(&mut xcp, 200, b);
    xcp.on_timer(xcp.next_timer(), 0);
    near(depart(&mut xcp, a).change_bps, 0.0);
    near(depart(&mut xcp, b).change_bps, 0.0);
}

#[test]
fn control__ixcp_gives_spare_bandwidth_to_all() {
    // Half used: 0.4 x 40 = 16 Mb/s, and nothing is shuffled.
    let mut xcp = link(XcpKind::Improved);
    let (a, b) = (header(HERE, 0.000_5), header(ELSEWHERE, 0.000_333_333));
    arrive(&mut xcp, 50, a);
    arrive(&mut xcp, 75, b);
    let sum = 50.0 * 0.000_5 + 75.0 * 0.000_333_333;
    xcp.on_timer(xcp.next_timer(), 0);
    near(depart(&mut xcp, a).change_bps, 16e6 * 0.000_5 / sum);
    near(depart(&mut xcp, b).change_bps, 16e6 * 0.000_333_333 / sum);
}

#[test]
fn control__pxcp_scales_spare_bandwidth_by_its_limited_sessions() {
    // Half used, two sessions. A session is limited here if no earlier link granted it less: both, 16 Mb/s as in XCP;
    // only A, or neither, 2 x 16 Mb/s for sums of 50 ms. The sessions' own reports, which include later links, do not
    // count.
    let less = |header: XcpHeader| XcpHeader { change_bps: -1e6, ..header };
    for (is_a_limited, is_b_limited, expected) in [(true, true, 160e3), (true, false, 320e3), (false, false, 320e3)] {
        let mut xcp = link(XcpKind::Scaled);
        let (a, b) = (header(ELSEWHERE, 0.000_5), header(ELSEWHERE, 0.025 / 75.0));
        for (packets, header, is_limited) in [(50, a, is_a_limited), (75, b, is_b_limited)] {
            arrive(&mut xcp, packets, header);
            for _ in 0..packets {
                depart(&mut xcp, if is_limited { header } else { less(header) });
            }
        }
        xcp.on_timer(xcp.next_timer(), 0);
        near(depart(&mut xcp, a).change_bps, expected);
    }
}

#[test]
fn control__ixcp_pays_shuffling_from_the_shuffled_pool() {
    // 90 % used, all by one session in two halves with different reports: 0.4 x 8 = 3.2 Mb/s are spare, 0.1 x 36 - 3.2
    // = 0.4 shuffled. Those limited here go first; the others still find their half of the spare bandwidth.
    let mut xcp = link(XcpKind::Improved);
    let (here, elsewhere) = (header(HERE, 0.000_25), header(ELSEWHERE, 0.000_25));
    arrive(&mut xcp, 112, here);
    arrive(&mut xcp, 113, elsewhere);
    xcp.on_timer(xcp.next_timer(), 0);
    for _ in 0..112 {
        near(depart(&mut xcp, here).change_bps, 3.2e6 / 225.0);
    }
    for _ in 0..113 {
        near(depart(&mut xcp, elsewhere).change_bps, 3.2e6 / 225.0);
    }
}

#[test]
fn control__ixcp_empty_pool_does_not_name_a_bottleneck() {
    // More packets leave than arrived in the previous interval: the last ones get nothing, and still name the same
    // link.
    let mut xcp = link(XcpKind::Improved);
    let elsewhere = header(ELSEWHERE, 0.000_25);
    arrive(&mut xcp, 100, elsewhere);
    xcp.on_timer(xcp.next_timer(), 0);
    for _ in 0..99 {
        assert_eq!(depart(&mut xcp, elsewhere).next_bottleneck, HERE);
    }
    depart(&mut xcp, elsewhere);
    let last = depart(&mut xcp, elsewhere);
    assert!(last.change_bps.abs() < 1e-3, "{last:?}");
    assert_eq!(last.next_bottleneck, ELSEWHERE);
}

#[test]
fn control__pxcp_does_not_scale_negative_changes() {
    // 300 packets in 25 ms are 96 Mb/s: -6.4 Mb/s, and 9.6 - 6.4 = 3.2 shuffled. Half of 3.2 over 50, less 9.6 over
    // 300.
    let mut xcp = link(XcpKind::Scaled);
    let (a, b) = (header(HERE, 0.000_5), header(ELSEWHERE, 0.000_1));
    arrive(&mut xcp, 50, a);
    arrive(&mut xcp, 250, b);
    xcp.on_timer(xcp.next_timer(), 0);
    near(depart(&mut xcp, a).change_bps, 32e3 - 32e3);
    near(depart(&mut xcp, b).change_bps, 6.4e3 - 32e3);
}

#[test]
fn grant__cuts_by_earlier_links_benefit_other_sessions() {
    // At capacity, 8 Mb/s are shuffled over 250 equal packets: 32 kb/s each to gain and to lose. A link before took
    // 20 kb/s from each of the first 100 (draft-falk-xcp-spec-03 s4.4): they pay 52 kb/s here, so 2 Mb/s less are left
    // to pay, and the last of the others gain them.
    let mut xcp = link(XcpKind::Plain);
    let all = header(HERE, 0.000_1);
    arrive(&mut xcp, 250, all);
    xcp.on_timer(xcp.next_timer(), 0);
    for _ in 0..100 {
        let taken = XcpHeader { change_bps: -20e3, next_bottleneck: ELSEWHERE, ..all };
        assert_eq!(depart(&mut xcp, taken), taken);
    }
    near(xcp.spare.left.negative_bps, 8e6 - 100.0 * 52e3);
    near(xcp.spare.left.positive_bps, 8e6 - 100.0 * 32e3);
    let others: Vec<f64> = (0..150).map(|_| depart(&mut xcp, all).change_bps).collect();
    near(others[0], 0.0);
    near(others[149], 32e3);
    near(others.iter().sum(), 2e6);
}

#[test]
fn grant__less_than_offered_leaves_more_for_others() {
    // Half used: 16 Mb/s over 125 packets, 128 kb/s each. A session that may take only 28 leaves the rest in the pool.
    let mut xcp = link(XcpKind::Plain);
    let all = header(HERE, 0.000_2);
    arrive(&mut xcp, 125, all);
    xcp.on_timer(xcp.next_timer(), 0);
    near(depart(&mut xcp, XcpHeader { change_bps: 28e3, ..all }).change_bps, 28e3);
    near(xcp.spare.left.positive_bps, 16e6 - 28e3);
}

#[test]
fn grant__ends_with_the_pool() {
    // More packets leave than had arrived: the last get the rest, then nothing.
    let mut xcp = link(XcpKind::Plain);
    let all = header(HERE, 0.000_2);
    arrive(&mut xcp, 125, all);
    xcp.on_timer(xcp.next_timer(), 0);
    let granted: f64 = (0..200).map(|_| depart(&mut xcp, all).change_bps).sum();
    near(granted, 16e6);
    near(depart(&mut xcp, all).change_bps, 0.0);
}

#[test]
fn grant__names_the_link_that_lowered_last() {
    let mut xcp = link(XcpKind::Improved);
    let all = header(ELSEWHERE, 0.000_2);
    arrive(&mut xcp, 125, all);
    xcp.on_timer(xcp.next_timer(), 0);
    assert_eq!(depart(&mut xcp, all).next_bottleneck, HERE);
    // 128 kb/s from the earlier link as well: a tie keeps its name.
    let share = depart(&mut xcp, all).change_bps;
    assert_eq!(depart(&mut xcp, XcpHeader { change_bps: share, ..all }).next_bottleneck, ELSEWHERE);
}

#[test]
fn grant__nothing_before_the_first_round_trip() {
    let mut xcp = link(XcpKind::Plain);
    let first = XcpHeader { rtt: None, interval_s: 0.0, ..header(HERE, 0.0) };
    arrive(&mut xcp, 125, first);
    xcp.on_timer(xcp.next_timer(), 0);
    assert_eq!(depart(&mut xcp, first).change_bps, 0.0);
    // Its bytes count as traffic, and reduce the spare capacity.
    arrive(&mut xcp, 1, header(HERE, 0.001));
    assert_eq!(xcp.sums.input_bytes, 1000.0);
}

#[test]
fn on_timer__the_queue_that_stays_is_drained() {
    let mut xcp = link(XcpKind::Plain);
    let all = header(HERE, 0.000_1);
    // 4000 B are always queued; the first queue period ends at 50 ms x (0.5 + 0.618) and may still have started empty.
    while xcp.next_timer() < Time::from_nanos(125_000_000) {
        xcp.on_timer(xcp.next_timer(), 4000);
        xcp.on_departure(&passage(Time::ZERO, 4000), None);
    }
    // 50 ms at capacity. 0.226 x 32 kb / 50 ms = 144.64 kb/s have to be taken, over 500 packets.
    arrive(&mut xcp, 500, all);
    assert_eq!(xcp.next_timer(), Time::from_nanos(125_000_000));
    xcp.on_timer(xcp.next_timer(), 4000);
    let total: f64 = (0..500).map(|_| depart(&mut xcp, all).change_bps).sum();
    assert!((total + 144_640.0).abs() < 1e-3, "{total}");
}

/// A packet of one of the sessions, and the time since the previous one.
#[derive(Clone, Debug)]
struct Step {
    session: usize,
    wait_us: u64,
    rtt_us: Option<u64>,
    bytes: u32,
    /// The change that an earlier link granted.
    before_bps: Option<f64>,
    queue_bytes: u64,
}

fn any_step() -> impl Strategy<Value = Step> {
    (
        0..4_usize,
        0..20_000_u64,
        proptest::option::weighted(0.9, 0..2_000_000_u64),
        40..9_000_u32,
        proptest::option::of(-1e9..1e9_f64),
        0..10_000_000_u64,
    )
        .prop_map(|(session, wait_us, rtt_us, bytes, before_bps, queue_bytes)| Step {
            session,
            wait_us,
            rtt_us,
            bytes,
            before_bps,
            queue_bytes,
        })
}

fn any_kind() -> impl Strategy<Value = XcpKind> {
    prop_oneof![Just(XcpKind::Plain), Just(XcpKind::Improved), Just(XcpKind::Scaled)]
}

fn is_pool(pool: &XcpPool) -> bool {
    let values = [pool.left.positive_bps, pool.left.negative_bps, pool.per_byte_bps, pool.per_interval_s_bps];
    values.into_iter().all(|value| value >= 0.0 && value.is_finite())
}

proptest! {
    #[test]
    fn xcp_link__keeps_pools_and_windows_sane(
        kind in any_kind(),
        mbps in 0.01..100_000.0_f64,
        phase in 0.0..1.0_f64,
        steps in proptest::collection::vec(any_step(), 1..400),
    ) {
        let setup = LinkSetup { id: HERE, capacity: Rate::mbps(mbps), packet_bytes: 1000, phase };
        let mut xcp = XcpLink::new(kind, XcpConfig::default(), &setup);
        let mut sessions: Vec<Xcp> = (0..4).map(|_| Xcp::new(WindowConfig::default())).collect();
        let mut now = Time::ZERO;
        for step in steps {
            now += Duration::from_micros(step.wait_us);
            while xcp.next_timer() <= now {
                let before = xcp.next_timer();
                xcp.on_timer(before, step.queue_bytes);
                prop_assert!(xcp.next_timer() > before, "no timer may come again at once");
            }
            let session = &mut sessions[step.session];
            let window_packets = session.allowance().window_packets as u64;
            let smoothed_rtt = step.rtt_us.map(Duration::from_micros);
            let Some(CongestionHeader::Xcp(mut sent)) = session.header(&Sending { smoothed_rtt, window_packets }) else {
                return Err(TestCaseError::fail("XCP's packets have headers"));
            };
            // Links grant nothing before the first round trip, and earlier ones granted nothing.
            if let Some(before_bps) = step.before_bps.filter(|_| sent.rtt.is_some()) {
                sent.change_bps = sent.change_bps.min(before_bps);
            }
            let here = Passage { now, bytes: step.bytes, is_data: true, queue_bytes: step.queue_bytes };
            let mut header = CongestionHeader::Xcp(sent);
            xcp.on_arrival(&here, Some(&header));
            xcp.on_departure(&here, Some(&mut header));
            prop_assert!(is_pool(&xcp.spare) && is_pool(&xcp.shuffled), "{:?}", xcp);
            let CongestionHeader::Xcp(got) = header else { return Err(TestCaseError::fail("another header")) };
            prop_assert!(got.change_bps.is_finite() && got.change_bps <= sent.change_bps, "{sent:?} became {got:?}");
            let smoothed_rtt = smoothed_rtt.unwrap_or_default();
            session.on_feedback(&Feedback { now, header, smoothed_rtt, packet_bytes: step.bytes, window_limited: true });
            let window = session.allowance().window_packets;
            prop_assert!(window >= 1.0 && window.is_finite(), "{window}");
        }
    }
}

#[test]
fn new__links_of_different_phases_never_tick_together() {
    let timer = |phase| {
        let capacity = Rate::mbps(100.0);
        let setup = LinkSetup { id: LinkId::of(0), capacity, packet_bytes: 1000, phase };
        XcpLink::new(XcpKind::Plain, XcpConfig::default(), &setup)
    };
    // The control timer first falls within half an interval of 50 ms around its end: 25 to 75 ms; the queue's timer has
    // another phase.
    for (phase, control_ms) in [(0.0, 25), (0.5, 50), (0.9, 70)] {
        let link = timer(phase);
        assert_eq!(link.next_control, Time::from_nanos(control_ms * 1_000_000));
        assert_ne!(link.next_queue, link.next_control);
    }
}
