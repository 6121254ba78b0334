//! `cargo bench --bench wait`: see `src/suite/wait.rs`.
syscost::bench_group!();
