package bundle

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Bounds of what is compressed. Nodes and files never shrink as far as this; what does
// is made to fill a disk.
const (
	maxRatio = 1000
	freely   = 64 << 20 // bytes that may come of little
	window   = 32 << 20 // bytes that the reader keeps
)

// inflating is a bundle of version 2 without its compression.
type inflating struct {
	head  []byte // its first line, as far as it was not read yet
	plain *zstd.Decoder
	taken *counter
	given int64
}

// counter counts what is read of the file.
type counter struct {
	from io.Reader
	n    int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	return n, err
}

// decompress begins with a bundle of version 2 whose first line is still to be read.
func decompress(raw *bufio.Reader) (*inflating, error) {
	head := make([]byte, Sniff)
	if _, err := io.ReadFull(raw, head); err != nil {
		return nil, err
	}
	taken := &counter{from: raw}
	plain, err := zstd.NewReader(taken, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
	return &inflating{head: head, plain: plain, taken: taken}, err
}

func (i *inflating) close() { i.plain.Close() }

// Read implements io.Reader.
func (i *inflating) Read(p []byte) (int, error) {
	if len(i.head) > 0 {
		n := copy(p, i.head)
		i.head = i.head[n:]
		return n, nil
	}
	n, err := i.plain.Read(p)
	if i.given += int64(n); i.given > freely+maxRatio*i.taken.n {
		return 0, &FaultError{Offset: i.given, Err: fmt.Errorf("it is %d times as large as its file: no bundle is", maxRatio)}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = &FaultError{Offset: int64(Sniff) + i.given, Err: fmt.Errorf("what is compressed is damaged: %w", err)}
	}
	return n, err
}
