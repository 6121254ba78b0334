//! `cargo bench --bench socket_bandwidth`: see `src/suite/socket_bandwidth.rs`.
syscost::bench_group!();
