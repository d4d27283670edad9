package fsstore

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sort"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/united-workforce/uwf/cas/record"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/safeopen"
)

// entry is the place of a record in a stream: the content of a segment, or the uncompressed content of a pack.
type entry struct {
	hash   uint64
	kind   record.Kind
	at     int64
	length int // of the body
}

func (e entry) end() int64 { return e.at + record.HeaderSize + int64(e.length) }

// hides reports whether a record hides older ones.
func (e entry) hides() bool {
	return e.kind == record.NoContent || e.kind == record.NoSeal || e.kind == record.NoHome
}

// group is a set of kinds of which the newest record of a hash counts.
type group byte

const (
	content group = 'n'
	seals   group = 's'
	homes   group = 'h'
)

func groupOf(k record.Kind) group {
	switch k {
	case record.Node, record.Tombstone, record.NoContent:
		return content
	case record.Seal, record.NoSeal:
		return seals
	case record.Home, record.NoHome:
		return homes
	}
	return 0
}

// headers is the index of a segment that isn't sealed: the headers of its records, each of which begins where the one
// before it ends. They stay encoded, because every process reads all of them. Those with the same slot are linked, the
// newest first.
type headers struct {
	raw   []byte
	marks []int64  // offset of each record whose number is a multiple of markEvery
	slots []uint32 // number of the newest header + 1; their count is a power of two
	older []uint32 // by number: number of the next older one in the slot + 1
	end   int64    // of the last record
}

const markEvery = 64

func (h *headers) count() int { return len(h.older) }

// add adds the headers at the beginning of an index, which it keeps, until one is invalid or its record ends after
// limit. It returns the number of bytes used.
func (h *headers) add(index []byte, limit int64) (used int) {
	h.reserve(h.count() + len(index)/record.HeaderSize)
	for ; len(index)-used >= record.HeaderSize; used += record.HeaderSize {
		next, ok := record.Parse(index[used:])
		if !ok || h.end+next.Size() > limit {
			break
		}
		if h.count()%markEvery == 0 {
			h.marks = append(h.marks, h.end)
		}
		h.link(next.Hash)
		h.end += next.Size()
	}
	if h.raw == nil {
		h.raw = index[:used]
	} else {
		h.raw = append(h.raw, index[:used]...)
	}
	return used
}

// reserve makes room for n headers.
func (h *headers) reserve(n int) {
	if n <= len(h.slots) {
		return
	}
	size := 64
	for size < n {
		size *= 2
	}
	h.slots, h.older = make([]uint32, size), make([]uint32, 0, size)
	for i := 0; i < len(h.raw); i += record.HeaderSize {
		next, _ := record.Parse(h.raw[i:])
		h.link(next.Hash)
	}
}

func (h *headers) link(hash uint64) {
	slot := &h.slots[hash&uint64(len(h.slots)-1)]
	h.older = append(h.older, *slot)
	*slot = uint32(len(h.older))
}

// entry returns the place of a record.
func (h *headers) entry(i int) entry {
	at := h.marks[i/markEvery]
	for j := i / markEvery * markEvery; ; j++ {
		head, _ := record.Parse(h.raw[j*record.HeaderSize:])
		if j == i {
			return entry{head.Hash, head.Kind, at, head.Length}
		}
		at += head.Size()
	}
}

// find returns the records of a hash, the newest first.
func (h *headers) find(hash uint64) (found []entry) {
	if len(h.slots) == 0 {
		return nil
	}
	for i := h.slots[hash&uint64(len(h.slots)-1)]; i > 0; i = h.older[i-1] {
		if record.HashAt(h.raw[int(i-1)*record.HeaderSize:]) == hash {
			found = append(found, h.entry(int(i-1)))
		}
	}
	return found
}

// entries returns all records, by place.
func (h *headers) entries() []entry {
	all := make([]entry, 0, h.count())
	var at int64
	for i := 0; i < len(h.raw); i += record.HeaderSize {
		head, _ := record.Parse(h.raw[i:])
		all = append(all, entry{head.Hash, head.Kind, at, head.Length})
		at += head.Size()
	}
	return all
}

// scanned returns the records found in data, which begins at offset from of the stream.
func scanned(data []byte, from int64) (found []entry) {
	for at, h := range record.Scan(data) {
		found = append(found, entry{h.Hash, h.Kind, from + int64(at), h.Length})
	}
	return found
}

