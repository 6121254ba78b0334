//! `cargo bench --bench remote_read`: see `src/suite/remote_read.rs`.
syscost::bench_group!();
