//! A look at sessions and capacities as a screen full of text.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};

use super::board::{Board, NodeLine, SessionLine, Trail};
use crate::common::quantity::rate;
use crate::common::terminal::tamed;

/// Widths: of a name of a node, a session's process and way, a number, and the last looks.
const NAME: u16 = 26;
const PROCESS: u16 = 14;
const WAY: u16 = 24;
const NUMBER: u16 = 12;
const LIMITED: u16 = 13;
const LOOKS: u16 = 16;
const MIN_BAR: u16 = 10;

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const LEGEND: &str = "█ measured  ▒ expected  · desired      q ends, arrows scroll";

/// Draws a look, with the sessions from `first` on.
pub(super) fn draw(frame: &mut Frame<'_>, board: &Board, trail: &Trail, first: usize) {
    let nodes = u16::try_from(board.nodes.len()).unwrap_or(u16::MAX).min(frame.area().height / 2);
    let rows = [
        Constraint::Length(1),
        Constraint::Length(nodes),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ];
    let [about, of_nodes, heads, of_sessions, legend] = Layout::vertical(rows).areas(frame.area());
    let title = Line::from(vec![Span::styled("fairwave top  ", BOLD), Span::raw(tamed(&board.about))]);
    frame.render_widget(Paragraph::new(title), about);
    for (line, node) in lines(of_nodes).zip(&board.nodes) {
        draw_node(frame, line, node, trail);
    }
    let columns = Columns::of(heads.width);
    columns.draw_heads(frame, heads);
    let shown: Vec<_> = board.sessions.iter().skip(first).collect();
    for (line, session) in lines(of_sessions).zip(&shown) {
        columns.draw_session(frame, line, session, trail);
    }
    if board.sessions.is_empty() {
        frame.render_widget(Paragraph::new("no sessions"), of_sessions);
    }
    let hidden = shown.len().saturating_sub(usize::from(of_sessions.height));
    let more = if hidden > 0 { format!("{hidden} more below      ") } else { String::new() };
    frame.render_widget(Paragraph::new(Line::styled(format!("{more}{LEGEND}"), DIM)), legend);
}

/// The lines of a part of the screen, from the top.
fn lines(area: Rect) -> impl Iterator<Item = Rect> {
    (0..area.height).map(move |at| Rect { y: area.y + at, height: 1, ..area })
}

fn draw_node(frame: &mut Frame<'_>, line: Rect, node: &NodeLine, trail: &Trail) {
    let widths = [Constraint::Length(NAME), Constraint::Length(LOOKS), Constraint::Length(1), Constraint::Min(0)];
    let [name, looks, _, says] = Layout::horizontal(widths).areas(line);
    frame.render_widget(Paragraph::new(tamed(&node.name)), name);
    draw_looks(frame, looks, trail, &node.name, node.capacity_bps.unwrap_or(0.0));
    let of = node.capacity_bps.map_or_else(|| "of unknown capacity".into(), |bps| format!("of {}", rate(bps)));
    let gap = node.gap_to_max_min.map_or(String::new(), |gap| format!(", gap to max-min {:.1} %", gap * 100.0));
    let other = node.other_bps.map_or(String::new(), |bps| format!(", others {}", rate(bps)));
    let sessions = if node.sessions == 1 { "session" } else { "sessions" };
    let words = format!("{} {of}, {} {sessions}{gap}{other}", rate(node.measured_bps), node.sessions);
    frame.render_widget(Paragraph::new(words), says);
}

fn draw_looks(frame: &mut Frame<'_>, area: Rect, trail: &Trail, name: &str, capacity_bps: f64) {
    let looks: Vec<u64> = trail.of(name, usize::from(area.width)).collect();
    // Relative to the capacity, if known: a curve relative to its own maximum would mean nothing.
    let most = (capacity_bps as u64).max(looks.iter().copied().max().unwrap_or(1)).max(1);
    frame.render_widget(Sparkline::default().data(looks).max(most), area);
}

/// The columns of a session that fit into a line.
#[expect(clippy::struct_excessive_bools, reason = "each column is there or not")]
struct Columns {
    bar: u16,
    has_target: bool,
    has_desired: bool,
    has_way: bool,
    has_looks: bool,
}

