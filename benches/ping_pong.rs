//! `cargo bench --bench ping_pong`: see `src/suite/ping_pong.rs`.
syscost::bench_group!();
