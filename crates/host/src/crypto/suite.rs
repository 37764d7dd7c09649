//! The ciphers of packets.

/// Which ciphers a session has; the handshake is the same in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suite {
    /// Packets under AES-128-GCM.
    Aes,
    /// Packets under ChaCha20-Poly1305, for machines without AES instructions.
    ChaCha,
}

impl Suite {
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Aes),
            2 => Some(Self::ChaCha),
            _ => None,
        }
    }

    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Aes => 1,
            Self::ChaCha => 2,
        }
    }

    /// The faster one on this machine.
    pub(crate) fn of_this_machine() -> Self {
        #[cfg(target_arch = "x86_64")]
        let has_aes = std::arch::is_x86_feature_detected!("aes");
        #[cfg(target_arch = "aarch64")]
        let has_aes = std::arch::is_aarch64_feature_detected!("aes");
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let has_aes = false;
        if has_aes { Self::Aes } else { Self::ChaCha }
    }
}
