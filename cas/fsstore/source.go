package fsstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/united-workforce/uwf/cas/record"
	"github.com/united-workforce/uwf/util/safeopen"
)

const (
	segmentSize = 16 << 20 // a segment of this size is sealed
	maxSegment  = segmentSize + record.MaxBody + 2*record.HeaderSize

	segmentExt = ".seg"
	packExt    = ".pack"
	indexExt   = ".idx"
)

// source is a segment or a pack.
type source struct {
	name    fileName
	path    string // without extension
	decoder func() (*zstd.Decoder, error)

	mu     sync.Mutex
	loaded bool
	sorted *sortedIndex // of a sealed segment or a pack, unless it is damaged
	table  *table       // without a sorted index
	behind *table       // records of a segment that its index doesn't contain yet
	info   fs.FileInfo  // of the file when the table was read
	used   int          // bytes of the index in table
	whole  bool         // the table is exactly what the index contains, and reaches the end of the segment
	redone bool         // the table was made by scanning the whole segment

	file *os.File // of a segment
	pack *pack
}

// fileName is the name of a segment or a pack. A pack contains everything that was needed of the segments up
// to number; part distinguishes packs of the same number.
type fileName struct {
	number int
	part   int // 0 for a segment
}

func (n fileName) isPack() bool { return n.part > 0 }

func (n fileName) String() string {
	if n.isPack() {
		return fmt.Sprintf("%08d-%d", n.number, n.part)
	}
	return fmt.Sprintf("%08d", n.number)
}

// parseName parses the name of a segment's or a pack's file.
func parseName(name string) (n fileName, ok bool) {
	switch filepath.Ext(name) {
	case segmentExt:
		_, err := fmt.Sscanf(name, "%d.seg", &n.number)
		ok = err == nil && name == n.String()+segmentExt
	case packExt:
		_, err := fmt.Sscanf(name, "%d-%d.pack", &n.number, &n.part)
		ok = err == nil && n.part > 0 && name == n.String()+packExt
	}
	return n, ok && n.number >= 0
}

// less orders sources by age, the oldest first. Packs are older than all segments that they don't replace.
func (n fileName) less(m fileName) bool {
	switch {
	case n.isPack() != m.isPack():
		return n.isPack()
	case n.number != m.number:
		return n.number < m.number
	}
	return n.part < m.part
}

// dataPath returns the path of the records.
func (g *source) dataPath() string {
	if g.name.isPack() {
		return g.path + packExt
	}
	return g.path + segmentExt
}

// find returns the records of a hash, the newest first.
func (g *source) find(hash uint64) ([]entry, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.load(); err != nil {
		return nil, err
	}
	if g.sorted != nil {
		found, err := g.sorted.find(hash)
		if !errors.Is(err, errIndex) {
			return found, err
		}
		if err := g.rebuild(); err != nil {
			return nil, err
		}
	}
	found := g.table.find(hash)
	if g.behind != nil {
		found = append(g.behind.find(hash), found...)
	}
	return found, nil
}

