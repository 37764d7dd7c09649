//! The terminal as a screen.

use std::io;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::board::{Board, Trail};
use super::draw::draw;
use crate::common::interrupt;

/// The terminal, taken over until this is dropped.
pub(super) struct Screen {
    terminal: DefaultTerminal,
    trail: Trail,
    board: Board,
    /// The first session that is shown.
    first: usize,
}

/// A user's command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UserCommand {
    End,
    Scroll(isize),
    Redraw,
    Nothing,
}

/// Max delay until an interrupt is noticed.
const SOON: Duration = Duration::from_millis(100);

impl Screen {
    /// Takes the terminal over.
    pub(super) fn take() -> io::Result<Self> {
        let terminal = ratatui::try_init()?;
        Ok(Self { terminal, trail: Trail::default(), board: Board::default(), first: 0 })
    }

    /// Shows a look.
    pub(super) fn show(&mut self, board: Board) -> io::Result<()> {
        self.trail.add(&board);
        self.board = board;
        self.draw()
    }

    fn draw(&mut self) -> io::Result<()> {
        self.first = self.first.min(self.board.sessions.len().saturating_sub(1));
        let Self { terminal, trail, board, first } = self;
        terminal.draw(|frame| draw(frame, board, trail, *first)).map(|_| ())
    }

    /// Waits for this time, and executes the user's commands during it; returns whether to continue.
    pub(super) fn wait(&mut self, span: Duration) -> io::Result<bool> {
        let begin = Instant::now();
        loop {
            if interrupt::is_asked() {
                return Ok(false);
            }
            let left = span.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Ok(true);
            }
            if !event::poll(left.min(SOON))? {
                continue;
            }
            match user_command(&event::read()?) {
                UserCommand::End => return Ok(false),
                UserCommand::Scroll(by) => {
                    self.first = self.first.saturating_add_signed(by);
                    self.draw()?;
                }
                UserCommand::Redraw => self.draw()?,
                UserCommand::Nothing => {}
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

fn user_command(event: &Event) -> UserCommand {
    let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press | KeyEventKind::Repeat, .. }) = event else {
        return if matches!(event, Event::Resize(..)) { UserCommand::Redraw } else { UserCommand::Nothing };
    };
    match code {
        KeyCode::Char('q') | KeyCode::Esc => UserCommand::End,
        // The terminal hands it over in place of the signal.
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => UserCommand::End,
        KeyCode::Up | KeyCode::Char('k') => UserCommand::Scroll(-1),
        KeyCode::Down | KeyCode::Char('j') => UserCommand::Scroll(1),
        KeyCode::PageUp => UserCommand::Scroll(-10),
        KeyCode::PageDown => UserCommand::Scroll(10),
        KeyCode::Home => UserCommand::Scroll(isize::MIN),
        _ => UserCommand::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_command__is_what_a_key_stands_for() {
        let key = |code, modifiers| user_command(&Event::Key(KeyEvent::new(code, modifiers)));
        assert_eq!(key(KeyCode::Char('q'), KeyModifiers::NONE), UserCommand::End);
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), UserCommand::End);
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::NONE), UserCommand::Nothing);
        assert_eq!(key(KeyCode::Down, KeyModifiers::NONE), UserCommand::Scroll(1));
        assert_eq!(key(KeyCode::PageUp, KeyModifiers::NONE), UserCommand::Scroll(-10));
        assert_eq!(user_command(&Event::Resize(80, 24)), UserCommand::Redraw);
        assert_eq!(user_command(&Event::FocusGained), UserCommand::Nothing);
    }
}
