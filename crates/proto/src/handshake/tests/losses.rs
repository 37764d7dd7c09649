use std::collections::VecDeque;

use super::*;
use crate::session::secure_random::SecureRandom;

/// 60 ms there and back.
const ONE_WAY: Duration = Duration::from_millis(30);

/// One attempt where of ten datagrams three are lost, both ways: whether a session opens, and when.
fn attempt(random: &mut SecureRandom, nonce: u64) -> Result<Time, HandshakeError> {
    let mut lost = move || random.bits() % 10 < 3;
    let (mut here, mut there) = (initiator(ms(0), nonce, terms(nonce)), responder());
    let (mut hellos, mut answers) = (VecDeque::new(), VecDeque::new());
    while let Some(timeout) = here.next_timeout() {
        let hello_at = hellos.front().map(|(at, _)| *at);
        let answer_at = answers.front().map(|(at, _)| *at);
        let now = [Some(timeout), hello_at, answer_at].into_iter().flatten().min().unwrap();
        if answer_at == Some(now) {
            let (_, answer): (_, Vec<u8>) = answers.pop_front().unwrap();
            match here.handle(now, &answer) {
                AttemptProgress::Waiting => {}
                AttemptProgress::Established(_) => return Ok(now),
                AttemptProgress::Failed(error) => return Err(error),
            }
        } else if hello_at == Some(now) {
            let (_, hello): (_, Vec<u8>) = hellos.pop_front().unwrap();
            let answer = match there.handle(now, address(1), &hello) {
                Incoming::Answer(answer) => answer,
                Incoming::Asked(asked) => there.accept(now, asked, &terms(1)).datagram,
                Incoming::Nothing => panic!("a hello in vain"),
            };
            if !lost() {
                answers.push_back((now.saturating_add(ONE_WAY), answer));
            }
        } else if let Some(error) = here.handle_timeout(now) {
            return Err(error);
        }
        if let Some(hello) = here.poll_transmit(now)
            && !lost()
        {
            hellos.push_back((now.saturating_add(ONE_WAY), hello.to_vec()));
        }
    }
    Err(HandshakeError::NoAnswer)
}

#[test]
fn initiator__opens_where_three_of_ten_are_lost_both_ways() {
    let mut random = SecureRandom::new([7; 32], 0);
    let attempts: Vec<_> = (1..=1000).map(|nonce| attempt(&mut random, nonce)).collect();
    let failed = attempts.iter().filter(|outcome| outcome.is_err()).count();
    assert!(failed <= 5, "{failed} of 1000 attempts failed");
    let mut took: Vec<_> = attempts.into_iter().flatten().collect();
    took.sort();
    assert!(took[500] < ms(700) && took[900] < ms(2500), "half within {:?}, 90 % within {:?}", took[500], took[900]);
}
