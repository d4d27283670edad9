package fsstore

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/united-workforce/uwf/cas/record"
	"github.com/united-workforce/uwf/util/safeopen"
)

// A pack is a sequence of zstd frames, each of whole records, and ends with the seek table of zstd's seekable
// format: a skippable frame that other decoders ignore. All numbers in it are little endian.
const (
	frameSize = 128 << 10 // of the records in a frame, unless a single one is larger
	maxFrame  = record.MaxBody + record.HeaderSize + frameSize

	skippableMagic = 0x184D2A5E
	seekableMagic  = 0x8F92EAB1
	frameMagic     = 0xFD2FB528
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

// findFrames finds the frames of a pack whose seek table is damaged. Each begins where the one before it ends, or,
// behind damage, with the next magic number. One that can't be decoded is omitted.
func findFrames(f *os.File, decoder func() (*zstd.Decoder, error)) (frames []frame, err error) {
	d, err := decoder()
	if err != nil {
		return nil, err
	}
	var at, start int64
	for {
		size, err := encodedSize(f, at)
		if err != nil {
			return nil, err
		}
		raw := make([]byte, size)
		n, err := readFull(f, raw, at)
		if err != nil {
			return nil, err
		}
		if content, err := d.DecodeAll(raw[:n], nil); err == nil && size > 0 {
			frames = append(frames, frame{start, len(content), at, size})
			at, start = at+int64(size), start+int64(len(content))
			continue
		}
		if at, err = nextFrame(f, at+1); at < 0 || err != nil {
			return frames, err
		}
	}
}

// encodedSize returns the size of a frame according to its header and the headers of its blocks; 0 if there is none.
func encodedSize(f *os.File, at int64) (int, error) {
	const (
		blockHead = 3
		most      = maxFrame + maxFrame/128 // a block that can't be compressed has at most 128 KiB
	)
	head := make([]byte, zstd.HeaderMaxSize)
	n, err := readFull(f, head, at)
	var h zstd.Header
	if h.Decode(head[:n]) != nil || h.Skippable || err != nil {
		return 0, err
	}
	for size := h.HeaderSize; size < most; {
		n, err := readFull(f, head[:blockHead], at+int64(size))
		if n < blockHead || err != nil {
			return 0, err
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
			return size, nil
		}
	}
	return 0, nil
}

// nextFrame returns the place of the next magic number of a frame; -1 if there is none.
func nextFrame(f *os.File, at int64) (int64, error) {
	magic := binary.LittleEndian.AppendUint32(nil, frameMagic)
	part := make([]byte, 1<<20)
	for {
		n, err := readFull(f, part, at)
		if i := bytes.Index(part[:n], magic); i >= 0 || err != nil {
			return at + int64(i), err
		}
		if n < len(part) {
			return -1, nil
		}
		at += int64(n - len(magic) + 1)
	}
}

// frameOf returns the number of the frame that contains an offset of the stream.
func (p *pack) frameOf(at int64) int {
	return sort.Search(len(p.frames), func(i int) bool { return p.frames[i].start > at }) - 1
}

// read returns a part of the stream, which a single frame contains. It returns [errPack].
func (p *pack) read(at int64, length int) ([]byte, error) {
	i := p.frameOf(at)
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
