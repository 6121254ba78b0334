//! `cargo bench --bench page_fault`: see `src/suite/page_fault.rs`.
syscost::bench_group!();
