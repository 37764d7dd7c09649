use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::super::board::tests::{machine, process};
use super::*;

/// A screen of this size after these samples, without the blanks at the ends of lines.
fn screen(width: u16, height: u16, looks: &[Board], first: usize) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let mut trail = Trail::default();
    for board in looks {
        trail.add(board);
        terminal.draw(|frame| draw(frame, board, &trail, first)).unwrap();
    }
    let buffer = terminal.backend().buffer();
    let line = |y| {
        let letters = (0..width).map(|x| buffer[(x, y)].symbol());
        letters.collect::<String>().trim_end().to_owned() + "\n"
    };
    (0..height).map(line).collect()
}

fn of_one_process(rates: &[[f64; 2]]) -> Vec<Board> {
    let look = |rate: &[f64; 2]| {
        let [first, second] = *rate;
        Board::of_processes(&[process(&[(first, 350.0, None), (second, 350.0, Some(525.0))])])
    };
    rates.iter().map(look).collect()
}

/// Compares a screen with the reviewed one. On failure the new one is printed, to replace it after review.
fn check(found: &str, good: &str, place: &str) {
    assert!(found == good, "crates/cli/src/top/draw/{place} is\n{good}\nand the screen is\n{found}");
}

#[test]
fn draw__a_process_is_its_own_end_node() {
    let looks = of_one_process(&[[35.0, 70.0], [175.0, 140.0], [350.0, 175.0]]);
    check(&screen(150, 7, &looks, 0), include_str!("process.txt"), "process.txt");
}

#[test]
fn draw__a_machine_has_its_cards_and_the_sessions_of_all() {
    check(&screen(150, 6, &[Board::of_machine(&machine())], 0), include_str!("machine.txt"), "machine.txt");
}

#[test]
fn draw__leaves_out_what_has_no_room() {
    let looks = of_one_process(&[[350.0, 175.0]]);
    let screens: Vec<String> = [132, 100, 80, 60].map(|width| screen(width, 5, &looks, 0)).into();
    check(&screens.join("--\n"), include_str!("narrow.txt"), "narrow.txt");
    // A terminal of next to no size takes no harm.
    for (width, height) in [(1, 1), (0, 0), (3, 2), (20, 1), (1000, 2)] {
        screen(width, height, &looks, 0);
    }
}

#[test]
fn draw__scrolls_through_many_sessions() {
    let rates: Vec<_> = (0..100).map(|at| (f64::from(at), 7.0, None)).collect();
    let board = [Board::of_processes(&[process(&rates)])];
    // One line each for the title, the node, the heads and the legend: sixteen sessions are shown.
    let top = screen(150, 20, &board, 0);
    assert!(top.contains("84 more below") && top.contains("00000000000000a0".get(..8).unwrap()), "{top}");
    let below = screen(150, 20, &board, 90);
    assert!(!below.contains("more below") && below.contains("99.00 Mb/s"), "{below}");
}

#[test]
fn draw__takes_what_a_terminal_obeys_out_of_others_words() {
    let mut board = Board::of_machine(&machine());
    board.sessions[0].process = "put\x1b[2J 78".into();
    let text = screen(150, 6, &[board], 0);
    assert!(!text.contains('\x1b') && text.contains("put\\u{1b}[2J"), "{text}");
}
