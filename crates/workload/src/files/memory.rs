//! A file system in memory: what a directory should do, in few lines, for tests and for runs without a device.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::file_system::{Access, FileSystem, FsError, FsErrorKind, Status};

/// A file's content, which lives as long as a handle has it open.
type Content = Arc<Mutex<Vec<u8>>>;

#[derive(Clone, Debug)]
enum Node {
    Directory,
    File(Content),
}

/// Files in memory, of limited size together.
#[derive(Debug)]
pub struct MemoryFileSystem {
    nodes: Mutex<BTreeMap<String, Node>>,
    used_bytes: Mutex<u64>,
    capacity_bytes: u64,
}

/// An open file.
#[derive(Debug)]
pub struct MemoryFile {
    content: Content,
    path: String,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryFileSystem {
    /// An empty one with room for so many bytes.
    pub fn new(capacity_bytes: u64) -> MemoryFileSystem {
        MemoryFileSystem { nodes: Mutex::default(), used_bytes: Mutex::default(), capacity_bytes }
    }

    /// Whether a path may be made: it is free, and its parent is a directory.
    fn may_make(nodes: &BTreeMap<String, Node>, path: &str, call: &'static str) -> Result<(), FsError> {
        if nodes.contains_key(path) {
            return Err(FsError::new(FsErrorKind::Exists, call, path));
        }
        match path.rsplit_once('/') {
            Some((parent, _)) if !matches!(nodes.get(parent), Some(Node::Directory)) => {
                Err(FsError::new(FsErrorKind::NotFound, call, path))
            }
            _ => Ok(()),
        }
    }

    /// Writes at `offset`, or at the end.
    fn put(&self, file: &MemoryFile, offset: Option<u64>, data: &[u8], call: &'static str) -> Result<(), FsError> {
        let mut content = lock(&file.content);
        let offset = offset.map_or(content.len(), |offset| offset as usize);
        let end = offset + data.len();
        let grown = end.saturating_sub(content.len()) as u64;
        let mut used = lock(&self.used_bytes);
        if *used + grown > self.capacity_bytes {
            return Err(FsError::new(FsErrorKind::Full, call, &file.path));
        }
        *used += grown;
        if end > content.len() {
            content.resize(end, 0);
        }
        content[offset..end].copy_from_slice(data);
        Ok(())
    }
}

impl FileSystem for MemoryFileSystem {
    type File = MemoryFile;

    fn create(&self, path: &str, _access: Access) -> Result<MemoryFile, FsError> {
        let mut nodes = lock(&self.nodes);
        MemoryFileSystem::may_make(&nodes, path, "create")?;
        let content = Content::default();
        nodes.insert(path.to_string(), Node::File(Arc::clone(&content)));
        Ok(MemoryFile { content, path: path.to_string() })
    }

    fn open(&self, path: &str, _access: Access) -> Result<MemoryFile, FsError> {
        match lock(&self.nodes).get(path) {
            Some(Node::File(content)) => Ok(MemoryFile { content: Arc::clone(content), path: path.to_string() }),
            Some(Node::Directory) => Err(FsError::new(FsErrorKind::Refused, "open", path)),
            None => Err(FsError::new(FsErrorKind::NotFound, "open", path)),
        }
    }

    fn read(&self, file: &mut MemoryFile, offset: u64, into: &mut [u8]) -> Result<usize, FsError> {
        let content = lock(&file.content);
        let from = (offset as usize).min(content.len());
        let bytes = into.len().min(content.len() - from);
        into[..bytes].copy_from_slice(&content[from..from + bytes]);
        Ok(bytes)
    }

    fn write(&self, file: &mut MemoryFile, offset: u64, data: &[u8]) -> Result<(), FsError> {
        self.put(file, Some(offset), data, "write")
    }

    fn append(&self, file: &mut MemoryFile, data: &[u8]) -> Result<(), FsError> {
        self.put(file, None, data, "append to")
    }

    fn fsync(&self, _file: &mut MemoryFile) -> Result<(), FsError> {
        Ok(())
    }

    fn close(&self, file: MemoryFile) -> Result<(), FsError> {
        drop(file);
        Ok(())
    }

    fn unlink(&self, path: &str) -> Result<(), FsError> {
        let mut nodes = lock(&self.nodes);
        match nodes.get(path) {
            Some(Node::File(content)) => {
                let freed = lock(content).len() as u64;
                *lock(&self.used_bytes) -= freed;
                nodes.remove(path);
                Ok(())
            }
            Some(Node::Directory) => Err(FsError::new(FsErrorKind::Refused, "remove", path)),
            None => Err(FsError::new(FsErrorKind::NotFound, "remove", path)),
        }
    }

    fn stat(&self, path: &str) -> Result<Status, FsError> {
        match lock(&self.nodes).get(path) {
            Some(Node::File(content)) => Ok(Status { bytes: lock(content).len() as u64, directory: false }),
            Some(Node::Directory) => Ok(Status { bytes: 0, directory: true }),
            None => Err(FsError::new(FsErrorKind::NotFound, "ask for", path)),
        }
    }

    fn make_directory(&self, path: &str) -> Result<(), FsError> {
        let mut nodes = lock(&self.nodes);
        MemoryFileSystem::may_make(&nodes, path, "make the directory")?;
        nodes.insert(path.to_string(), Node::Directory);
        Ok(())
    }

    fn remove_directory(&self, path: &str) -> Result<(), FsError> {
        let mut nodes = lock(&self.nodes);
        if !matches!(nodes.get(path), Some(Node::Directory)) {
            return Err(FsError::new(FsErrorKind::NotFound, "remove the directory", path));
        }
        let below = format!("{path}/");
        if nodes.range(below.clone()..).next().is_some_and(|(name, _)| name.starts_with(&below)) {
            return Err(FsError::new(FsErrorKind::NotEmpty, "remove the directory", path));
        }
        nodes.remove(path);
        Ok(())
    }

    fn list(&self, path: &str) -> Result<Vec<String>, FsError> {
        let nodes = lock(&self.nodes);
        if !path.is_empty() && !matches!(nodes.get(path), Some(Node::Directory)) {
            return Err(FsError::new(FsErrorKind::NotFound, "list", path));
        }
        let below = if path.is_empty() { String::new() } else { format!("{path}/") };
        let names = nodes.keys().filter_map(|name| name.strip_prefix(&below));
        Ok(names.filter(|name| !name.contains('/')).map(str::to_string).collect())
    }

    fn sync(&self) -> Result<(), FsError> {
        Ok(())
    }

    fn free_bytes(&self) -> Result<Option<u64>, FsError> {
        Ok(Some(self.capacity_bytes - *lock(&self.used_bytes)))
    }
}
