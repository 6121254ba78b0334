//! Which cases are points of a curve: the ids that begin alike and end in a size or a number. A series is one line
//! here, and its group need not know.

use crate::case::Group;
use crate::record::{Axis, Curve, Study};

use Axis::{Bytes, Count, Mebibytes, Others};
use Study::{Fall, Levels};

/// All curves. Those of a group and of one chart are drawn together.
#[rustfmt::skip]
pub const CURVES: &[Curve] = &[
    Curve::new("chase/random-huge/", "random order, huge pages", Bytes("size of the ring")).study(Levels).chart("latency"),
    Curve::new("chase/random/", "random order, 4 KiB pages", Bytes("size of the ring")).study(Levels).chart("latency"),
    Curve::new("chase/within-pages/", "random order within pages", Bytes("size of the ring")).chart("latency"),
    Curve::new("chase/stride-64/", "stride 64", Bytes("size of the ring")).chart("latency"),
    Curve::new("chase/tlb-4KiB/", "a line of each page", Bytes("size of the ring")).figure("walk").chart("page walk"),
    Curve::new("chase/parallel-256MiB/", "each of the chains", Count("chains at once")).figure("load"),
    Curve::new("chase/loaded-256MiB/", "a load", Others("CPUs that load the bus")).chart("loaded latency"),
    Curve::new("bandwidth/read/", "read", Bytes("size")).figure("bandwidth"),
    Curve::new("bandwidth/write/", "write", Bytes("size")).figure("bandwidth"),
    Curve::new("bandwidth/copy/", "copy", Bytes("size")).figure("bandwidth"),
    Curve::new("bandwidth/write-nt/", "write past the caches", Bytes("size")).figure("bandwidth"),
    Curve::new("bandwidth/memcpy/", "memcpy", Bytes("size")).figure("bandwidth"),
    Curve::new("bandwidth/memset/", "memset", Bytes("size")).figure("bandwidth"),
    Curve::new("bandwidth/triad/", "triad", Bytes("size")).figure("bandwidth"),
    Curve::new("bandwidth/read-all/", "read", Bytes("size on each CPU")).figure("bandwidth").chart("bandwidth of all CPUs"),
    Curve::new("bandwidth/write-all/", "write", Bytes("size on each CPU")).figure("bandwidth").chart("bandwidth of all CPUs"),
    Curve::new("bandwidth/copy-all/", "copy", Bytes("size on each CPU")).figure("bandwidth").chart("bandwidth of all CPUs"),
    Curve::new("mapping/map/", "mmap and munmap", Bytes("memory")),
    Curve::new("mapping/mprotect/", "mprotect", Bytes("memory")),
    Curve::new("mapping/dontneed/", "madvise", Bytes("memory")),
    Curve::new("mapping/populate/", "populate", Bytes("memory")),
    Curve::new("mapping/first-touch/", "first touch", Bytes("memory")),
    Curve::new("context_switch/processes-2/", "2 processes", Bytes("memory of each")),
    Curve::new("context_switch/processes-4/", "4 processes", Bytes("memory of each")),
    Curve::new("context_switch/processes-8/", "8 processes", Bytes("memory of each")),
    Curve::new("context_switch/processes-16/", "16 processes", Bytes("memory of each")),
    Curve::new("context_switch/processes-32/", "32 processes", Bytes("memory of each")),
    Curve::new("context_switch/processes-96/", "96 processes", Bytes("memory of each")),
    Curve::new("scale/getppid-processes/", "getppid, processes", Count("processes or threads at once")).figure("efficiency").start(1, 1.0),
    Curve::new("scale/getppid-threads/", "getppid, threads", Count("processes or threads at once")).figure("efficiency").start(1, 1.0),
    Curve::new("scale/pipe-processes/", "pipe, processes", Count("processes or threads at once")).figure("efficiency").start(1, 1.0),
    Curve::new("scale/pipe-threads/", "pipe, threads", Count("processes or threads at once")).figure("efficiency").start(1, 1.0),
    Curve::new("scale/fresh-page-processes/", "fresh page, processes", Count("processes or threads at once")).figure("efficiency").start(1, 1.0),
    Curve::new("scale/fresh-page-threads/", "fresh page, threads", Count("processes or threads at once")).figure("efficiency").start(1, 1.0),
    Curve::new("scale/open-close-processes/", "open and close, processes", Count("processes or threads at once")).figure("efficiency").start(1, 1.0),
    Curve::new("scale/open-close-threads/", "open and close, threads", Count("processes or threads at once")).figure("efficiency").start(1, 1.0),
    Curve::new("fork/touched-mib/", "touched memory", Mebibytes("memory of the parent")),
    Curve::new("fork/returns-mib/", "touched memory, until fork returns", Mebibytes("memory of the parent")),
    Curve::new("fork/huge-mib/", "the same in huge pages", Mebibytes("memory of the parent")),
    Curve::new("fork/mappings/", "mappings", Count("mappings")).chart("mappings"),
    Curve::new("socket_bandwidth/pipe/", "pipe", Bytes("message")).figure("bandwidth"),
    Curve::new("socket_bandwidth/unix-stream/", "unix stream", Bytes("message")).figure("bandwidth"),
    Curve::new("socket_bandwidth/tcp/", "TCP", Bytes("message")).figure("bandwidth"),
    Curve::new("socket_bandwidth/udp/", "UDP", Bytes("message")).figure("bandwidth"),
    Curve::new("socket_bandwidth/sendfile/", "sendfile", Bytes("message")).figure("bandwidth"),
    Curve::new("socket_bandwidth/splice/", "splice", Bytes("message")).figure("bandwidth"),
    Curve::new("socket_bandwidth/zerocopy/", "zero copy", Bytes("message")).figure("bandwidth"),
    Curve::new("displacement/loopback/", "loopback", Bytes("message")).chart("CPU time"),
    Curve::new("displacement/steered/", "steered", Bytes("message")).chart("CPU time"),
    Curve::new("displacement/nodes/", "between namespaces", Bytes("message")).chart("CPU time"),
    Curve::new("direct_read/sequential-by-file/", "sequential", Bytes("file")).figure("bandwidth").chart("bandwidth by file"),
    Curve::new("direct_read/random-by-file/", "random", Bytes("file")).figure("bandwidth").chart("bandwidth by file"),
    Curve::new("direct_read/sequential/", "sequential", Bytes("block")).figure("bandwidth").chart("bandwidth by block"),
    Curve::new("direct_read/random/", "random", Bytes("block")).figure("bandwidth").chart("bandwidth by block"),
    Curve::new("direct_read/write/", "written", Bytes("block")).figure("bandwidth").chart("bandwidth by block"),
    Curve::new("direct_read/write-dsync/", "written for good", Bytes("block")).figure("bandwidth").chart("bandwidth by block"),
    Curve::new("direct_read/uring-depth/", "io_uring", Count("in flight")).figure("rate"),
    Curve::new("direct_read/threads-depth/", "threads", Count("in flight")).figure("rate"),
    Curve::new("cached_read/read/", "read", Bytes("block")).figure("bandwidth"),
    Curve::new("cached_read/pread/", "pread", Bytes("block")).figure("bandwidth"),
    Curve::new("cached_read/mmap/", "mmap", Bytes("block")).figure("bandwidth"),
    Curve::new("cached_read/copy-file-range/", "copy_file_range", Bytes("block")).figure("bandwidth"),
    Curve::new("cached_read/pread-by-file/", "pread", Bytes("file")).figure("bandwidth").chart("bandwidth by file"),
    Curve::new("cached_read/file-cache-in-64MiB/", "in 64 MiB of memory", Bytes("file")).figure("bandwidth").chart("file cache in 64 MiB").study(Fall),
    Curve::new("cached_read/file-cache-in-1GiB/", "in 1 GiB of memory", Bytes("file")).figure("bandwidth").chart("file cache in 1 GiB").study(Fall),
    Curve::new("file_ops/create/", "create", Count("entries")),
    Curve::new("file_ops/open/", "open", Count("entries")),
    Curve::new("file_ops/stat/", "stat", Count("entries")),
    Curve::new("file_ops/rename/", "rename", Count("entries")),
    Curve::new("file_ops/unlink/", "unlink", Count("entries")),
    Curve::new("file_ops/mkdir/", "mkdir", Count("entries")),
    Curve::new("contention/others/", "a block", Count("other readers")),
    Curve::new("remote_read/sequential-by-file/", "sequential", Bytes("file")).figure("bandwidth"),
    Curve::new("remote_read/random-by-file/", "random", Bytes("file")).figure("bandwidth"),
];

impl Group {
    /// The curves through its cases.
    pub fn curves(&self) -> impl Iterator<Item = &'static Curve> {
        CURVES.iter().filter(|curve| curve.prefix.split('/').next() == Some(self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::GROUPS;

    #[test]
    fn every_curve_has_cases_and_no_two_have_the_same() {
        let ids: Vec<String> = GROUPS
            .iter()
            .flat_map(|group| (group.cases)().iter().map(|case| group.id(case)).collect::<Vec<_>>())
            .collect();
        for (at, curve) in CURVES.iter().enumerate() {
            let points = ids.iter().filter(|id| id.starts_with(curve.prefix)).count();
            assert!(points >= 2, "{} has {points} points", curve.prefix);
            assert!(curve.prefix.ends_with('/'), "{}: another series may begin alike", curve.prefix);
            assert!(CURVES[..at].iter().all(|other| other.prefix != curve.prefix), "{}", curve.prefix);
        }
    }
}