// A sorted index belongs to a sealed segment or to a pack:
//
//	"uwf index 1\n"
//	time of the last put, in ms (8 bytes)   size of the stream (8)   hash of its first record (8)
//	CRC-32C of everything before the entries, without this field (4)
//	256 times: number of entries whose hash begins with this byte or a smaller one (4), CRC-32C of
//	           the entries that begin with this byte (4)
//	entries, by hash and offset: hash (8), kind (1), offset (7), length (4)
const (
	indexMagic = "uwf index 1\n"
	indexWords = "uwf index " // of every version
	indexFixed = len(indexMagic) + 3*8 + 4
	indexTable = 256 * 8
	indexStart = indexFixed + indexTable
	entrySize  = 8 + 1 + 7 + 4
)

// encodeIndex returns a sorted index.
func encodeIndex(entries []entry, sealedAt, size int64) []byte {
	var first uint64
	if len(entries) > 0 {
		first = slices.MinFunc(entries, func(a, b entry) int { return cmp.Compare(a.at, b.at) }).hash
	}
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.at, b.at)) })
	out := make([]byte, indexStart, indexStart+len(entries)*entrySize)
	copy(out, indexMagic)
	binary.BigEndian.PutUint64(out[len(indexMagic):], uint64(sealedAt))
	binary.BigEndian.PutUint64(out[len(indexMagic)+8:], uint64(size))
	binary.BigEndian.PutUint64(out[len(indexMagic)+16:], first)
	next := 0
	for b := range 256 {
		start := len(out)
		for ; next < len(entries) && byte(entries[next].hash>>56) == byte(b); next++ {
			e := entries[next]
			out = binary.BigEndian.AppendUint64(out, e.hash)
			out = binary.BigEndian.AppendUint64(out, uint64(e.kind)<<56|uint64(e.at))
			out = binary.BigEndian.AppendUint32(out, uint32(e.length))
		}
		binary.BigEndian.PutUint32(out[indexFixed+8*b:], uint32(next))
		binary.BigEndian.PutUint32(out[indexFixed+8*b+4:], record.Checksum(out[start:]))
	}
	binary.BigEndian.PutUint32(out[indexFixed-4:], headSum(out))
	return out
}

func headSum(index []byte) uint32 {
	return record.Checksum(slices.Concat(index[:indexFixed-4], index[indexFixed:indexStart]))
}

// sortedIndex is a sorted index. It reads only the parts that are needed.
type sortedIndex struct {
	readAt   func(into []byte, at int64) (int, error)
	sealedAt int64
	size     int64 // of the stream
	first    uint64
	table    []byte

	mu      sync.Mutex
	buckets [256][]byte
}

// errIndex means that an index is damaged, or isn't sorted. It can be rebuilt from its stream.
var errIndex = errors.New("the index is damaged")

// openIndex reads the beginning of a sorted index, whose file stays open. It returns [errIndex], and a
// [*protocol.Error] of code unsupported-version for the index of a newer program.
func (c *files) openIndex(path string) (*sortedIndex, error) {
	f, err := safeopen.Open(path, safeopen.NoFollow)
	if err != nil {
		return nil, err
	}
	x, err := readIndex(f, path)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	c.keep(path, f)
	x.readAt = func(into []byte, at int64) (int, error) { return c.readAt(path, into, at) }
	return x, nil
}

func readIndex(f *os.File, path string) (*sortedIndex, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	head := make([]byte, indexStart)
	if n, err := readFull(f, head, 0); err != nil || n < indexStart || !bytes.HasPrefix(head, []byte(indexWords)) ||
		headSum(head) != binary.BigEndian.Uint32(head[indexFixed-4:]) {
		return nil, cmp.Or(err, errIndex)
	}
	if !bytes.HasPrefix(head, []byte(indexMagic)) {
		return nil, &protocol.Error{Code: protocol.CodeUnsupportedVersion, Message: fmt.Sprintf(
			"%s has a format that this program does not support; a newer uwf created it", path)}
	}
	if x := parseIndex(head); x.size >= 0 && info.Size() == int64(indexStart+x.count()*entrySize) {
		return x, nil
	}
	return nil, errIndex
}

