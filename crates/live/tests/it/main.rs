//! Served drives: transports, engine, promises.

mod command_set;
mod engine;
mod fuse;
mod metrics;
mod nbd_bad_clients;
mod nbd_commands;
mod nbd_negotiation;
mod nbd_server;
mod nbd_stream;
mod power;
mod promises;
mod segments;
mod support;
