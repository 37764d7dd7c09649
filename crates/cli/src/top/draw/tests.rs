use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::super::board::tests::{machine, process};
use super::*;

/// A screen of so many letters and lines after these looks, without the blanks at the ends of lines.
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

#[test]
fn draw__a_process_is_its_own_end_node() {
    let looks = of_one_process(&[[35.0, 70.0], [175.0, 140.0], [350.0, 175.0]]);
    let expected = "SNAPSHOT";
    assert_eq!(screen(150, 7, &looks, 0), expected);
}
