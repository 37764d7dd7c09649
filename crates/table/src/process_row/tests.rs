use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

fn row() -> ProcessRow {
    ProcessRow {
        generation: 0xbeef,
        session: 0x0123_4567_89ab_cdef,
        receives: true,
        measured: Rate::mbps(233.3),
        measured_at: Time::from_nanos(77),
        terms: Terms {
            desired: Some(Rate::mbps(0.1)),
            weight: 0.1,
            minimum: Rate::mbps(10.0),
            beta: 1.0,
            ..Terms::default()
        },
        rtt: Duration::from_millis(60),
        waiting: Some(Duration::ZERO),
        start: Rate::mbps(250.0),
        path: Some(Rate::gbps(1.0)),
        remote: Some(Remote { rate: Rate::mbps(0.3), offer: Rate::mbps(0.7), exchanges: true }),
        limited_by: 9,
        peer: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)),
        wire_bytes: Bytes::new(u64::MAX),
        lost: u32::MAX,
        holding: Some(Holding {
            claim: None,
            limit: Some(Rate::mbps(0.2)),
            granted: Rate::mbps(0.3),
            reserved: Rate::mbps(700.1),
            taken: (1 << 48) - 1,
            is_application_limited: true,
            is_silent: false,
            is_plain: true,
        }),
    }
}

#[test]
fn decode__is_what_was_encoded() {
    let one = row();
    assert_eq!(ProcessRow::decode(one.encode()), Ok(one));
    let other = ProcessRow {
        receives: false,
        terms: Terms { desired: None, maximum: Some(Rate::mbps(50.0)), beta: 0.0, ..one.terms },
        waiting: None,
        path: None,
        remote: None,
        peer: IpAddr::V6(Ipv6Addr::LOCALHOST),
        lost: 0,
        holding: None,
        ..one
    };
    assert_eq!(ProcessRow::decode(other.encode()), Ok(other));
}

#[test]
fn encode__of_what_its_fields_cannot_hold_is_the_nearest() {
    let huge = ProcessRow {
        rtt: Duration::from_secs(100_000),
        waiting: Some(Duration::from_secs(100_000)),
        start: Rate::nearest_bps(f64::MAX),
        ..row()
    };
    let held = ProcessRow::decode(huge.encode()).unwrap();
    let most = Duration::from_micros(u64::from(u32::MAX - 1));
    assert_eq!((held.rtt, held.waiting), (most, Some(most)));
    assert_eq!(held.start.as_bps(), f64::from(f32::MAX));
    let short = ProcessRow { rtt: Duration::from_nanos(1), ..row() };
    assert_eq!(ProcessRow::decode(short.encode()).map(|row| row.rtt), Ok(Duration::from_micros(1)));
}

#[test]
fn decode__of_rubbish_names_the_field() {
    let with = |at: usize, word: u64| {
        let mut words = row().encode();
        words[at] = word;
        ProcessRow::decode(words).map(|_| ())
    };
    let (nan, negative, infinite) = (f64::NAN.to_bits(), (-1.0_f64).to_bits(), f64::INFINITY.to_bits());
    assert_eq!(with(0, 0), Err(RowError::Free));
    assert_eq!(with(0, 2), Err(RowError::Rubbish("state")));
    for word in [nan, negative, infinite] {
        assert_eq!(with(2, word), Err(RowError::Rubbish("measured rate")));
        assert_eq!(with(5, word), Err(RowError::Rubbish("weight")));
        assert_eq!(with(10, word), Err(RowError::Rubbish("other end's rate")));
        assert_eq!(with(11, word), Err(RowError::Rubbish("other end's offer")));
    }
    assert_eq!(with(4, nan), Err(RowError::Rubbish("desired rate")));
    assert_eq!(with(4, negative), Err(RowError::Rubbish("desired rate")));
    assert_eq!(with(4, infinite), Ok(()));
    assert_eq!(with(5, 0), Err(RowError::Rubbish("weight")));
    assert_eq!(with(6, pair(f32::NAN.to_bits(), 0)), Err(RowError::Rubbish("minimum")));
    assert_eq!(with(6, pair(0, f32::NAN.to_bits())), Err(RowError::Rubbish("maximum")));
    // Alpha is above zero and below one, beta at most one.
    assert_eq!(with(7, pair(0, 0)), Err(RowError::Rubbish("alpha")));
    assert_eq!(with(7, pair(1_000_000_000, 0)), Err(RowError::Rubbish("alpha")));
    assert_eq!(with(7, pair(1, 1_000_000_001)), Err(RowError::Rubbish("beta")));
    assert_eq!(with(9, pair((-1.0_f32).to_bits(), 0)), Err(RowError::Rubbish("start")));
    assert_eq!(with(9, pair(0, f32::NAN.to_bits())), Err(RowError::Rubbish("path's rate")));
    for word in [nan, negative] {
        assert_eq!(with(15, word), Err(RowError::Rubbish("claim")));
        assert_eq!(with(16, word), Err(RowError::Rubbish("limit")));
    }
    for word in [nan, negative, infinite] {
        assert_eq!(with(17, word), Err(RowError::Rubbish("grant")));
        assert_eq!(with(18, word), Err(RowError::Rubbish("reserved rate")));
    }
}

proptest! {
    #[test]
    fn decode__of_any_words_can_be_reckoned_with(
        words in prop::array::uniform23(any::<u64>()), opens in any::<bool>(), sane in any::<u32>(),
    ) {
        // Random words are hardly ever a row: some words are those of a valid one.
        let good = row().encode();
        let mut words = words;
        for (at, word) in words.iter_mut().enumerate() {
            if sane >> at & 1 == 1 {
                *word = good[at];
            }
        }
        if opens {
            words[0] = words[0] & !15 | OPEN;
        }
        if let Ok(row) = ProcessRow::decode(words) {
            let Terms { weight, minimum, alpha, beta, .. } = row.terms;
            prop_assert!(weight > 0.0 && weight.is_finite());
            prop_assert!(alpha > 0.0 && alpha < 1.0 && (0.0..=1.0).contains(&beta));
            prop_assert!(row.measured.as_bps().is_finite() && minimum.as_bps().is_finite());
            // A decoded row encodes to the same words: only flags and halves without meaning may differ.
            prop_assert_eq!(ProcessRow::decode(row.encode()), Ok(row));
        }
    }
}
