//! `ssdlab wa model`: equations 1 to 5, with every factor shown.

use std::io::Write as _;

use clap::Args;
use serde_json::json;
use ssdlab_measure::model::{over_provisioning, percentage_error};

use super::{Shape, grouped, size};
use crate::failure::Failure;
use crate::stdout;

/// Write amplification from the number of programs on one die's Ready/Busy line, by the four-level model.
///
/// WA = channels x chips x dies x programs x pages a program x page size / bytes written by the host. It holds if every die
/// programs as often as the probed one: see docs/write-amplification.md.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  SSD-M of the paper, 100,000 programs seen on one die while the host wrote 2 GiB:
    ssdlab wa model --geometry 8x1x2x2 --program-model multi --programs 100000 --host-bytes 2g
  The same from a description, against the drive's own count of pages:
    ssdlab wa model --device wa-ssd-m-64g --programs 100000 --host-bytes 2g --pages-real 3100000
  A partition's over-provisioning (equation 5):
    ssdlab wa model --op-space 2.8g --user-space 25.2g")]
pub(crate) struct ModelArgs {
    #[command(flatten)]
    shape: Shape,
    /// N_Tprogram: how often the line of one die was low for a program
    #[arg(long, value_name = "N")]
    programs: Option<u64>,
    /// L_Volume_Data: bytes written by the host
    #[arg(long, value_name = "SIZE")]
    host_bytes: Option<String>,
    /// N_page_real: pages programmed by the drive's own count, for the percentage error PEN
    #[arg(long, value_name = "N")]
    pages_real: Option<u64>,
    /// Over-provisioned space, for equation 5
    #[arg(long, value_name = "SIZE", requires = "user_space")]
    op_space: Option<String>,
    /// User space, for equation 5
    #[arg(long, value_name = "SIZE", requires = "op_space")]
    user_space: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn model(args: &ModelArgs) -> Result<(), Failure> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |name: &str, value: String, how: &str| rows.push(vec![name.into(), value, how.into()]);
    let mut out = json!({});
    let known = args.shape.known()?;
    if known.is_none() && args.op_space.is_none() {
        return Err(Failure::input("neither --geometry, --device nor --op-space was given")
            .hint("for example: ssdlab wa model --geometry 4x1x1x2 --programs 100000 --host-bytes 2g"));
    }
    if known.is_none() {
        let given = [
            ("--programs", args.programs.is_some()),
            ("--host-bytes", args.host_bytes.is_some()),
            ("--pages-real", args.pages_real.is_some()),
            ("--program-model", args.shape.program_model.is_some()),
        ];
        if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
            return Err(Failure::input(format!(
                "{option} without --geometry or --device: which dies does it speak of?"
            )));
        }
    }
    if let Some(known) = known {
        let programs =
            args.programs.ok_or_else(|| Failure::input("--programs is missing: the lows that were counted"))?;
        let (model, levels) = (known.model, known.model.levels);
        row("N_channel x N_chip x N_die", format!("{}", levels.dies()), "Ready/Busy lines");
        row("M_p", model.pages_per_low().to_string(), "pages a program");
        row("P_a", ssdlab_base::format_size(levels.page_bytes.into()), "page");
        row("N_Tprogram", grouped(programs.into()), "programs on one line");
        let pages = model.pages(programs as f64);
        row("N_page", grouped(pages as u128), "pages in the whole drive");
        let bytes = model.physical_bytes(programs as f64);
        row("P_Volume_Data", format!("{} bytes", grouped(bytes as u128)), "written to the chips");
        out["dies"] = json!(levels.dies());
        out["pages_per_program"] = json!(model.pages_per_low());
        out["page_bytes"] = json!(levels.page_bytes);
        out["programs"] = json!(programs);
        out["pages"] = json!(pages);
        out["physical_bytes"] = json!(bytes);
        if let Some(host) = &args.host_bytes {
            let host = size("--host-bytes", host)?;
            let amplification = model.write_amplification(programs as f64, host).ok_or_else(|| {
                Failure::input("--host-bytes 0: write amplification of nothing written does not exist")
            })?;
            row("L_Volume_Data", format!("{} bytes", grouped(host.into())), "written by the host");
            row("WA", format!("{amplification:.4}"), "P_Volume_Data / L_Volume_Data");
            out["host_bytes"] = json!(host);
            out["write_amplification"] = json!(amplification);
        }
        if let Some(real) = args.pages_real {
            let error = percentage_error(pages, real)
                .ok_or_else(|| Failure::input("--pages-real 0: there is no percentage error of nothing"))?;
            row("PEN", format!("{:+.3} %", error * 100.0), "(N_page - N_page_real) / N_page_real");
            out["pages_real"] = json!(real);
            out["percentage_error"] = json!(error * 100.0);
        }
    }
    if let (Some(op), Some(user)) = (&args.op_space, &args.user_space) {
        let (op, user) = (size("--op-space", op)?, size("--user-space", user)?);
        if op == 0 && user == 0 {
            return Err(Failure::input("--op-space 0 and --user-space 0: there is no space to take a share of"));
        }
        let share = over_provisioning(op as f64, user as f64);
        row("OP%", format!("{:.2} %", share * 100.0), "OP / (OP + User_Space)");
        out["over_provisioning"] = json!(share);
    }
    if args.json {
        return stdout::print_json(&out);
    }
    stdout::print(|to| to.write_all(stdout::aligned(&rows).as_bytes()))
}
