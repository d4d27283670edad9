package durabletest

import (
	"bytes"
	"io/fs"
	"path"
	"slices"

	"github.com/united-workforce/uwf/util/durable"
)

// Model says what a disk may do, when the power goes, with what was not flushed.
type Model int

// The models. In both, content that was not flushed may be missing, half there,
// or half zeros at full length; that of a new file is then that of an empty
// one, even if its name survives.
const (
	// Posix promises nothing but what was asked for. SyncFile and FullFlush keep
	// the content of that file, SyncDir the names in that directory; every other
	// creation, rename or removal may have happened or not, each by itself.
	// StartFlush and StartSync count for nothing.
	Posix Model = iota
	// Ordered is a file system with one journal, as [durable.SafeMode] demands for
	// [durable.Batch]: a real flush of anything that has changed since the last one
	// keeps all changes of names before it, and the content that was handed to
	// the device (StartFlush, StartSync) before it. Of the changes of names after
	// the last flush, the first few may survive, never a later one without all
	// earlier ones: the journal has committed by itself after the last that
	// survives, which keeps what was handed to the device before that, too.
	Ordered
)

// disk is a simulated disk: what programs see, and what is safe from a power cut.
type disk struct {
	model   Model
	now     map[string]*inode // names as programs see them
	safe    map[string]*inode // names that survive
	pending []nameChange      // since safe, in order
	inodes  []*inode
	dirs    map[string]bool // directories that were ever made
}

// inode is a file or a directory, whatever its name.
type inode struct {
	dir  bool
	perm fs.FileMode
	now  []byte // content as programs see it
	safe []byte // content that survives
	// What is left of the last write that was not flushed, if only half of it
	// reached the disk: cut off, or followed by zeros.
	torn, zeroed []byte
	handed       []byte // content that the device has (StartFlush)
	isHanded     bool
	handedAt     int // how many changes of names were pending then
}

// nameChange gives an inode a name, takes one away, or both at once.
type nameChange struct {
	op       Op
	set, del string // "": none
	inode    *inode
	unsynced []string // directories whose flush it still needs (Posix)
}

// newDisk is the disk after the first n operations, with the next one begun.
func newDisk(ops []Op, n int, model Model) *disk {
	d := &disk{model: model, now: map[string]*inode{}, safe: map[string]*inode{}, dirs: map[string]bool{}}
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

// changes reports whether programs can see the operation.
func (o Op) changes() bool {
	return o.Kind != OpStartSync && o.Kind != OpSyncFile && o.Kind != OpSyncDir && o.Kind != OpSyncAll
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
	case OpStartSync:
		d.hand(d.file(op))
	case OpSyncFile:
		d.flushed(d.file(op))
	case OpSyncDir:
		d.syncDir(op.Path)
	case OpSyncAll:
		d.syncAll()
	}
}

// syncAll is a real flush of everything.
func (d *disk) syncAll() {
	for _, f := range d.inodes {
		f.safe, f.isHanded = f.now, false
	}
	d.commit()
}

// write makes a file if need be and adds to its content.
func (d *disk) write(op Op) {
	f, ok := d.now[op.Path]
	if !ok {
		f = d.newInode(op, false)
		d.rename(nameChange{op: op, set: op.Path, inode: f})
	}
	half := slices.Concat(f.now, op.Data[:len(op.Data)/2])
	f.now = slices.Concat(f.now, op.Data)
	f.torn, f.zeroed = half, slices.Concat(half, make([]byte, len(f.now)-len(half)))
	switch op.Flush {
	case durable.StartFlush:
		d.hand(f)
	case durable.FullFlush:
		d.flushed(f)
	}
}

// hand gives the content of a file to the device.
func (d *disk) hand(f *inode) { f.handed, f.isHanded, f.handedAt = f.now, true, len(d.pending) }

// flushed is a real flush of a file. A journal that has nothing new of that file
// commits nothing.
func (d *disk) flushed(f *inode) {
	changed := f.unflushed() || f.isHanded ||
		slices.ContainsFunc(d.pending, func(c nameChange) bool { return c.inode == f })
	f.safe = f.now
	if d.model == Ordered && changed {
		d.commit()
	}
}

// syncDir is a real flush of a directory. A journal that has nothing new of that
// directory commits nothing.
func (d *disk) syncDir(dir string) {
	if d.model == Ordered {
		if slices.ContainsFunc(d.pending, func(c nameChange) bool { return slices.Contains(c.unsynced, dir) }) {
			d.commit()
		}
		return
	}
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

// commit keeps all names, and the contents that the device already has.
func (d *disk) commit() {
	for _, c := range d.pending {
		c.apply(d.safe)
	}
	d.pending = nil
	for _, f := range d.inodes {
		if f.isHanded {
			f.safe, f.isHanded = f.handed, false
		}
	}
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

// file is the file that an operation names. One that was there before the
// recording began is taken for empty and safe.
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
