//! The handshake, option by option.

use crate::support::client::{
    Client, OPT_ABORT, OPT_EXPORT_NAME, OPT_GO, OPT_INFO, OPT_LIST, OPT_LIST_META_CONTEXT, OPT_SET_META_CONTEXT,
    OPT_STARTTLS, OPT_STRUCTURED_REPLY, REP_ACK, REP_ERR_INVALID, REP_ERR_TOO_BIG, REP_ERR_UNKNOWN, REP_ERR_UNSUP,
    REP_INFO, REP_META_CONTEXT, REP_SERVER, context_data, go_data,
};
use crate::support::{self, MIB, Serving};

/// Everything but `NBD_FLAG_SEND_DF`, which needs structured replies.
const FLAGS: u16 = 1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11;
const SEND_DF: u16 = 1 << 7;

fn haggling(serving: &Serving) -> Client {
    let mut client = serving.connect();
    client.greet(3);
    client
}

#[test]
fn export_name_enters_transmission_with_and_without_the_zeroes() {
    let serving = Serving::ram(MIB);
    for (client_flags, name, zeroes) in [(3, "", 0), (1, "ssdlab", 124), (0, "ssdlab", 124)] {
        let mut client = serving.connect();
        client.greet(client_flags);
        client.send_option(OPT_EXPORT_NAME, name.as_bytes());
        assert_eq!(client.receive(8), MIB.to_be_bytes());
        assert_eq!(client.receive(2), FLAGS.to_be_bytes());
        assert_eq!(client.receive(zeroes), vec![0; zeroes]);
        client.write(512, &[1; 512]);
        assert_eq!(client.read(512, 512), [1; 512]);
        client.disconnect();
    }
}

#[test]
fn export_name_of_another_export_ends_the_session() {
    let serving = Serving::ram(MIB);
    let mut client = haggling(&serving);
    client.send_option(OPT_EXPORT_NAME, b"other");
    assert!(client.is_closed());
    serving.serves_others();
}

#[test]
fn info_tells_the_export_and_what_was_asked_and_go_enters_transmission() {
    let serving = Serving::ram(MIB);
    let mut client = haggling(&serving);
    client.structured();
    let export = [&[0, 0][..], &MIB.to_be_bytes(), &(FLAGS | SEND_DF).to_be_bytes()].concat();
    let sizes = [&[0, 3][..], &512_u32.to_be_bytes(), &4096_u32.to_be_bytes(), &(32_u32 << 20).to_be_bytes()].concat();
    let name = b"\0\x01ssdlab".to_vec();
    let description = b"\0\x02a disk in memory".to_vec();

    let told = |replies: Vec<(u32, Vec<u8>)>| {
        let (last, infos) = replies.split_last().expect("a reply").to_owned();
        assert_eq!(last, &(REP_ACK, Vec::new()));
        assert!(infos.iter().all(|info| info.0 == REP_INFO));
        infos.iter().map(|info| info.1.clone()).collect::<Vec<_>>()
    };
    assert_eq!(told(client.option(OPT_INFO, &go_data("", &[]))), [export.clone(), sizes.clone()]);
    let everything = [export, sizes, name, description];
    // 77 is nothing that a server has to know.
    assert_eq!(told(client.option(OPT_INFO, &go_data("ssdlab", &[3, 2, 77, 1]))), everything);
    assert_eq!(told(client.option(OPT_GO, &go_data("ssdlab", &[1, 2, 3]))), everything);
    assert_eq!(client.read(0, 512), [0; 512]);
}

#[test]
fn unknown_exports_are_refused_and_the_haggling_goes_on() {
    let serving = Serving::ram(MIB);
    let mut client = haggling(&serving);
    assert_eq!(client.option_answer(OPT_INFO, &go_data("other", &[])), REP_ERR_UNKNOWN);
    assert_eq!(client.option_answer(OPT_GO, &go_data("ssdlab2", &[3])), REP_ERR_UNKNOWN);
    client.go("ssdlab");
    assert_eq!(client.bytes, MIB);
    assert_eq!(client.flags, FLAGS);
}

#[test]
fn list_names_the_export() {
    let serving = Serving::ram(MIB);
    let mut client = haggling(&serving);
    let server = [&6_u32.to_be_bytes()[..], b"ssdlab", b"a disk in memory"].concat();
    assert_eq!(client.option(OPT_LIST, &[]), [(REP_SERVER, server), (REP_ACK, Vec::new())]);
    assert_eq!(client.option_answer(OPT_LIST, b"x"), REP_ERR_INVALID);
    client.go("");
}

#[test]
fn abort_is_acknowledged_and_ends_the_session() {
    let serving = Serving::ram(MIB);
    let mut client = haggling(&serving);
    assert_eq!(client.option_answer(OPT_ABORT, &[]), REP_ACK);
    assert!(client.is_closed());
}

