//! `cargo bench --bench call`: see `src/suite/call.rs`.
syscost::bench_group!();
