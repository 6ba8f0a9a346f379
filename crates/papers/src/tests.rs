//! What holds of every paper: its data, its pages, and its sizes.

use std::path::Path;

use super::*;

#[test]
fn the_middle_size_of_each_paper_is_accepted_or_it_says_why_there_is_none() {
    for paper in PAPERS {
        let experiment = Experiment::parse(paper.name, paper.experiment).expect("the experiment is right");
        let opened = PaperContext::open(paper, &Library::default(), Size::Middle);
        let Some(middle) = &experiment.middle else {
            let why =
                experiment.no_middle.unwrap_or_else(|| panic!("{} has no middle size, and says nothing", paper.name));
            let refused = opened.err().unwrap_or_else(|| panic!("{} has no middle size, and takes one", paper.name));
            assert!(refused.sentence.contains(&why), "{}", refused.sentence);
            continue;
        };
        assert!(middle.about.ends_with('.'), "{}: the report says what is smaller: {}", paper.name, middle.about);
        let context = opened.unwrap_or_else(|error| panic!("{}: {error}", paper.name));
        let whole = PaperContext::open(paper, &Library::default(), Size::Full).expect("the paper's data is right");
        for figure in paper.figures {
            let [runs, of_whole] = [&context, &whole].map(|context| figure.runs(context));
            let of = format!("{}/{}", paper.name, figure.id);
            // Where no input is left out, the runs are those of the whole, on drives that are no larger.
            assert!(
                middle.inputs < usize::MAX || runs.len() == of_whole.len(),
                "{of}: {} of {}",
                runs.len(),
                of_whole.len()
            );
            for run in &runs {
                context.config(run).unwrap_or_else(|error| panic!("{of}: {run}: {error}"));
                context.layers(run).unwrap_or_else(|error| panic!("{of}: {run}: {error}"));
                assert!(run.command(&context).contains("--workload"), "{of}: {run}");
            }
            let size = |(context, runs): (&PaperContext, &[Run])| -> u64 {
                runs.iter().map(|run| context.config(run).expect("a drive").flash.geometry.bytes()).max().unwrap_or(0)
            };
            assert!(size((&context, &runs)) <= size((&whole, &of_whole)), "{of}: a drive is larger than the whole");
        }
    }
}

#[test]
fn every_papers_data_parses_and_its_pages_and_published_values_agree_with_its_figures() {
    for paper in PAPERS {
        let experiment = Experiment::parse(paper.name, paper.experiment).expect("the experiment is right");
        for device in experiment.drives.values() {
            assert!(paper.devices.iter().any(|(name, _)| name == device), "{}: no description {device}", paper.name);
        }
        let of_inputs = experiment.input.iter().map(|input| (input.stands_for.as_str(), input.name.as_str()));
        let of_files = experiment.files.iter().map(|work| (work.stands_for.as_str(), work.name.as_str()));
        let (stands_for, names): (Vec<&str>, Vec<&str>) = of_inputs.chain(of_files).unzip();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers").join(paper.name);
        for (file, text) in paper.published {
            for value in frame::published::parse(file, text).expect("published values are right") {
                let figure = paper.figures.iter().find(|figure| figure.id == value.figure);
                let figure = figure.unwrap_or_else(|| panic!("{file}: there is no {}", value.figure));
                assert!(figure.series.contains(&value.series.as_str()), "{file}: no series '{}'", value.series);
                let known = ["all", "best", "least", "mean"].contains(&value.workload.as_str())
                    || stands_for.contains(&value.workload.as_str())
                    || names.contains(&value.workload.as_str());
                assert!(known, "{file}: no workload '{}'", value.workload);
                let drive = value.page_size == "any" || experiment.drives.contains_key(&value.page_size);
                assert!(drive, "{file}: no drive '{}'", value.page_size);
            }
            assert!(root.join("published").join(file).is_file(), "{file} is not where readers look for it");
        }
        let listed = std::fs::read_dir(root.join("published")).expect("a folder of published values").count();
        assert_eq!(listed, paper.published.len(), "{}: a file of published values is not registered", paper.name);
        for figure in paper.figures {
            let file = root.join(format!("{}.md", figure.id));
            let page = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let markers = docs::markers(&file.display().to_string(), &page).expect("markers in pairs");
            assert_eq!(markers, [figure.id], "{}", file.display());
        }
        let page = std::fs::read_to_string(root.join("README.md")).expect("the paper's page");
        for line in page.lines().filter(|line| line.starts_with("| [") && line.contains("| outside |")) {
            let id = line.split_once("](").and_then(|(_, rest)| rest.split_once(".md)")).map_or("", |(id, _)| id);
            let figure = paper.figures.iter().find(|figure| figure.id == id);
            let figure = figure.unwrap_or_else(|| panic!("{}: there is no figure '{id}'", paper.name));
            assert!(!figure.differs.is_empty(), "{}/{id}: values lie outside, and it does not say why", paper.name);
        }
        for judged in experiment.middle.iter().flat_map(|middle| &middle.judged) {
            let known = paper.figures.iter().any(|figure| figure.id == judged);
            assert!(known, "{}: [middle] judges '{judged}', which is no figure", paper.name);
        }
        assert_eq!(docs::markers("README.md", &page).expect("markers in pairs"), ["summary", "inputs"]);
    }
}
