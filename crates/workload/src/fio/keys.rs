//! Every key of fio 3.33 and what ssdlab does with it.
//!
//! One table, so that parsing, suggestions and `docs/workloads.md` cannot drift apart (a test compares them). The names
//! are those that `fio --cmdhelp=all` and `--enghelp` print, with the aliases of its option table.

use ssdlab_base::closest;

/// What a key does here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It shapes the requests; the text says how.
    Works(&'static str),
    /// It has no effect on a stream of block requests, and is accepted.
    NoEffect,
    /// It would change the requests, and is refused with this reason unless it has one of these values, which say
    /// what happens anyway.
    Unsupported {
        /// Values that ask for nothing.
        neutral: &'static [&'static str],
        /// Why, or what to use instead.
        reason: &'static str,
    },
}

/// One key of fio.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The name fio lists first.
    pub name: &'static str,
    /// Another name for it, or nothing.
    pub alias: &'static str,
    /// What it does here.
    pub support: Support,
}

const fn works(name: &'static str, alias: &'static str, meaning: &'static str) -> Key {
    Key { name, alias, support: Support::Works(meaning) }
}

const fn no_effect(name: &'static str, alias: &'static str) -> Key {
    Key { name, alias, support: Support::NoEffect }
}

const fn refused(
    name: &'static str,
    alias: &'static str,
    neutral: &'static [&'static str],
    reason: &'static str,
) -> Key {
    Key { name, alias, support: Support::Unsupported { neutral, reason } }
}