#[test]
fn tls_and_unknown_options_are_unsupported() {
    let serving = Serving::ram(MIB);
    let mut client = haggling(&serving);
    for option in [OPT_STARTTLS, 4, 11, 0, u32::MAX] {
        assert_eq!(client.option_answer(option, b"whatever it carries"), REP_ERR_UNSUP, "option {option}");
    }
    client.go("");
}

#[test]
fn contexts_are_listed_by_query() {
    let serving = Serving::ram(MIB);
    let mut client = haggling(&serving);
    client.structured();
    let listed = (REP_META_CONTEXT, b"\0\0\0\0base:allocation".to_vec());
    let end = (REP_ACK, Vec::new());
    for queries in [&[][..], &["base:"], &["base:allocation"], &["qemu:", "base:allocation"]] {
        let replies = client.option(OPT_LIST_META_CONTEXT, &context_data("", queries));
        assert_eq!(replies, [listed.clone(), end.clone()], "{queries:?}");
    }
    for queries in [&["qemu:dirty-bitmap:x"][..], &["base:other"], &["base"]] {
        let replies = client.option(OPT_LIST_META_CONTEXT, &context_data("", queries));
        assert_eq!(replies, std::slice::from_ref(&end), "{queries:?}");
    }
}

/// Whether block status works after these options and `NBD_OPT_GO` of the export.
fn status_works(serving: &Serving, export: &str, options: &[(&str, &[&str])]) -> bool {
    let mut client = haggling(serving);
    client.structured();
    for (name, queries) in options {
        client.option(OPT_SET_META_CONTEXT, &context_data(name, queries));
    }
    client.go(export);
    !matches!(
        client.ask(support::client::BLOCK_STATUS, 0, 0, 4096, &[]),
        support::client::Outcome::Error { errno: support::client::EINVAL, .. }
    )
}

#[test]
fn the_last_selection_of_contexts_counts_and_only_for_its_export() {
    let serving = Serving::ram(MIB);
    let allocation: &[&str] = &["base:allocation"];
    assert!(status_works(&serving, "", &[("", allocation)]));
    assert!(status_works(&serving, "ssdlab", &[("", &[]), ("ssdlab", &["x-y:z", "base:allocation"])]));
    assert!(!status_works(&serving, "", &[]));
    assert!(!status_works(&serving, "", &[("", allocation), ("", &[])]));
    assert!(!status_works(&serving, "", &[("", allocation), ("other", allocation)]));
    assert!(!status_works(&serving, "ssdlab", &[("", allocation)]));
    // A selection wants the whole name.
    assert!(!status_works(&serving, "", &[("", &["base:"])]));
}

#[test]
fn contexts_need_structured_replies_and_a_known_export() {
    let serving = Serving::ram(MIB);
    let mut client = haggling(&serving);
    for option in [OPT_LIST_META_CONTEXT, OPT_SET_META_CONTEXT] {
        assert_eq!(client.option_answer(option, &context_data("", &["base:allocation"])), REP_ERR_INVALID);
    }
    client.structured();
    for option in [OPT_LIST_META_CONTEXT, OPT_SET_META_CONTEXT] {
        assert_eq!(client.option_answer(option, &context_data("other", &[])), REP_ERR_UNKNOWN);
    }
}

#[test]
fn malformed_options_are_invalid_and_the_haggling_goes_on() {
    let serving = Serving::ram(MIB);
    let mut client = haggling(&serving);
    assert_eq!(client.option_answer(OPT_STRUCTURED_REPLY, b"data"), REP_ERR_INVALID);
    client.structured();
    let good = [
        (OPT_INFO, go_data("ssdlab", &[1, 2])),
        (OPT_GO, go_data("ssdlab", &[3])),
        (OPT_LIST_META_CONTEXT, context_data("ssdlab", &["base:"])),
        (OPT_SET_META_CONTEXT, context_data("ssdlab", &["base:allocation", "x"])),
    ];
    for (option, data) in good {
        for cut in 0..data.len() {
            assert_eq!(client.option_answer(option, &data[..cut]), REP_ERR_INVALID, "option {option} cut at {cut}");
        }
        let longer = [&data[..], b"x"].concat();
        assert_eq!(client.option_answer(option, &longer), REP_ERR_INVALID);
        let mut huge_name = data.clone();
        huge_name[..4].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(client.option_answer(option, &huge_name), REP_ERR_INVALID);
    }
    client.go("");
}

#[test]
fn an_option_that_is_too_long_is_skipped() {
    let serving = Serving::ram(MIB);
    let mut client = haggling(&serving);
    assert_eq!(client.option_answer(OPT_INFO, &vec![0; 3 << 20]), REP_ERR_TOO_BIG);
    client.go("");
    serving.serves_others();
}
