//! A trace as pcapng, for Wireshark and its kin: <https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-03.html>.
//!
//! Three kinds of blocks, little endian, are enough: a section header; an interface description a link, when its first
//! packet comes; an enhanced packet block a packet, as it enters a link, with only the headers captured. Dropped
//! packets have a comment.

use std::collections::BTreeMap;
use std::io::{self, Write};

use fairwave_scenario::{Scenario, TraceEvent, TraceKind, TraceLink};

use super::headers::Headers;

/// Writes the blocks.
pub(super) struct Pcapng<'a> {
    out: &'a mut dyn Write,
    /// By link: the number of its interface, in order of description.
    interfaces: BTreeMap<u32, u32>,
    headers: Headers,
    body: Vec<u8>,
}

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
/// Packets start with their IP header.
const LINKTYPE_RAW: u16 = 101;
/// More than the longest headers.
const SNAP_LENGTH: u32 = 128;

const COMMENT: u16 = 1;
const SECTION_USER_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_SPEED: u16 = 8;
const INTERFACE_RESOLUTION: u16 = 9;
/// Time stamps in units of 10^-9 s.
const NANOSECONDS: u8 = 9;

impl<'a> Pcapng<'a> {
    pub(super) fn begin(scenario: &Scenario, out: &'a mut dyn Write) -> io::Result<Self> {
        let (interfaces, headers) = (BTreeMap::new(), Headers::default());
        let mut this = Self { out, interfaces, headers, body: Vec::new() };
        this.body.extend_from_slice(&BYTE_ORDER_MAGIC.to_le_bytes());
        this.body.extend_from_slice(&[1, 0, 0, 0]); // version 1.0
        this.body.extend_from_slice(&u64::MAX.to_le_bytes()); // the section's length: unknown
        let variant = scenario.variant.as_deref().map_or(String::new(), |variant| format!(", variant \"{variant}\""));
        let about = format!(
            "scenario {}{variant}, scheme {}, seed {}",
            scenario.name, scenario.scheme.scheme.name, scenario.seed
        );
        this.option(COMMENT, about.as_bytes());
        this.option(SECTION_USER_APPLICATION, concat!("Fairwave ", env!("CARGO_PKG_VERSION")).as_bytes());
        this.end_options();
        this.block(SECTION_HEADER)?;
        Ok(this)
    }

    /// Writes the packet of an event, if it happens at a link.
    pub(super) fn write(&mut self, scenario: &Scenario, event: &TraceEvent<'_>) -> io::Result<()> {
        let Some(link) = event.link else { return Ok(()) };
        let interface = match self.interfaces.get(&link.index) {
            Some(interface) => *interface,
            None => self.describe(link)?,
        };
        self.headers.set(scenario, event);
        let nanos = event.time.as_nanos();
        let captured = self.headers.bytes.len() as u32;
        for word in [interface, (nanos >> 32) as u32, nanos as u32, captured, self.headers.length] {
            self.body.extend_from_slice(&word.to_le_bytes());
        }
        self.body.extend_from_slice(&self.headers.bytes);
        self.pad();
        let comment = match event.what {
            TraceKind::Dropped => Some("dropped by the queue"),
            TraceKind::Lost => Some("lost at random"),
            _ => None,
        };
        if let Some(comment) = comment {
            self.option(COMMENT, comment.as_bytes());
            self.end_options();
        }
        self.block(ENHANCED_PACKET)
    }

    fn describe(&mut self, link: TraceLink<'_>) -> io::Result<u32> {
        self.body.extend_from_slice(&LINKTYPE_RAW.to_le_bytes());
        self.body.extend_from_slice(&[0, 0]);
        self.body.extend_from_slice(&SNAP_LENGTH.to_le_bytes());
        self.option(INTERFACE_NAME, link.name.as_bytes());
        self.option(INTERFACE_SPEED, &(link.capacity_bps as u64).to_le_bytes());
        self.option(INTERFACE_RESOLUTION, &[NANOSECONDS]);
        self.end_options();
        self.block(INTERFACE_DESCRIPTION)?;
        let interface = self.interfaces.len() as u32;
        self.interfaces.insert(link.index, interface);
        Ok(interface)
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.body.extend_from_slice(&code.to_le_bytes());
        self.body.extend_from_slice(&(value.len() as u16).to_le_bytes());
        self.body.extend_from_slice(value);
        self.pad();
    }

    fn end_options(&mut self) {
        self.body.extend_from_slice(&[0; 4]);
    }

    /// Fills up to whole words of 32 bits.
    fn pad(&mut self) {
        self.body.resize(self.body.len().next_multiple_of(4), 0);
    }

    /// Writes the body as a block: its length stands in front and behind.
    fn block(&mut self, kind: u32) -> io::Result<()> {
        let length = (self.body.len() as u32 + 12).to_le_bytes();
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length)?;
        self.out.write_all(&self.body)?;
        self.out.write_all(&length)?;
        self.body.clear();
        Ok(())
    }
}
