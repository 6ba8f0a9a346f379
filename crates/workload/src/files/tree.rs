//! The shape of a set's directories, as Filebench draws it.
//!
//! A directory has a width and a depth, both gamma distributed with shape 1.5; the mean width is given and the mean
//! depth is the logarithm of the number of files to that base. A directory that is as deep as it drew holds files, any
//! other directories. The root takes directories until all files have a place.

use ssdlab_base::Rng;

use crate::draw::Gamma;

/// Shape of both distributions.
const SHAPE: f64 = 1.5;

/// Directories with their parents before them, and the directory of each file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) directories: Vec<String>,
    pub(super) homes: Vec<u32>,
}

/// A directory being filled.
struct Open {
    index: u32,
    depth: u32,
    width: u64,
    leaf: bool,
    children: u64,
}

/// Draws the directories for `files` files, below the directory `root`.
pub(super) fn draw(root: &str, files: u64, mean_width: u64, rng: &mut Rng) -> Tree {
    let mean_depth = libm::log(files as f64) / libm::log(mean_width as f64);
    // One file has a mean depth of zero, which no distribution has.
    let depths = (mean_depth > 0.0).then(|| Gamma::with_mean(mean_depth, SHAPE));
    let widths = Gamma::with_mean(mean_width as f64, SHAPE);
    let mut tree = Tree { directories: vec![root.to_string()], homes: Vec::with_capacity(files as usize) };
    let mut path = vec![Open { index: 0, depth: 1, width: u64::MAX, leaf: false, children: 0 }];
    while (tree.homes.len() as u64) < files {
        let last = path.last_mut().expect("the root takes directories until every file has a place");
        if last.children >= last.width {
            path.pop();
            continue;
        }
        last.children += 1;
        if last.leaf {
            tree.homes.push(last.index);
            continue;
        }
        let depth = last.depth + 1;
        let name = format!("{}/{:08}", tree.directories[last.index as usize], last.children);
        let wanted = depths.as_ref().map_or(1.0, |depths| depths.draw(rng)).max(1.0) as u32;
        let width = widths.draw(rng).max(1.0) as u64;
        tree.directories.push(name);
        path.push(Open { index: tree.directories.len() as u32 - 1, depth, width, leaf: depth >= wanted, children: 0 });
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ssdlab_base::rng;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn every_file_has_a_home_and_every_parent_comes_first(
            files in 1_u64..3000, width in 2_u64..2000, seed in any::<u64>(),
        ) {
            let tree = draw("files", files, width, &mut rng(seed, "tree test"));
            prop_assert_eq!(tree.homes.len() as u64, files);
            let mut seen = HashSet::new();
            for directory in &tree.directories {
                let parent = directory.rsplit_once('/').map(|(parent, _)| parent);
                prop_assert!(parent.is_none_or(|parent| seen.contains(parent)), "{directory} before its parent");
                prop_assert!(seen.insert(directory.as_str()), "{directory} twice");
            }
            prop_assert!(tree.homes.iter().all(|home| (*home as usize) < tree.directories.len()));
        }
    }

    #[test]
    fn a_width_beyond_the_files_makes_one_directory_and_twenty_makes_many() {
        let one = draw("files", 1000, 1_000_000, &mut rng(1, "tree test"));
        assert_eq!(one.directories.len(), 2);
        let many = draw("files", 10_000, 20, &mut rng(1, "tree test"));
        let homes: HashSet<u32> = many.homes.iter().copied().collect();
        let width = 10_000.0 / homes.len() as f64;
        // The mean of gamma draws rounded down, with the least at 1.
        assert!((18.0..22.0).contains(&width), "{width} files in a directory");
    }
}
