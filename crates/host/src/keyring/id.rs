//! A ticket's name as text.

use fairwave_proto::codec::TicketId;

/// A ticket's name as people see it: no secret.
pub fn id_text(id: TicketId) -> String {
    format!("{:016x}", id.0)
}

/// Reads what [`id_text`] wrote.
pub fn read_id(text: &str) -> Option<TicketId> {
    let is_hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(text, 16).ok().map(TicketId))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_id__takes_what_id_text_wrote() {
        assert_eq!(read_id(&id_text(TicketId(0xab))), Some(TicketId(0xab)));
        for wrong in ["", "12", "+000000000000012", "00000000000000zz"] {
            assert_eq!(read_id(wrong), None, "{wrong}");
        }
    }
}
