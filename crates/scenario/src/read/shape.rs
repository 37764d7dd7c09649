//! The shape of a text's tree, from its tokens only: a tree that is too deep or too large is rejected before it is
//! built, since building and dropping it would take stack and memory in proportion.

use toml_parser::Source;
use toml_parser::lexer::TokenKind;

use super::mistake::{Mistake, ReadResult};
use super::position::{LineStarts, Position};
use crate::limits;

/// Rejects text that is nested too deeply or has too many values.
///
/// For text that is not TOML it errs on the safe side: a bracket closed by the wrong one stays open here.
pub(super) fn check(text: &str, lines: &LineStarts) -> ReadResult<()> {
    let mut open: Vec<TokenKind> = Vec::new();
    let (mut dots, mut values) = (0_usize, 0_usize);
    for token in Source::new(text).lex() {
        let kind = token.kind();
        match kind {
            TokenKind::Dot => dots += 1,
            TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket => open.push(kind),
            TokenKind::RightSquareBracket if open.last() == Some(&TokenKind::LeftSquareBracket) => drop(open.pop()),
            TokenKind::RightCurlyBracket if open.last() == Some(&TokenKind::LeftCurlyBracket) => drop(open.pop()),
            _ => {}
        }
        values += usize::from(matches!(
            kind,
            TokenKind::Dot
                | TokenKind::Equals
                | TokenKind::Comma
                | TokenKind::LeftSquareBracket
                | TokenKind::LeftCurlyBracket
        ));
        let ends_key = !matches!(
            kind,
            TokenKind::Dot
                | TokenKind::Atom
                | TokenKind::BasicString
                | TokenKind::LiteralString
                | TokenKind::Whitespace
        );
        if ends_key {
            dots = 0;
        }
        if open.len() > limits::NESTING || dots > limits::NESTING {
            let place = Position::Line(lines.line(token.span().start()));
            let message = format!("tables and lists nest deeper than {}", limits::NESTING);
            return Err(Mistake::new(place, message, "a scenario needs at most four levels"));
        }
    }
    if values > limits::VALUES {
        let message = format!("{values} values, the limit is {}", limits::VALUES);
        return Err(Mistake::new(Position::File, message, MANY_FROM_ONE));
    }
    Ok(())
}

/// The hint for a file that is too large.
pub(crate) const MANY_FROM_ONE: &str =
    "use ranges (\"s{1..5}\"), count and [generate] to make many sessions and nodes from one table";
