//! `cargo bench --bench socket_connect`: see `src/suite/socket_connect.rs`.
syscost::bench_group!();
