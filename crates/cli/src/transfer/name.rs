//! Names of files in JSON: not necessarily text.

use data_encoding::BASE64;
use fairwave_files::escaped;
use serde::Serialize;

/// A name in JSON.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Name {
    /// The name; what is not UTF-8 is escaped.
    name: String,
    /// Its bytes, where they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    name_base64: Option<String>,
}

impl Name {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self { name: text.to_owned(), name_base64: None },
            Err(_) => Self { name: escaped(bytes), name_base64: Some(BASE64.encode(bytes)) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of__bytes_that_are_no_text_come_twice() {
        let json = |bytes: &[u8]| serde_json::to_string(&Name::of(bytes)).unwrap();
        assert_eq!(json("gr\u{fc}n".as_bytes()), "{\"name\":\"gr\u{fc}n\"}");
        assert_eq!(json(b"a\xffb"), r#"{"name":"a\\xffb","name_base64":"Yf9i"}"#);
        // No escape reaches a terminal raw.
        assert_eq!(json(b"\x1b[2J"), r#"{"name":"\u001b[2J"}"#);
    }
}