impl Columns {
    /// In the order in which they are left out where a line is short.
    fn of(width: u16) -> Self {
        let mut columns = Self { bar: 0, has_target: true, has_desired: true, has_way: true, has_looks: true };
        for leave in 0..=4 {
            match leave {
                1 => columns.has_target = false,
                2 => columns.has_way = false,
                3 => columns.has_looks = false,
                4 => columns.has_desired = false,
                _ => {}
            }
            let fixed: u16 = columns.widths().iter().map(|width| width + 1).sum();
            columns.bar = width.saturating_sub(fixed);
            if columns.bar >= MIN_BAR {
                break;
            }
        }
        columns
    }

    /// All but the bar's.
    fn widths(&self) -> [u16; 9] {
        let has = |is_there, width| if is_there { width } else { 0 };
        [
            8,
            PROCESS,
            has(self.has_way, WAY),
            has(self.has_looks, LOOKS),
            NUMBER,
            NUMBER,
            has(self.has_target, NUMBER),
            has(self.has_desired, NUMBER),
            LIMITED,
        ]
    }

    /// The areas: name, process, direction, bar, samples, measured, expected, target, desired, limited by.
    fn areas(&self, line: Rect) -> [Rect; 10] {
        let [id, process, way, looks, measured, expected, target, desired, limited] = self.widths();
        let mut x = line.x;
        [id, process, way, self.bar, looks, measured, expected, target, desired, limited].map(|width| {
            let begin = x.min(line.right());
            let area = Rect { x: begin, width: width.min(line.right() - begin), ..line };
            x = x.saturating_add(width + u16::from(width > 0));
            area
        })
    }

    fn draw_heads(&self, frame: &mut Frame<'_>, line: Rect) {
        let heads = ["session", "process", "way", "", "", "measured", "expected", "target", "desired", "limited by"];
        for ((at, area), head) in self.areas(line).into_iter().enumerate().zip(heads) {
            let text = Line::styled(head, BOLD);
            let is_number = (5..=8).contains(&at);
            frame.render_widget(Paragraph::new(if is_number { text.right_aligned() } else { text }), area);
        }
    }

    fn draw_session(&self, frame: &mut Frame<'_>, line: Rect, session: &SessionLine, trail: &Trail) {
        let [id, process, way, in_bar, looks, measured, expected, target, desired, limited] = self.areas(line);
        // Names and words are others': what a terminal obeys is taken out.
        for (area, words) in [
            (id, session.id.as_str()),
            (process, session.process.as_str()),
            (way, session.way.as_str()),
            (limited, session.limited_by.as_str()),
        ] {
            frame.render_widget(Paragraph::new(tamed(words)), area);
        }
        frame.render_widget(Paragraph::new(bar(session, in_bar.width)), in_bar);
        draw_looks(frame, looks, trail, &session.key, session.capacity_bps);
        for (area, bps) in [
            (measured, Some(session.measured_bps)),
            (expected, session.expected_bps),
            (target, session.target_bps),
            (desired, session.desired_bps),
        ] {
            let words = bps.map_or_else(|| "-".into(), rate);
            frame.render_widget(Paragraph::new(Line::raw(words).right_aligned()), area);
        }
    }
}

/// The rates of a session as one bar, over the capacity of its node: what it uses, behind that what it is granted, and
/// behind that what it wants.
fn bar(session: &SessionLine, width: u16) -> String {
    let letters = |bps: f64| {
        let share = if session.capacity_bps > 0.0 { bps / session.capacity_bps } else { 0.0 };
        (share.clamp(0.0, 1.0) * f64::from(width)).round() as usize
    };
    let measured = letters(session.measured_bps);
    let expected = letters(session.expected_bps.unwrap_or(0.0)).max(measured);
    let desired = session.desired_bps.map_or(0, letters).max(expected);
    "█".repeat(measured) + &"▒".repeat(expected - measured) + &"·".repeat(desired - expected)
}

#[cfg(test)]
mod tests;