// entries returns the records whose hashes begin with a byte from low to high, by place.
func (g *source) entries(low, high byte) (all []entry, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.load(); err != nil {
		return nil, err
	}
	if g.sorted != nil {
		if all, err = g.sorted.entries(low, high); errors.Is(err, errIndex) {
			all, err = nil, g.rebuild()
		}
	}
	for _, t := range []*table{g.table, g.behind} {
		for i := 0; t != nil && i < len(t.entries); i++ {
			if b := byte(t.entries[i].hash >> 56); low <= b && b <= high {
				all = append(all, t.entries[i])
			}
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	return all, err
}

// sealed returns the time of the last put into a sealed segment, in ms; false for a segment that isn't
// sealed.
func (g *source) sealed() (at int64, ok bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.load(); err != nil || g.sorted == nil {
		return 0, false, err
	}
	return g.sorted.sealedAt, true, nil
}

// load reads the index once. g.mu must be locked, as for the following methods.
func (g *source) load() error {
	if g.loaded {
		return nil
	}
	x, err := openIndex(g.path + indexExt)
	switch {
	case err == nil && g.fits(x):
		g.sorted = x
	case err == nil && g.name.isPack(), errors.Is(err, errIndex) && g.name.isPack(), isGone(err) && g.name.isPack():
		err = g.rebuild()
	case err == nil, errors.Is(err, errIndex), isGone(err):
		err = g.grow()
	default:
		return err
	}
	g.loaded = err == nil
	return err
}

// fits reports whether a sorted index belongs to the source.
func (g *source) fits(x *sortedIndex) bool {
	if g.name.isPack() {
		p, err := g.openPack(x.size)
		return err != nil || p.size() == x.size // reading reports the error
	}
	info, err := os.Lstat(g.dataPath())
	if err != nil || info.Size() != x.size {
		return err != nil
	}
	head, err := readFrom(g.dataPath(), 0, record.HeaderSize)
	h, ok := record.Parse(head)
	return err != nil || !ok || h.Hash == x.first
}

// open opens the file of a segment.
func (g *source) open() (*os.File, error) {
	if g.file == nil {
		f, err := safeopen.Open(g.path+segmentExt, safeopen.NoFollow)
		if err != nil {
			return nil, err
		}
		g.file = f
	}
	return g.file, nil
}

func (g *source) openPack(size int64) (*pack, error) {
	if g.pack == nil {
		p, err := openPack(g.path+packExt, size, g.decoder)
		if err != nil {
			return nil, err
		}
		g.pack = p
	}
	return g.pack, nil
}

// grow reads additions to a segment that isn't sealed. Its index contains the headers of its records, and counts up
// to the first that is invalid or whose record isn't in the file. The rest of the segment is scanned.
func (g *source) grow() error {
	f, err := g.open()
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if g.redone {
		return g.rebuild()
	}
	g.info, g.behind = info, nil
	if g.table == nil {
		g.table = &table{}
	}
	index, err := readFrom(g.path+indexExt, int64(g.used), maxSegment)
	if err != nil && !isGone(err) {
		return err
	}
	first := g.table.end == 0
	used := g.table.addHeaders(index, info.Size())
	g.used += used
	if first && g.isForeign(f, info.Size()) {
		return g.rebuild()
	}
	if g.whole = g.table.end == info.Size() && used == len(index); g.whole {
		return nil
	}
	rest := make([]byte, min(info.Size()-g.table.end, maxSegment))
	n, err := readFull(f, rest, g.table.end)
	if err != nil {
		return err
	}
	g.behind = &table{}
	g.behind.addScanned(rest[:n], g.table.end)
	return nil
}

// isForeign reports whether the index in the table belongs to another segment: its last record isn't where the
// segment has it, and this isn't only damage, because the index doesn't end with the segment or others aren't there
// either.
func (g *source) isForeign(f *os.File, size int64) bool {
	n := len(g.table.entries)
	isAt := func(i int) bool {
		e := g.table.entries[i]
		head := make([]byte, record.HeaderSize)
		read, err := readFull(f, head, e.at)
		h, ok := record.Parse(head[:read])
		return err != nil || ok && h == record.Header{Kind: e.kind, Length: e.length, Hash: e.hash}
	}
	return n > 0 && !isAt(n-1) && (g.table.end != size || !isAt(n/2) || !isAt(n*3/4))
}

// readFrom reads a file from an offset to its end, at most limit bytes.
func readFrom(path string, at, limit int64) ([]byte, error) {
	f, err := safeopen.Open(path, safeopen.NoFollow)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil || info.Size() <= at {
		return nil, err
	}
	data := make([]byte, min(info.Size()-at, limit))
	n, err := readFull(f, data, at)
	return data[:n], err
}

// rebuild replaces the index by what the records say.
func (g *source) rebuild() (err error) {
	t := &table{}
	if !g.name.isPack() {
		if g.info, err = os.Lstat(g.dataPath()); err != nil {
			return err
		}
	}
	err = g.scan(context.Background(), func(data []byte, from int64) error {
		t.addScanned(data, from)
		return nil
	})
	if err == nil {
		g.sorted, g.table, g.behind, g.whole, g.redone, g.loaded = nil, t, nil, false, true, true
	}
	return err
}

// scan passes the stream to read, in pieces of whole records. A frame of a pack that can't be decoded is
// omitted.
func (g *source) scan(ctx context.Context, read func(data []byte, from int64) error) error {
	if !g.name.isPack() {
		data, err := readFrom(g.path+segmentExt, 0, maxSegment)
		if err != nil {
			return err
		}
		return read(data, 0)
	}
	p, err := g.openPack(-1)
	if err != nil {
		return err
	}
	for i, f := range p.frames {
		data, err := p.content(i)
		if errors.Is(err, errPack) {
			continue
		}
		if err == nil {
			err = read(data, f.start)
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// record reads the body of a record. right means that its header is intact; otherwise the index can be wrong.
func (g *source) record(e entry) (body []byte, right bool, err error) {
	read, err := g.reader()
	if err != nil {
		return nil, false, err
	}
	data, err := read(e.at, record.HeaderSize+e.length)
	if err != nil {
		return nil, false, err
	}
	h, ok := record.Parse(data)
	return data[min(record.HeaderSize, len(data)):], ok && h == record.Header{Kind: e.kind, Length: e.length, Hash: e.hash},
		nil
}

// reader returns a function that reads a part of the stream. A segment can be shorter.
func (g *source) reader() (func(at int64, length int) ([]byte, error), error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.name.isPack() {
		p, err := g.openPack(-1)
		if err != nil {
			return nil, err
		}
		return p.read, nil
	}
	f, err := g.open()
	return func(at int64, length int) ([]byte, error) {
		data := make([]byte, length)
		n, err := readFull(f, data, at)
		return data[:n], err
	}, err
}

// isIntact reports whether neither the index nor the seek table of a pack is damaged.
func (g *source) isIntact() (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, err := g.openPack(-1)
	return err == nil && !g.redone && !p.searched, err
}

// distrust rebuilds the index unless that was done, and reports whether it did.
func (g *source) distrust() (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.redone {
		return false, nil
	}
	return true, g.rebuild()
}

// update reads additions of other processes to a segment that isn't sealed. last means that it is the newest one.
func (g *source) update(last bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	info, err := os.Lstat(g.dataPath())
	switch {
	case err != nil:
		return err
	case !g.loaded || g.sorted != nil || last && os.SameFile(info, g.info) && info.Size() == g.info.Size():
		return nil
	case os.SameFile(info, g.info):
		if x, err := openIndex(g.path + indexExt); err != nil || !g.fits(x) {
			if err = g.grow(); err == nil {
				return nil
			}
		}
	}
	// It was sealed, or a redaction has replaced it: it is loaded when it is needed.
	g.file, g.table, g.behind, g.used, g.redone, g.loaded = nil, nil, nil, 0, false, false
	return nil
}

// close forgets the open file, because another one has its name now.
func (g *source) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.file, g.pack = nil, nil
}

// lastPut returns the time of the last put into a segment that isn't sealed.
func (g *source) lastPut() (time.Time, error) {
	info, err := os.Lstat(g.dataPath())
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}
