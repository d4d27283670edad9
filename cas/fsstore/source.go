package fsstore

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/united-workforce/uwf/cas/original"
	"github.com/united-workforce/uwf/cas/record"
	"github.com/united-workforce/uwf/util/safeopen"
)

const (
	// A segment of this size is sealed. So is one with this many records, because each process reads all their headers.
	segmentSize    = 16 << 20
	segmentRecords = 32 << 10
	maxSegment     = segmentSize + record.MaxBody + 2*record.HeaderSize

	segmentExt = ".seg"
	packExt    = ".pack"
	indexExt   = ".idx"
)

// source is a segment or a pack.
type source struct {
	name    fileName
	path    string // without extension
	files   *files
	decoder func() (*zstd.Decoder, error)
	first   *original.Files // of version 1; nil for a segment or a pack

	mu     sync.Mutex
	loaded bool
	sorted *sortedIndex // of a sealed segment or a pack, or redone
	recent *headers     // without a sorted index
	behind *sortedIndex // records of a segment that its index doesn't contain yet
	info   fs.FileInfo  // of the file when recent was read
	whole  bool         // recent is exactly what the index contains, and reaches the end of the segment
	redone bool         // sorted was made by scanning the whole stream

	pack *pack

	flushed atomic.Int64 // size when this process flushed it
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
	ext := filepath.Ext(name)
	number, part, isPack := strings.Cut(strings.TrimSuffix(name, ext), "-")
	n.number, _ = strconv.Atoi(number) // the comparison notices an error
	n.part, _ = strconv.Atoi(part)
	ok = ext == segmentExt && !isPack || ext == packExt && n.part > 0
	return n, ok && n.number >= 0 && name == n.String()+ext
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
	if g.first != nil {
		return g.findFiles(hash)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.load(); err != nil {
		return nil, err
	}
	if g.sorted != nil {
		found, err := g.sorted.find(hash)
		if errors.Is(err, errIndex) {
			if err = g.rebuild(); err == nil {
				found, err = g.sorted.find(hash)
			}
		}
		return found, err
	}
	found := g.recent.find(hash)
	if g.behind != nil {
		later, err := g.behind.find(hash)
		return append(later, found...), err
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
	switch {
	case g.first != nil:
		all, err = g.allFiles()
	case g.sorted != nil:
		if all, err = g.sorted.entries(low, high); errors.Is(err, errIndex) {
			if err = g.rebuild(); err == nil {
				all, err = g.sorted.entries(low, high)
			}
		}
	default:
		all = g.recent.entries()
		if g.behind != nil {
			later, _ := g.behind.entries(0, 255) // in memory
			all = append(all, later...)
		}
	}
	all = slices.DeleteFunc(all, func(e entry) bool { return byte(e.hash>>56) < low || byte(e.hash>>56) > high })
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	return all, err
}

// sealed returns the time of the last put into a sealed segment, in ms; false for a segment that isn't
// sealed.
func (g *source) sealed() (at int64, ok bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.load(); err != nil || !g.hasIndex() {
		return 0, false, err
	}
	return g.sorted.sealedAt, true, nil
}

// hasIndex reports whether the source has a sorted index without known damage. g.mu must be locked, as for the
// following methods.
func (g *source) hasIndex() bool { return g.sorted != nil && !g.redone }

// load reads the index once.
func (g *source) load() error {
	if g.loaded {
		return nil
	}
	x, err := g.files.openIndex(g.path + indexExt)
	switch {
	case err == nil && g.fits(x):
		g.sorted = x
	case g.name.isPack() && (err == nil || errors.Is(err, errIndex) || isGone(err)):
		if err == nil && g.pack.searched {
			g.sorted = x // the pack is damaged
		}
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
	info, err := g.files.stat(g.dataPath())
	if err != nil || info.Size() != x.size {
		return err != nil
	}
	head := make([]byte, record.HeaderSize)
	n, err := g.files.readAt(g.dataPath(), head, 0)
	h, ok := record.Parse(head[:n])
	return err != nil || !ok || h.Hash == x.first
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
	info, err := g.files.stat(g.dataPath())
	if err != nil {
		return err
	}
	if g.redone {
		return g.rebuild()
	}
	g.info, g.behind = info, nil
	first := g.recent == nil
	if first {
		g.recent = &headers{}
	}
	most := min(info.Size(), maxSegment) // a record is longer than its header
	index, err := readFrom(g.path+indexExt, int64(g.recent.count())*record.HeaderSize, most)
	if err != nil && !isGone(err) {
		return err
	}
	used := g.recent.add(index, info.Size())
	if first && g.isForeign(info.Size()) {
		return g.rebuild()
	}
	if g.whole = g.recent.end == info.Size() && used == len(index); g.whole {
		return nil
	}
	rest := make([]byte, min(info.Size()-g.recent.end, maxSegment))
	n, err := g.files.readAt(g.dataPath(), rest, g.recent.end)
	g.behind = sortedOf(scanned(rest[:n], g.recent.end))
	return err
}

// isForeign reports whether the index belongs to another segment: its last record isn't where the
// segment has it, and this isn't only damage, because the index doesn't end with the segment or others aren't there
// either.
func (g *source) isForeign(size int64) bool {
	n := g.recent.count()
	isAt := func(i int) bool {
		e := g.recent.entry(i)
		head := make([]byte, record.HeaderSize)
		read, err := g.files.readAt(g.dataPath(), head, e.at)
		h, ok := record.Parse(head[:read])
		return err != nil || ok && h == record.Header{Kind: e.kind, Length: e.length, Hash: e.hash}
	}
	return n > 0 && !isAt(n-1) && (g.recent.end != size || !isAt(n/2) || !isAt(n*3/4))
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
	size := min(info.Size()-at, limit)
	data := make([]byte, size, size+8<<10) // what is appended soon needs no copy
	n, err := readFull(f, data, at)
	return data[:n], err
}

// rebuild replaces the index by what the records say, and of those whose headers can't be read, by what it says.
func (g *source) rebuild() (err error) {
	if !g.name.isPack() {
		if g.info, err = os.Lstat(g.dataPath()); err != nil {
			return err
		}
	}
	all, _, err := g.records()
	if err == nil {
		g.sorted, g.recent, g.behind, g.whole, g.redone, g.loaded = sortedOf(all), nil, nil, false, true, true
	}
	return err
}

// records returns the records of the stream, and its size: those whose headers are intact, and those that only the
// sorted index has.
func (g *source) records() (all []entry, size int64, err error) {
	all, size, err = g.headers()
	for b := 0; b < 256 && err == nil && g.hasIndex(); b++ {
		entries, failed := g.sorted.entries(byte(b), byte(b))
		if failed != nil && !errors.Is(failed, errIndex) {
			err = failed
		}
		for _, e := range entries {
			next := sort.Search(len(all), func(i int) bool { return all[i].end() > e.at })
			if next == len(all) || e.end() <= all[next].at {
				all = slices.Insert(all, next, e)
			}
		}
	}
	return all, size, err
}

// headers returns the records of the stream according to their headers, and its size. It omits a frame of a pack that
// can't be decoded.
func (g *source) headers() (all []entry, size int64, err error) {
	if !g.name.isPack() {
		return segmentHeaders(g.path + segmentExt)
	}
	p, err := g.openPack(-1)
	if err != nil {
		return nil, 0, err
	}
	for i, f := range p.frames {
		data, err := p.content(i)
		if errors.Is(err, errPack) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		all, size = append(all, scanned(data, f.start)...), f.start+int64(len(data))
	}
	return all, size, nil
}

func segmentHeaders(path string) (all []entry, size int64, err error) {
	f, err := safeopen.Open(path, safeopen.NoFollow)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	size = min(info.Size(), maxSegment)
	err = record.ScanFile(f, size, func(at int64, h record.Header) bool {
		all = append(all, entry{h.Hash, h.Kind, at, h.Length})
		return true
	})
	return all, size, err
}

// record reads the body of a record, which can be damaged, or shorter than its index says.
func (g *source) record(e entry) ([]byte, error) {
	switch {
	case g.first != nil:
		return g.readFile(e)
	case g.name.isPack():
		p, err := g.openedPack()
		if err != nil {
			return nil, err
		}
		return p.read(e.at+record.HeaderSize, e.length)
	}
	body := make([]byte, e.length)
	n, err := g.files.readAt(g.dataPath(), body, e.at+record.HeaderSize)
	return body[:n], err
}

// startOf is the number of bytes at the beginning of a record by which [isLost] decides. A body doesn't begin with zeros.
const startOf = record.HeaderSize + 8

// isLost reports whether a record of an index isn't in its segment, according to the beginning of it there: a power cut has
// lost it, or left only a part of its header, before anything durable referred to it.
func isLost(e entry, start []byte) bool {
	start = start[:min(len(start), startOf, record.HeaderSize+e.length)]
	written := len(bytes.TrimRight(start, "\x00"))
	head := record.Header{Kind: e.kind, Length: e.length, Hash: e.hash}.Append(nil)
	return written == 0 || e.length > 0 && written < record.HeaderSize && bytes.HasPrefix(head, start[:written])
}

// isLost reports whether a record isn't in a segment.
func (g *source) isLost(e entry) bool {
	start := make([]byte, startOf)
	n, err := g.files.readAt(g.dataPath(), start, e.at)
	return !g.name.isPack() && err == nil && isLost(e, start[:n])
}

// written returns the records that are in a segment, which it reads once.
func (g *source) written(all []entry) ([]entry, error) {
	f, err := safeopen.Open(g.dataPath(), safeopen.NoFollow)
	if err != nil {
		return nil, err
	}
	in, at := bufio.NewReaderSize(f, 64<<10), int64(0)
	all = slices.DeleteFunc(all, func(e entry) bool {
		_, failed := in.Discard(int(e.at - at))
		start, _ := in.Peek(startOf) // fewer at the end
		at, err = e.at, cmp.Or(err, failed)
		return isLost(e, start)
	})
	return all, errors.Join(err, f.Close())
}

func (g *source) openedPack() (*pack, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.openPack(-1)
}

// isIntact reports whether neither the index nor the seek table of a pack is damaged.
func (g *source) isIntact() (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, err := g.openPack(-1)
	return err == nil && !g.redone && !p.searched, err
}

// update reads additions of other processes to a segment that isn't sealed. last means that it is the newest one, which
// must exist.
func (g *source) update(last bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	fixed := !g.loaded || g.hasIndex() || g.name.isPack()
	if fixed && !last {
		return nil
	}
	info, err := os.Lstat(g.dataPath())
	switch {
	case err != nil:
		return err
	case fixed || last && os.SameFile(info, g.info) && info.Size() == g.info.Size():
		return nil
	case os.SameFile(info, g.info) && info.Size() >= g.info.Size():
		if x, err := g.files.openIndex(g.path + indexExt); err != nil || !g.fits(x) {
			if err = g.grow(); err == nil {
				return nil
			}
		}
	}
	// It was sealed, cut off or replaced: it is loaded when it is needed.
	g.files.forget(g.dataPath())
	g.sorted, g.recent, g.behind, g.redone, g.loaded = nil, nil, nil, false, false
	return nil
}

// close forgets the open file, because another one has its name now, or none.
func (g *source) close() {
	if g.first != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.files.forget(g.dataPath())
	g.files.forget(g.path + indexExt)
	g.pack, g.loaded = nil, false
}

// lastPut returns the time of the last put into a segment that isn't sealed.
func (g *source) lastPut() (time.Time, error) {
	info, err := os.Lstat(g.dataPath())
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}
