package snapshot

import (
	"compress/zlib"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"
)

// Packer writes a pack of git's without deltas.
type Packer struct {
	to     io.Writer
	digest hash.Hash
	zip    *zlib.Writer
	err    error
}

// NewPacker begins a pack of n objects, whose names are of a hash function.
func NewPacker(to io.Writer, function string, n int) *Packer {
	p := &Packer{digest: hashes(function)()}
	p.to = io.MultiWriter(to, p.digest)
	p.zip, p.err = zlib.NewWriterLevel(p.to, zlib.BestSpeed)
	p.write(binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(n)))
	return p
}

func (p *Packer) write(data []byte) {
	if p.err == nil {
		_, p.err = p.to.Write(data)
	}
}

// The kinds of objects in a pack.
const (
	CommitKind = 1
	Tree       = 2
	Blob       = 3
)

// Add writes an object: its kind and size, 4 bits and then 7 in a byte, and its content.
func (p *Packer) Add(kind int, content []byte) error {
	size := len(content)
	head := []byte{byte(kind<<4 | size&15)}
	for size >>= 4; size > 0; size >>= 7 {
		head[len(head)-1] |= 0x80
		head = append(head, byte(size&127))
	}
	p.write(head)
	if p.err != nil {
		return p.err
	}
	p.zip.Reset(p.to)
	_, err := p.zip.Write(content)
	p.err = errors.Join(err, p.zip.Close())
	return p.err
}

// commitText returns the text of a commit that keeps a tree.
func commitText(tree, parent string, at time.Time) string {
	text := "tree " + tree + "\n"
	if parent != "" {
		text += "parent " + parent + "\n"
	}
	who := fmt.Sprintf(" uwf <uwf> %d +0000\n", at.Unix())
	return text + "author" + who + "committer" + who + "\nuwf\n"
}

// hashObject returns the name that git gives to an object.
func hashObject(function, kind, text string) string {
	h := hashes(function)()
	fmt.Fprintf(h, "%s %d\x00%s", kind, len(text), text)
	return hex.EncodeToString(h.Sum(nil))
}

func hashes(function string) func() hash.Hash {
	if function == "sha256" {
		return sha256.New
	}
	return sha1.New
}

// Close ends the pack.
func (p *Packer) Close() error {
	p.write(p.digest.Sum(nil))
	return p.err
}