/// All keys: those that work, those without effect, those refused.
#[rustfmt::skip] // A table: one line for each key.
pub static KEYS: &[Key] = &[
    works("rw", "readwrite", "direction and pattern: `read`, `write`, `trim`, `randread`, `randwrite`, `randtrim`, `rw` (or `readwrite`), `randrw`, `trimwrite`, `randtrimwrite`; `randX:N` takes a new offset every N requests, `write:SIZE` leaves holes (or goes backwards with a negative size). Default `read`"),
    works("rw_sequencer", "", "what `randX:N` does between new offsets: `sequential` (default) or `identical`"),
    works("rwmixread", "", "percent of reads in a mix, default 50"),
    works("rwmixwrite", "", "percent of writes in a mix, default 50; the later of the two keys counts"),
    works("bs", "blocksize", "block size, for reads, writes and trims `bs=R,W,T`; default 4k; a multiple of 512"),
    works("bsrange", "blocksize_range", "block sizes drawn between two ends in multiples of the lower, `bsrange=4k-64k`, up to three ranges"),
    works("bssplit", "", "shares of block sizes, `bssplit=4k/60:64k/40`, up to three lists for reads, writes and trims; sizes are cut to multiples of the smallest"),
    works("bs_unaligned", "blocksize_unaligned", "sizes from a range need not be multiples of its lower end (here: any multiple of 512)"),
    works("bs_is_seq_rand", "", "the sizes for reads are used for sequential requests, those for writes for random ones"),
    works("ba", "blockalign", "random offsets are multiples of this, default, and with 0, the smallest block size; turns the random map off"),
    works("iodepth", "", "requests in flight for each job, default 1"),
    works("ioengine", "", "an engine of fio 3.33; see [engines](#engines)"),
    works("io_submit_mode", "", "`inline` (default: a job that waits for its rate first lets everything in flight complete) or `offload` (it does not)"),
    works("size", "", "region of the job, bytes or percent of the drive's user capacity; default, and with 0, the rest of the drive after `offset`; a share is rounded down to whole blocks"),
    works("io_size", "io_limit", "bytes to transfer in all, or percent of the region (above 100% is an extension); default, and with 0, the region"),
    works("offset", "fileoffset", "where the region starts, bytes or percent of the user capacity"),
    works("offset_increment", "", "added to `offset` once for each clone of `numjobs`, bytes or percent"),
    works("offset_align", "", "what an offset in percent is rounded up to, default the smallest block size"),
    works("number_ios", "", "stop after so many reads, writes and trims"),
    works("loops", "", "times to run the whole job, default 1"),
    works("numjobs", "", "clones of this job, each with its own depth and random numbers, default 1"),
    works("runtime", "timeout", "stop this long after the job started; a bare number is seconds"),
    works("time_based", "", "run for the whole `runtime`, starting over as often as needed"),
    works("startdelay", "", "wait this long from the start of the run, `5` or `5-10` (drawn); a bare number is seconds"),
    works("stonewall", "wait_for_previous", "wait until every job above has finished"),
    works("thinktime", "", "pause after requests, once everything in flight is done; a bare number is microseconds"),
    works("thinktime_blocks", "", "requests between pauses, default 1"),
    works("thinktime_blocks_type", "", "count requests when they `complete` (default) or when they are issued (`issue`)"),
    works("thinktime_iotime", "", "do requests for this long between pauses; a bare number is seconds"),
    works("rate", "", "bytes a second, for reads, writes and trims `rate=R,W,T`"),
    works("rate_iops", "", "requests a second, up to three as `rate`"),
    works("rate_process", "", "`linear` (default): evenly spaced; `poisson`: exponential gaps"),
    works("fsync", "", "a flush after every so many writes"),
    works("fdatasync", "", "as `fsync`: a drive knows one flush"),
    works("end_fsync", "", "a flush at the end of the job, if it writes"),
    works("fsync_on_close", "", "as `end_fsync`"),
    works("sync", "", "`sync` or `dsync` (or 1): every write is force unit access; `none` or 0"),
    works("randseed", "", "seed of this job's random numbers; default the run's seed"),
    works("norandommap", "", "random offsets may repeat before everything has been covered"),
    works("random_generator", "", "`lfsr`: random offsets do not repeat before everything has been covered, also with `norandommap`; `tausworthe` (default) and `tausworthe64` make no difference"),
    works("random_distribution", "", "`random` (default), `zipf:THETA[:CENTER]`, `pareto:POWER[:CENTER]`, `normal:DEVIATION[:CENTER]`, `zoned:ACCESS/SIZE:...` (percent; sizes may have fractions), `zoned_abs:ACCESS/BYTES:...`"),
    works("percentage_random", "", "percent of a random job's requests that are random, the rest go on from the last one; up to three values, default 100"),
    works("writefua", "", "with the engine `sg`: every write is force unit access"),
    works("write_hint", "", "write stream: `none` 0, `short` 1, `medium` 2, `long` 3, `extreme` 4"),
    works("zonemode", "", "`none`, `strided` (default with `zonesize`: I/O in zones with holes between them) or `zbd` (write pointers, resets): see [zones](#zones)"),
    works("zonesize", "", "`strided`: bytes to transfer in a zone before the next; `zbd`: bytes from the start of a zone to the start of the next, by default the drive's"),
    works("zonecapacity", "", "`zbd`: writable bytes of a zone, by default the drive's, or `zonesize`"),
    works("zonerange", "", "`strided`: the size of a zone, by default `zonesize`"),
    works("zoneskip", "", "bytes (or zones, `2z`) to skip between two zones; with `zbd` for sequential jobs only"),
    works("read_beyond_wp", "", "`zbd`: reads may go beyond write pointers"),
    works("max_open_zones", "", "`zbd`: most zones open at one time, over all jobs; by default the drive's limit"),
    works("job_max_open_zones", "", "`zbd`: most zones that one job can have open"),
    works("ignore_zone_limits", "", "`zbd`: `max_open_zones` may exceed the drive's limit"),
    works("zone_reset_threshold", "", "`zbd`: a share from 0 to 1; `zone_reset_frequency` applies while the job's zones hold at least this share of its region"),
    works("zone_reset_frequency", "", "`zbd`: a share from 0 to 1; the share of writes that reset their zone first"),
    works("kb_base", "", "1024 (default): `k` is 1024 and `kib` is 1000, as fio does; 1000: the other way round"),
    works("filename", "", "any one name: the drive is the file; several names (with `:`) are refused, and a note tells of jobs that name different files"),
    works("name", "", "names the job in a one-line specification"),
    no_effect("description", ""),
    no_effect("directory", ""),
    no_effect("filename_format", ""),
    no_effect("unique_filename", ""),
    no_effect("lockfile", ""),
    no_effect("openfiles", ""),
    no_effect("file_service_type", ""),
    no_effect("fallocate", ""),
    no_effect("fadvise_hint", ""),
    no_effect("direct", ""),
    no_effect("atomic", ""),
    no_effect("buffered", ""),
    no_effect("overwrite", ""),
    no_effect("clocksource", ""),
    no_effect("mem", "iomem"),
    no_effect("iomem_align", "mem_align"),
    no_effect("hugepage-size", ""),
    no_effect("invalidate", ""),
    no_effect("create_serialize", ""),
    no_effect("create_fsync", ""),
    no_effect("create_on_open", ""),
    no_effect("allow_file_create", ""),
    no_effect("allow_mounted_write", ""),
    no_effect("unlink", ""),
    no_effect("unlink_each_loop", ""),
    no_effect("write_iolog", ""),
    no_effect("lockmem", ""),
    no_effect("nice", ""),
    no_effect("prio", ""),
    no_effect("prioclass", ""),
    no_effect("cpumask", ""),
    no_effect("cpus_allowed", ""),
    no_effect("cpus_allowed_policy", ""),
    no_effect("numa_cpu_nodes", ""),
    no_effect("numa_mem_policy", ""),
    no_effect("gpu_dev_id", ""),
    no_effect("exit_what", ""),
    no_effect("exitall_on_error", ""),
    no_effect("new_group", ""),
    no_effect("thread", ""),
    no_effect("per_job_logs", ""),
    no_effect("write_bw_log", ""),
    no_effect("write_lat_log", ""),
    no_effect("write_iops_log", ""),
    no_effect("write_hist_log", ""),
    no_effect("log_entries", ""),
    no_effect("log_avg_msec", ""),
    no_effect("log_hist_msec", ""),
    no_effect("log_hist_coarseness", ""),
    no_effect("log_max_value", ""),
    no_effect("log_offset", ""),
    no_effect("log_prio", ""),
    no_effect("log_compression", ""),
    no_effect("log_compression_cpus", ""),
    no_effect("log_store_compressed", ""),
    no_effect("log_unix_epoch", ""),
    no_effect("log_alternate_epoch", ""),
    no_effect("log_alternate_epoch_clock_id", ""),
    no_effect("block_error_percentiles", ""),
    no_effect("bwavgtime", ""),
    no_effect("iopsavgtime", ""),
    no_effect("group_reporting", ""),
    no_effect("stats", ""),
    no_effect("zero_buffers", ""),
    no_effect("refill_buffers", ""),
    no_effect("scramble_buffers", ""),
    no_effect("buffer_pattern", ""),
    no_effect("buffer_compress_percentage", ""),
    no_effect("buffer_compress_chunk", ""),
    no_effect("dedupe_percentage", ""),
    no_effect("dedupe_global", ""),
    no_effect("dedupe_mode", ""),
    no_effect("dedupe_working_set_percentage", ""),
    no_effect("clat_percentiles", ""),
    no_effect("lat_percentiles", ""),
    no_effect("slat_percentiles", ""),
    no_effect("percentile_list", ""),
    no_effect("significant_figures", ""),
    no_effect("disk_util", ""),
    no_effect("gtod_reduce", ""),
    no_effect("gtod_cpu", ""),
    no_effect("disable_lat", ""),
    no_effect("disable_clat", ""),
    no_effect("disable_slat", ""),
    no_effect("disable_bw_measurement", "disable_bw"),
    no_effect("unified_rw_reporting", ""),
    no_effect("continue_on_error", ""),
    no_effect("ignore_error", ""),
    no_effect("error_dump", ""),
    no_effect("cgroup", ""),
    no_effect("cgroup_nodelete", ""),
    no_effect("cgroup_weight", ""),
    no_effect("uid", ""),
    no_effect("gid", ""),
    no_effect("unit_base", ""),
    no_effect("randrepeat", ""),
    no_effect("allrandrepeat", ""),
    no_effect("softrandommap", ""),
    no_effect("rate_cycle", "ratecycle"),
    no_effect("thinktime_spin", ""),
    no_effect("rwmixcycle", ""),
    no_effect("verifysort", ""),
    no_effect("verifysort_nr", ""),
    no_effect("hipri", ""),
    no_effect("hipri_percentage", ""),
    no_effect("fixedbufs", ""),
    no_effect("registerfiles", ""),
    no_effect("sqthread_poll", ""),
    no_effect("sqthread_poll_cpu", ""),
    no_effect("nonvectored", ""),
    no_effect("uncached", ""),
    no_effect("force_async", ""),
    no_effect("cmd_type", ""),
    no_effect("userspace_reap", ""),
    no_effect("cmdprio", ""),
    no_effect("cmdprio_percentage", ""),
    no_effect("cmdprio_class", ""),
    no_effect("cmdprio_bssplit", ""),
    no_effect("arguments", ""),
    no_effect("bindname", ""),
    no_effect("brick", ""),
    no_effect("busy_poll", ""),
    no_effect("busy_wait_polling", ""),
    no_effect("chunk_size", "chunck_size"),
    no_effect("clientname", ""),
    no_effect("clustername", ""),
    no_effect("conf", ""),
    no_effect("cont", ""),
    no_effect("cpuchunks", ""),
    no_effect("cpuload", ""),
    no_effect("cpumode", ""),
    no_effect("cuda_io", ""),
    no_effect("direct_write_to_pmem", ""),
    no_effect("donorname", ""),
    no_effect("exit_on_io_done", ""),
    no_effect("gpu_dev_ids", ""),
    no_effect("grace_time", ""),
    no_effect("hdfs_use_direct", ""),
    no_effect("hdfsdirectory", ""),
    no_effect("hostname", ""),
    no_effect("http_host", ""),
    no_effect("http_mode", ""),
    no_effect("http_pass", ""),
    no_effect("http_s3_key", ""),
    no_effect("http_s3_keyid", ""),
    no_effect("http_s3_region", ""),
    no_effect("http_s3_sse_customer_algorithm", ""),
    no_effect("http_s3_sse_customer_key", ""),
    no_effect("http_s3_storage_class", ""),
    no_effect("http_swift_auth_token", ""),
    no_effect("http_user", ""),
    no_effect("http_verbose", ""),
    no_effect("https", ""),
    no_effect("initiator", ""),
    no_effect("inplace", ""),
    no_effect("interface", ""),
    no_effect("listen", ""),
    no_effect("mss", ""),
    no_effect("namenode", ""),
    no_effect("nfs_url", ""),
    no_effect("no_completion_thread", ""),
    no_effect("nodelay", ""),
    no_effect("object_class", ""),
    no_effect("pingpong", ""),
    no_effect("pool", ""),
    no_effect("port", ""),
    no_effect("program", ""),
    no_effect("protocol", "proto"),
    no_effect("rbdname", ""),
    no_effect("serverip", ""),
    no_effect("single-instance", ""),
    no_effect("single_instance", ""),
    no_effect("stat_type", ""),
    no_effect("std_redirect", ""),
    no_effect("svcl", ""),
    no_effect("thp", ""),
    no_effect("touch_objects", ""),
    no_effect("ttl", ""),
    no_effect("uri", ""),
    no_effect("verb", ""),
    no_effect("volume", ""),
    no_effect("window_size", ""),
    no_effect("xnvme_admin", ""),
    no_effect("xnvme_async", ""),
    no_effect("xnvme_be", ""),
    no_effect("xnvme_dev_nsid", ""),
    no_effect("xnvme_iovec", ""),
    no_effect("xnvme_sync", ""),
    refused("readfua", "", &["0"], "reads have no force unit access"),
    refused("sg_write_mode", "", &["write"], "a write writes; use sync=1 for force unit access"),
    refused("stream_id", "", &["0"], "use write_hint"),
    refused("skip_bad", "", &["0"], "a drive replaces its bad blocks itself"),
    refused("opendir", "", &[], "a drive has no directories"),
    refused("serialize_overlap", "", &["0"], "overlapping requests are not held back"),
    refused("iodepth_batch", "iodepth_batch_submit", &["0", "1"], "requests are sent one by one"),
    refused("iodepth_batch_complete_min", "iodepth_batch_complete", &["0", "1"], "completions are taken one by one"),
    refused("iodepth_batch_complete_max", "", &["0", "1"], "completions are taken one by one"),
    refused("iodepth_low", "", &["0"], "the queue is always kept full"),
    refused("nrfiles", "nr_files", &["1"], "the drive is one file"),
    refused("filesize", "", &[], "the drive is one file, use size and offset"),
    refused("fill_device", "fill_fs", &["0"], "a drive has no end of space to run into, use size"),
    refused("file_append", "", &["0"], "a drive has no end of file"),
    refused("ramp_time", "", &["0"], "bring the drive to its state with --precondition"),
    refused("read_iolog", "", &[], "give the log itself as the workload"),
    refused("read_iolog_chunked", "", &["0"], "give the log itself as the workload"),
    refused("replay_no_stall", "", &["0"], "use --replay"),
    refused("replay_redirect", "", &[], "use --replay"),
    refused("replay_scale", "", &["1"], "use --replay"),
    refused("replay_align", "", &["0"], "use --replay"),
    refused("replay_time_scale", "", &["100"], "use --replay"),
    refused("replay_skip", "", &[], "use --replay"),
    refused("merge_blktrace_file", "", &[], "merge the traces first"),
    refused("merge_blktrace_scalars", "", &[], "merge the traces first"),
    refused("merge_blktrace_iters", "", &[], "merge the traces first"),
    refused("exec_prerun", "", &[], "no commands are run"),
    refused("exec_postrun", "", &[], "no commands are run"),
    refused("ioscheduler", "", &["none", "noop"], "an I/O scheduler belongs to the host"),
    refused("rate_min", "ratemin", &["0"], "a job does not stop for being slow"),
    refused("rate_iops_min", "", &["0"], "a job does not stop for being slow"),
    refused("rate_ignore_thinktime", "", &["0"], "a rate counts time spent thinking"),
    refused("max_latency", "", &["0"], "a job does not stop for being slow"),
    refused("latency_target", "", &["0"], "the depth is not searched for"),
    refused("latency_window", "", &["0"], "the depth is not searched for"),
    refused("latency_percentile", "", &["100"], "the depth is not searched for"),
    refused("latency_run", "", &["0"], "the depth is not searched for"),
    refused("steadystate", "ss", &[], "use --precondition steady"),
    refused("steadystate_duration", "ss_dur", &["0"], "use --precondition steady"),
    refused("steadystate_ramp_time", "ss_ramp", &["0"], "use --precondition steady"),
    refused("create_only", "", &["0"], "there are no files to create"),
    refused("pre_read", "", &["0"], "add a job that reads"),
    refused("exitall", "", &["0"], "jobs end on their own"),
    refused("wait_for", "", &[], "use stonewall"),
    refused("sync_file_range", "", &[], "a drive knows only flush; use fsync"),
    refused("write_barrier", "", &["0"], "a drive knows only flush; use fsync"),
    refused("percentage_sequential", "", &[], "fio dropped it; use percentage_random"),
    refused("profile", "", &[], "write the job out"),
    refused("flow", "", &["0"], "jobs are not tied together"),
    refused("flow_id", "", &["0"], "jobs are not tied together"),
    refused("flow_watermark", "", &["0"], "jobs are not tied together"),
    refused("flow_sleep", "", &["0"], "jobs are not tied together"),
    refused("nowait", "", &["0"], "a drive never refuses a request"),
    refused("verify", "", &["0", "none", "null"], "use `--verify`"),
    refused("do_verify", "", &["0"], "use `--verify`"),
    refused("verify_only", "", &["0"], "use `--verify`"),
    refused("verify_offset", "", &["0"], "use `--verify`"),
    refused("verify_interval", "", &["0"], "use `--verify`"),
    refused("verify_pattern", "", &[], "use `--verify`"),
    refused("verify_fatal", "", &["0"], "use `--verify`"),
    refused("verify_dump", "", &["0"], "use `--verify`"),
    refused("verify_async", "", &["0"], "use `--verify`"),
    refused("verify_async_cpus", "", &[], "use `--verify`"),
    refused("verify_backlog", "", &["0"], "use `--verify`"),
    refused("verify_backlog_batch", "", &["0"], "use `--verify`"),
    refused("experimental_verify", "", &["0"], "use `--verify`"),
    refused("verify_state_load", "", &["0"], "use `--verify`"),
    refused("verify_state_save", "", &["0"], "use `--verify`"),
    refused("trim_percentage", "", &["0"], "it belongs to verify; use rw=trimwrite or a job of trims"),
    refused("trim_verify_zero", "", &["0"], "it belongs to verify"),
    refused("trim_backlog", "", &["0"], "it belongs to verify"),
    refused("trim_backlog_batch", "", &["0"], "it belongs to verify"),
];

