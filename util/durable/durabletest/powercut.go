package durabletest

import (
	"bytes"
	"io/fs"
	"path"
	"slices"

	"github.com/united-workforce/uwf/util/durable"
)

// disk is a simulated disk: what programs see, and what survives a power cut.
type disk struct {
	now     map[string]*inode // names as programs see them
	safe    map[string]*inode // names that survive
	pending []nameChange      // since safe, in order
	inodes  []*inode
	dirs    map[string]bool // all directories ever created
}

// inode is a file or a directory, regardless of its name.
type inode struct {
	dir  bool
	perm fs.FileMode
	now  []byte // content as programs see it
	safe []byte // content that survives
	// Remains of the last unflushed write if only half of it reached the disk: truncated, or followed by
	// zeros.
	torn, zeroed []byte
}

// nameChange adds a name to an inode, removes one, or both.
type nameChange struct {
	op       Op
	set, del string // "" for none
	inode    *inode
	unsynced []string // directories that still need a flush
}

// newDisk returns the disk after the first n operations, while the next one is in progress.
func newDisk(ops []Op, n int) *disk {
	d := &disk{now: map[string]*inode{}, safe: map[string]*inode{}, dirs: map[string]bool{}}
	for _, op := range ops[:n] {
		d.do(op)
	}
	if n < len(ops) && ops[n].changes() {
		begun := ops[n]
		begun.Flush = durable.NoFlush
		d.do(begun)
	}
	return d
}

// changes reports whether the operation has a visible effect.
func (o Op) changes() bool {
	return o.Kind != OpSyncFile && o.Kind != OpSyncDir && o.Kind != OpSyncAll
}

func (d *disk) do(op Op) {
	switch op.Kind {
	case OpWrite, OpAppend:
		d.write(op)
	case OpMkdir:
		d.dirs[op.Path] = true
		d.rename(nameChange{op: op, set: op.Path, inode: d.newInode(op, true)})
	case OpRename:
		d.rename(nameChange{op: op, set: op.To, del: op.Path, inode: d.file(op)})
	case OpRemove:
		d.rename(nameChange{op: op, del: op.Path})
	case OpTruncate:
		f := d.file(op)
		f.now = slices.Clone(f.now[:min(op.Size, int64(len(f.now)))])
		f.torn, f.zeroed = f.now, f.now
	case OpSyncFile:
		f := d.file(op)
		f.safe = f.now
	case OpSyncDir:
		d.syncDir(op.Path)
	case OpSyncAll:
		for _, f := range d.inodes {
			f.safe = f.now
		}
		for _, c := range d.pending {
			c.apply(d.safe)
		}
		d.pending = nil
	}
}

// write appends to a file, creating it if necessary.
func (d *disk) write(op Op) {
	f, ok := d.now[op.Path]
	if !ok {
		f = d.newInode(op, false)
		d.rename(nameChange{op: op, set: op.Path, inode: f})
	}
	half := slices.Concat(f.now, op.Data[:len(op.Data)/2])
	f.now = slices.Concat(f.now, op.Data)
	f.torn, f.zeroed = half, slices.Concat(half, make([]byte, len(f.now)-len(half)))
	if op.Flush == durable.FullFlush {
		f.safe = f.now
	}
}

// syncDir makes the names in a directory durable.
func (d *disk) syncDir(dir string) {
	var left []nameChange
	for _, c := range d.pending {
		c.unsynced = slices.DeleteFunc(slices.Clone(c.unsynced), func(s string) bool { return s == dir })
		if len(c.unsynced) > 0 {
			left = append(left, c)
			continue
		}
		c.apply(d.safe)
	}
	d.pending = left
}

func (d *disk) rename(c nameChange) {
	for _, name := range []string{c.set, c.del} {
		if dir := path.Dir(name); name != "" && !slices.Contains(c.unsynced, dir) {
			c.unsynced = append(c.unsynced, dir)
		}
	}
	c.apply(d.now)
	d.pending = append(d.pending, c)
}

func (c nameChange) apply(names map[string]*inode) {
	if c.del != "" {
		delete(names, c.del)
	}
	if c.set != "" {
		names[c.set] = c.inode
	}
}

func (d *disk) newInode(op Op, dir bool) *inode {
	f := &inode{dir: dir, perm: op.Perm.Perm()}
	d.inodes = append(d.inodes, f)
	return f
}

// file returns the file of an operation. A file that existed before the recording counts as empty and safe.
func (d *disk) file(op Op) *inode {
	f, ok := d.now[op.Path]
	if !ok {
		f = d.newInode(op, false)
		d.now[op.Path], d.safe[op.Path] = f, f
	}
	return f
}

// unflushed reports whether a power cut could change the content.
func (i *inode) unflushed() bool { return !bytes.Equal(i.now, i.safe) }