func parseIndex(head []byte) *sortedIndex {
	return &sortedIndex{
		sealedAt: int64(binary.BigEndian.Uint64(head[len(indexMagic):])),
		size:     int64(binary.BigEndian.Uint64(head[len(indexMagic)+8:])),
		first:    binary.BigEndian.Uint64(head[len(indexMagic)+16:]),
		table:    head[indexFixed:indexStart],
	}
}

// sortedOf returns an index in memory.
func sortedOf(entries []entry) *sortedIndex {
	data := encodeIndex(entries, 0, 0)
	x := parseIndex(data)
	x.readAt = func(into []byte, at int64) (int, error) { return copy(into, data[at:]), nil }
	return x
}

// readFull is ReadAt without an error at the end of the file.
func readFull(f *os.File, into []byte, at int64) (int, error) {
	n, err := f.ReadAt(into, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, err
	}
	return n, nil
}

func (x *sortedIndex) count() int { return int(binary.BigEndian.Uint32(x.table[indexTable-8:])) }

// bucket returns the encoded entries whose hashes begin with b. It returns [errIndex].
func (x *sortedIndex) bucket(b byte) ([]byte, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	low := 0
	if b > 0 {
		low = int(binary.BigEndian.Uint32(x.table[8*int(b)-8:]))
	}
	high := int(binary.BigEndian.Uint32(x.table[8*int(b):]))
	if low >= high || x.buckets[b] != nil {
		return x.buckets[b], nil
	}
	data := make([]byte, (high-low)*entrySize)
	n, err := x.readAt(data, int64(indexStart+low*entrySize))
	if err == nil && (n < len(data) || record.Checksum(data) != binary.BigEndian.Uint32(x.table[8*int(b)+4:])) {
		err = errIndex
	}
	if err != nil {
		return nil, err
	}
	x.buckets[b] = data
	return data, nil
}

func decodeEntry(b []byte) entry {
	word := binary.BigEndian.Uint64(b[8:])
	return entry{binary.BigEndian.Uint64(b), record.Kind(word >> 56), int64(word & (1<<56 - 1)),
		int(binary.BigEndian.Uint32(b[16:]))}
}

// find returns the records of a hash, the newest first.
func (x *sortedIndex) find(hash uint64) (found []entry, err error) {
	data, err := x.bucket(byte(hash >> 56))
	if err != nil {
		return nil, err
	}
	n := len(data) / entrySize
	hashOf := func(i int) uint64 { return binary.BigEndian.Uint64(data[i*entrySize:]) }
	for i := sort.Search(n, func(i int) bool { return hashOf(i) >= hash }); i < n && hashOf(i) == hash; i++ {
		found = append(found, decodeEntry(data[i*entrySize:]))
	}
	slices.Reverse(found)
	return found, nil
}

// isGone reports whether a file was removed, as by a collector, since it was listed.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// entries returns the records of some buckets.
func (x *sortedIndex) entries(low, high byte) (all []entry, err error) {
	for b := int(low); b <= int(high); b++ {
		data, err := x.bucket(byte(b))
		if err != nil {
			return nil, err
		}
		for ; len(data) > 0; data = data[entrySize:] {
			all = append(all, decodeEntry(data))
		}
	}
	return all, nil
}

// A pack is a sequence of zstd frames, each of whole records, and ends with the seek table of zstd's seekable
// format: a skippable frame that other decoders ignore. All numbers in it are little endian.
const (
	frameSize = 128 << 10 // of the records in a frame, unless a single one is larger
	maxFrame  = record.MaxBody + record.HeaderSize + frameSize

	skippableMagic = 0x184D2A5E
	seekableMagic  = 0x8F92EAB1
	seekFooter     = 9
	seekEntry      = 8
	skippableHead  = 8
)

// frame is the place of a zstd frame.
type frame struct {
	start  int64 // in the stream of records
	length int
	at     int64 // in the file
	size   int
}

// pack is the content of an open pack.
type pack struct {
	file    *os.File
	frames  []frame
	decoder func() (*zstd.Decoder, error)
	// searched means that the seek table is damaged.
	searched bool

	mu     sync.Mutex
	cached map[int][]byte // content of frames
	recent []int          // the oldest first
}

// cachedFrames bounds the cache of a pack.
const cachedFrames = 16

// errPack means that a pack's structure is damaged.
var errPack = errors.New("the pack is damaged")

