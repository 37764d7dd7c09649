//! Constants of schemes, some of which are options.

/// Declares the constants of a rule with their values, which may read the scheme's options; and the constructor
/// `from_options`, with `Default` for no options.
macro_rules! config {
    (
        $(#[$meta:meta])*
        pub struct $name:ident($options:ident) {
            $($(#[$field_meta:meta])* pub $field:ident: $type:ty = $value:expr,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self::from_options(&$crate::scheme::option::Options::default())
            }
        }

        impl $name {
            /// The options that were set, else the defaults.
            pub fn from_options($options: &$crate::scheme::option::Options) -> Self {
                Self { $($field: $value,)* }
            }
        }
    };
}

pub(crate) use config;
