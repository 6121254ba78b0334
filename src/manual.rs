//! The manual, one module for each topic, with the text of `syscost help TOPIC`. The modules hold documentation and no code.

/// Makes a module for each topic, for the crate's documentation, and the list of all topics, for `syscost help`.
macro_rules! topics {
    ($($name:ident)*) => {
        $(
            #[doc = include_str!(concat!("manual/", stringify!($name), ".md"))]
            pub mod $name {}
        )*

        /// Name and text of each topic, in reading order.
        pub(crate) const TOPICS: [(&str, &str); [$(stringify!($name)),*].len()] =
            [$((stringify!($name), include_str!(concat!("manual/", stringify!($name), ".md")))),*];
    };
}

topics! {
    glossary method clock claims comparing reboots guests instructions why machines ci counts commands
    tracking histories records series events html curves copies remote displacement counters
    techniques library layout elsewhere limits
}