// openPack opens a pack whose stream of records has a known size; -1: unknown.
func openPack(path string, size int64, decoder func() (*zstd.Decoder, error)) (*pack, error) {
	f, err := safeopen.Open(path, safeopen.NoFollow)
	if err != nil {
		return nil, err
	}
	p := &pack{file: f, decoder: decoder, cached: map[int][]byte{}}
	if p.frames, err = readSeekTable(f); err == nil && (size < 0 || p.size() == size) {
		return p, nil
	}
	if err == nil || errors.Is(err, errPack) {
		p.searched = true
		p.frames, err = findFrames(f, decoder)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return p, nil
}

// size returns the size of the stream of records.
func (p *pack) size() int64 {
	if len(p.frames) == 0 {
		return 0
	}
	last := p.frames[len(p.frames)-1]
	return last.start + int64(last.length)
}

// readSeekTable reads the table at the end of a pack. It returns [errPack].
func readSeekTable(f *os.File) ([]frame, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	footer := make([]byte, seekFooter)
	if info.Size() < seekFooter {
		return nil, errPack
	}
	if n, err := readFull(f, footer, info.Size()-seekFooter); n < seekFooter || err != nil {
		return nil, cmp.Or(err, errPack)
	}
	count := int64(binary.LittleEndian.Uint32(footer))
	begin := info.Size() - seekFooter - count*seekEntry - skippableHead
	if binary.LittleEndian.Uint32(footer[5:]) != seekableMagic || footer[4] != 0 || begin < 0 {
		return nil, errPack
	}
	table := make([]byte, skippableHead+count*seekEntry)
	if n, err := readFull(f, table, begin); n < len(table) || err != nil {
		return nil, cmp.Or(err, errPack)
	}
	if binary.LittleEndian.Uint32(table) != skippableMagic {
		return nil, errPack
	}
	var next frame
	frames := make([]frame, 0, count)
	for table = table[skippableHead:]; len(table) > 0; table = table[seekEntry:] {
		next.size, next.length = int(binary.LittleEndian.Uint32(table)), int(binary.LittleEndian.Uint32(table[4:]))
		if next.length > maxFrame {
			return nil, errPack
		}
		frames = append(frames, next)
		next.at, next.start = next.at+int64(next.size), next.start+int64(next.length)
	}
	if next.at != begin {
		return nil, errPack
	}
	return frames, nil
}

// appendSeekTable appends the table for frames to a pack.
func appendSeekTable(b []byte, frames []frame) []byte {
	b = binary.LittleEndian.AppendUint32(b, skippableMagic)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(frames)*seekEntry+seekFooter))
	for _, f := range frames {
		b = binary.LittleEndian.AppendUint32(b, uint32(f.size))
		b = binary.LittleEndian.AppendUint32(b, uint32(f.length))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(frames)))
	return binary.LittleEndian.AppendUint32(append(b, 0), seekableMagic)
}

// findFrames finds the frames of a pack whose seek table is damaged: each begins where the one before it ends.
func findFrames(f *os.File, decoder func() (*zstd.Decoder, error)) (frames []frame, err error) {
	d, err := decoder()
	if err != nil {
		return nil, err
	}
	var next frame
	for {
		if next.size, next.length, err = encodedSize(f, next.at); err != nil || next.size == 0 {
			return frames, err
		}
		if next.length == 0 { // a short frame doesn't contain its length
			raw := make([]byte, next.size)
			n, err := readFull(f, raw, next.at)
			content, failed := d.DecodeAll(raw[:n], nil)
			if err != nil || failed != nil {
				return frames, err
			}
			next.length = len(content)
		}
		frames = append(frames, next)
		next.at, next.start = next.at+int64(next.size), next.start+int64(next.length)
	}
}

// encodedSize returns the size of a frame according to its header and the headers of its blocks, and the length of its
// content, if the header contains it; 0 if there is no frame.
func encodedSize(f *os.File, at int64) (size, length int, err error) {
	const (
		blockHead = 3
		most      = maxFrame + maxFrame/128 // a block that can't be compressed has at most 128 KiB
	)
	head := make([]byte, zstd.HeaderMaxSize)
	n, err := readFull(f, head, at)
	var h zstd.Header
	if h.Decode(head[:n]) != nil || h.Skippable || h.FrameContentSize > maxFrame || err != nil {
		return 0, 0, err
	}
	for size = h.HeaderSize; size < most; {
		n, err := readFull(f, head[:blockHead], at+int64(size))
		if n < blockHead || err != nil {
			return 0, 0, err
		}
		block := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
		last, repeated, length := block&1 == 1, block>>1&3 == 1, block>>3
		if repeated {
			length = 1
		}
		size += blockHead + length
		if last && h.HasCheckSum {
			size += 4
		}
		if last {
			return size, int(h.FrameContentSize), nil
		}
	}
	return 0, 0, nil
}

