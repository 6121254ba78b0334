//! `cargo bench --bench syscall`: see `src/suite/syscall.rs`.
syscost::bench_group!();
