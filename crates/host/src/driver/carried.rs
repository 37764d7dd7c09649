//! Traffic of tunnels.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

use fairwave_proto::codec::{CloseReason, SessionId};
use fairwave_proto::{Ecn, Packet, Transmit, tunnel_of};
use fairwave_units::Time;

use super::framing::frame_at;
use super::inbox::DatagramPath;
use super::outbox::seal_data;
use super::run::Driver;
use super::tunnel::Broken;
use super::tunnels::TunnelNews;

/// Read of a tunnel at a time.
const READ_BYTES: usize = 128 << 10;

impl Driver {
    /// Takes what has come by tunnels: whether there may be more.
    pub(super) fn receive_by_tunnels(&mut self, now: Time) -> bool {
        if self.tunnels.readiness().is_none() {
            return false;
        }
        let mut readable = Vec::new();
        self.tunnels.poll(now, &mut readable);
        if readable.is_empty() {
            return false;
        }
        let mut room = std::mem::take(&mut self.tunnel_room);
        room.resize(READ_BYTES, 0);
        let mut is_more = false;
        for number in readable {
            is_more |= self.receive_by(now, number, &mut room);
        }
        self.tunnel_room = room;
        is_more
    }

    /// Takes what has come by one of them: whether there may be more.
    fn receive_by(&mut self, now: Time, number: NonZeroU32, room: &mut [u8]) -> bool {
        let Some(tunnel) = self.tunnels.get_mut(number) else { return false };
        let from = tunnel.address;
        let (length, mut over) = match tunnel.read(room) {
            Ok(length) => (length, None),
            Err((length, why)) => (length, Some(why)),
        };
        // Overflow of the UDP socket is judged only by what arrives there.
        let read = self.arrivals.read;
        let mut at = 0;
        while let Some(bytes) = room.get_mut(..length) {
            match frame_at(bytes, at, self.tunnels.most()) {
                Ok(Some(frame)) => {
                    at = frame.end;
                    let datagram = &mut bytes[frame];
                    let Some(tunnel) = self.tunnels.get_mut(number) else { break };
                    if !tunnel.may_say(datagram) {
                        over = Some(Broken::Nonsense);
                        break;
                    }
                    self.on_datagram(now, DatagramPath { from, to: None, ecn: Ecn::NotCapable }, datagram);
                }
                Ok(None) => {
                    if let Some(tunnel) = self.tunnels.get_mut(number) {
                        tunnel.keep(bytes.get(at..).unwrap_or_default());
                    }
                    break;
                }
                Err(_) => {
                    over = Some(Broken::Nonsense);
                    break;
                }
            }
        }
        self.arrivals.read = read;
        self.tunnels.on_read(number, over);
        length == room.len()
    }

    /// Does what follows from what happened to tunnels.
    pub(super) fn take_tunnel_news(&mut self, now: Time) {
        for news in self.tunnels.news() {
            match news {
                TunnelNews::Connected(number) => {
                    self.attempts.connected(now, number, &mut self.host, &mut self.tunnels);
                }
                TunnelNews::Released(session) => self.host.hold(now, session, false),
                TunnelNews::Over(number, why) => {
                    let entries = self.entries.iter().filter(|entry| entry.tunnel == Some(number));
                    let sessions: Vec<SessionId> = entries.map(|entry| entry.session.id()).collect();
                    for session in sessions {
                        self.host.close(now, session, CloseReason::Cut);
                    }
                    self.attempts.tunnel_over(now, number, &why, &mut self.host, &mut self.tunnels);
                }
            }
        }
    }

    /// Puts a packet into a tunnel. One that finds no room is lost, as any packet may get lost.
    pub(super) fn send_by_tunnel(&mut self, now: Time, number: NonZeroU32, transmit: &Transmit) {
        let length = transmit.packet.datagram_bytes();
        let wire_bytes = u64::from(length + self.host.lower_bytes(transmit.to));
        let length = length as usize;
        match (&transmit.packet, transmit.session) {
            (Packet::Data(packet), Some(session)) => {
                let Some(tunnel) = self.tunnels.get_mut(number) else { return };
                let Some(entry) = self.entries.get_mut(session) else { return };
                if let Some(room) = tunnel.room(length) {
                    let sealed = seal_data(packet, &mut entry.data.sealer, entry.handler.as_mut(), room);
                    if let Err(reason) = sealed {
                        tunnel.take_back(length);
                        return self.host.withdraw(now, session, packet, reason);
                    }
                    entry.sent_wire_bytes += wire_bytes;
                }
                if self.tunnels.on_put(number) {
                    self.host.hold(now, session, true);
                    if let Some(tunnel) = self.tunnels.get_mut(number) {
                        tunnel.hold(session);
                    }
                }
            }
            (Packet::Control(packet), Some(session)) => {
                if let Some(entry) = self.entries.get_mut(session) {
                    entry.sent_wire_bytes += wire_bytes;
                    self.tunnels.put_control(number, packet, &mut entry.control.sealer);
                } else if let Some(keys) = self.host.keys_mut(session) {
                    // One of its last.
                    self.tunnels.put_control(number, packet, keys.closing());
                }
            }
            (Packet::Handshake(bytes), _) => self.tunnels.put(number, bytes),
            (_, None) => {}
        }
    }

    /// Sends a datagram that no session seals to where it belongs.
    pub(super) fn send_plain(&mut self, (source, to): (Option<IpAddr>, SocketAddr), bytes: &[u8]) {
        if let Some(number) = tunnel_of(to) {
            self.tunnels.put(number, bytes);
        } else {
            self.socket.send((source, to), bytes, bytes.len());
        }
    }
}