// read returns a part of the stream, which a single frame contains. It returns [errPack].
func (p *pack) read(at int64, length int) ([]byte, error) {
	i := sort.Search(len(p.frames), func(i int) bool { return p.frames[i].start > at }) - 1
	if i < 0 {
		return nil, errPack
	}
	data, err := p.content(i)
	if err != nil {
		return nil, err
	}
	from := int(at - p.frames[i].start)
	if from+length > len(data) {
		return nil, errPack
	}
	return slices.Clone(data[from : from+length]), nil
}

// content returns the records of a frame. It returns [errPack].
func (p *pack) content(i int) ([]byte, error) {
	p.mu.Lock()
	data, ok := p.cached[i]
	p.mu.Unlock()
	if ok {
		return data, nil
	}
	f := p.frames[i]
	raw := make([]byte, f.size)
	n, err := readFull(p.file, raw, f.at)
	if err != nil {
		return nil, err
	}
	decoder, err := p.decoder()
	if err != nil {
		return nil, err
	}
	data, err = decoder.DecodeAll(raw[:n], make([]byte, 0, f.length))
	if err != nil || len(data) != f.length {
		return nil, fmt.Errorf("%w: frame at byte %d", errPack, f.at)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.cached[i]; !ok {
		if p.recent = append(p.recent, i); len(p.recent) > cachedFrames {
			delete(p.cached, p.recent[0])
			p.recent = p.recent[1:]
		}
		p.cached[i] = data
	}
	return data, nil
}

// newDecoder returns a decoder for frames. It ignores their checksums, because records have checksums.
func newDecoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxFrame),
		zstd.IgnoreChecksum(true))
}

// packWriter builds a pack. The nodes of the chain, which are read most, have separate frames.
type packWriter struct {
	encoder *zstd.Encoder
	out     io.Writer
	parts   [2]packPart
	frames  []frame
	entries []entry
	at      int64 // in the file
	start   int64 // in the stream, of the next frame
}

// packPart is the content of the next frame. Its entries have places in it.
type packPart struct {
	buffer  []byte
	entries []entry
}

func newPackWriter(out io.Writer) (*packWriter, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	return &packWriter{encoder: encoder, out: out}, err
}

// add adds a record to a part.
func (w *packWriter) add(part int, kind record.Kind, hash uint64, body []byte) error {
	p := &w.parts[part]
	if len(p.buffer) > 0 && len(p.buffer)+len(body) > frameSize {
		if err := w.flush(part); err != nil {
			return err
		}
	}
	p.entries = append(p.entries, entry{hash, kind, int64(len(p.buffer)), len(body)})
	p.buffer = record.Append(p.buffer, kind, hash, body)
	return nil
}

// flush ends the current frame of a part.
func (w *packWriter) flush(part int) error {
	p := &w.parts[part]
	if len(p.buffer) == 0 {
		return nil
	}
	for _, e := range p.entries {
		e.at += w.start
		w.entries = append(w.entries, e)
	}
	packed := w.encoder.EncodeAll(p.buffer, nil)
	w.frames = append(w.frames, frame{w.start, len(p.buffer), w.at, len(packed)})
	w.at, w.start = w.at+int64(len(packed)), w.start+int64(len(p.buffer))
	p.buffer, p.entries = p.buffer[:0], p.entries[:0]
	_, err := w.out.Write(packed)
	return err
}

// finish writes the seek table and returns the index.
func (w *packWriter) finish(lastPut int64) (index []byte, err error) {
	for part := range w.parts {
		if err := w.flush(part); err != nil {
			return nil, err
		}
	}
	if _, err := w.out.Write(appendSeekTable(nil, w.frames)); err != nil {
		return nil, err
	}
	return encodeIndex(w.entries, lastPut, w.start), w.encoder.Close()
}
