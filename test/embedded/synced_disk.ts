import fs from 'node:fs';
import { open } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import path from 'node:path';

/** What of a folder is on the disk for certain, as this process has synced it. Of Linux. */
export type SyncedDisk = {
  /** Called before each sync, with the path of the file or folder. */
  beforeSync: (file: string) => void;
  /**
   * Writes what a power failure would leave now to another folder.
   *
   * @param early whether a file, or the entries of a folder, reached the disk without a sync
   */
  cut(target: string, early: (file: string) => boolean): void;
  /** Ends the watch. */
  stop(): void;
};

/** A file or folder by its inode, which stays the same when it is renamed. */
type Entry = { readonly id: string; readonly isFolder: boolean };

/**
 * Watches the syncs of this process in a folder. At the sync of a file its content is noted, and its entry, since the file
 * systems of Linux write the entry of a new file with it, as PostgreSQL expects; at the sync of a folder its entries.
 */
export async function watchSyncs(root: string): Promise<SyncedDisk> {
  const contents = new Map<string, Buffer>();
  const folders = new Map<string, Map<string, Entry>>();

  const note = (fd: number): void => {
    const file = fs.readlinkSync(`/proc/self/fd/${fd}`);
    if (file !== root && !file.startsWith(`${root}/`)) return;
    disk.beforeSync(file);
    const { id, isFolder } = entryOf(fs.fstatSync(fd, { bigint: true }));
    if (isFolder) {
      folders.set(id, entriesOf(file));
      return;
    }
    contents.set(id, fs.readFileSync(file));
    const { id: folder } = entryOf(fs.lstatSync(path.dirname(file), { bigint: true }));
    folders.set(folder, new Map(folders.get(folder)).set(path.basename(file), { id, isFolder }));
  };

  const write = (file: string, entry: Entry, target: string, early: (file: string) => boolean): void => {
    const now = fs.lstatSync(file, { bigint: true, throwIfNoEntry: false });
    const arrived = now !== undefined && entryOf(now).id === entry.id && early(file);
    if (!entry.isFolder) {
      fs.writeFileSync(target, (arrived ? fs.readFileSync(file) : contents.get(entry.id)) ?? '');
      return;
    }
    fs.mkdirSync(target);
    const entries = arrived ? entriesOf(file) : (folders.get(entry.id) ?? []);
    for (const [name, each] of entries) write(path.join(file, name), each, path.join(target, name), early);
  };

  const { fsyncSync, fdatasyncSync } = fs;
  const anyFile = await open(root, 'r');
  const ofHandles = Object.getPrototypeOf(anyFile) as { sync: typeof anyFile.sync };
  await anyFile.close();
  const { sync } = ofHandles;
  const noting =
    (sync: (fd: number) => void) =>
    (fd: number): void => {
      note(fd);
      sync(fd);
    };
  const set = (replaced: Pick<typeof fs, 'fsyncSync' | 'fdatasyncSync'>): void => {
    Object.assign(fs, replaced);
    syncBuiltinESMExports();
  };
  set({ fsyncSync: noting(fsyncSync), fdatasyncSync: noting(fdatasyncSync) });
  ofHandles.sync = function (this: typeof anyFile) {
    note(this.fd);
    return sync.call(this);
  };

  const disk: SyncedDisk = {
    beforeSync: () => {},
    cut: (target, early) => write(root, entryOf(fs.lstatSync(root, { bigint: true })), target, early),
    stop: () => {
      set({ fsyncSync, fdatasyncSync });
      ofHandles.sync = sync;
    },
  };
  return disk;
}

/** The time is that of the creation, since a number of an inode may be used again. */
const entryOf = (found: fs.BigIntStats): Entry => ({
  id: `${found.ino} ${found.birthtimeNs}`,
  isFolder: found.isDirectory(),
});

/** The files and folders in a folder; sockets and links are left out. */
function entriesOf(folder: string): Map<string, Entry> {
  const entries = new Map<string, Entry>();
  for (const name of fs.readdirSync(folder)) {
    const found = fs.lstatSync(path.join(folder, name), { bigint: true });
    if (found.isFile() || found.isDirectory()) entries.set(name, entryOf(found));
  }
  return entries;
}
