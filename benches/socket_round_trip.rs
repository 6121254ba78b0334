//! `cargo bench --bench socket_round_trip`: see `src/suite/socket_round_trip.rs`.
syscost::bench_group!();