/// Keys that came with fio 3.34 to 3.42.
#[rustfmt::skip] // A list.
const NEWER: &[&str] = &[
    "apptag", "apptag_mask", "cdb_len", "cmdprio_hint", "comm", "data_placement", "dataplacement", "deac",
    "dp_scheme", "end_syncfs", "fdp", "fdp_pli", "fdp_pli_select", "filetype", "http_object_mode",
    "http_s3_security_token", "job_start_clock_id", "libaio_vectored", "libblkio_driver",
    "libblkio_force_enable_completion_eventfd", "libblkio_num_entries", "libblkio_path", "libblkio_pre_connect_props",
    "libblkio_pre_start_props", "libblkio_queue_size", "libblkio_vectored", "libblkio_wait_mode",
    "libblkio_write_zeroes_on_trim", "log_issue_time", "log_window_value", "md_per_io_size", "num_range",
    "page_fault", "pi_act", "pi_chk", "plid_select", "plids", "priohint", "ramp_size", "rbd_encryption_format",
    "rbd_encryption_passphrase", "read_mode", "recover_zbd_write_error", "rocm_io", "spr_cs", "spr_num_regions",
    "spr_op", "sprandom", "ss_interval", "steadystate_check_interval", "thinkcycles", "verify_bytchk",
    "verify_header_seed", "verify_mode", "verify_pattern_interval", "verify_policy", "verify_write_sequence",
    "write_mode", "write_zone_remainder", "xnvme_dev_subnqn", "xnvme_mem",
];

/// Whether a later fio than 3.33 has a key of this name.
pub(crate) fn is_newer(name: &str) -> bool {
    NEWER.contains(&name)
}

/// The key with this name or alias.
pub(crate) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name || (!key.alias.is_empty() && key.alias == name))
}

/// The known name nearest to `name`, if any is near enough to be a slip of the finger.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    closest(name, KEYS.iter().flat_map(|key| [key.name, key.alias]).filter(|known| !known.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_name_is_listed_twice() {
        let mut seen = BTreeSet::new();
        for key in KEYS {
            assert!(seen.insert(key.name), "{} twice", key.name);
            assert!(key.alias.is_empty() || seen.insert(key.alias), "{} twice", key.alias);
        }
        for name in NEWER {
            assert!(seen.insert(name), "{name} is newer than 3.33, and known to it");
        }
    }

    #[test]
    fn a_slip_of_the_finger_is_recognised() {
        assert_eq!(nearest("iodept"), Some("iodepth"));
        assert_eq!(nearest("norandomap"), Some("norandommap"));
        assert_eq!(nearest("blocksise"), Some("blocksize"));
        assert_eq!(nearest("xyzzy_plugh"), None);
    }
}
