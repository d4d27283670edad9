package tools

import (
	"bytes"
	"fmt"
	"io"

	"golang.org/x/net/html/charset"
)

// charEncoding is how a file's text is written down.
type charEncoding int

const (
	plain   charEncoding = iota // UTF-8, or something like it
	withBOM                     // UTF-8 behind a byte order mark
	utf16LE
	utf16BE
	binary
)

const bom = "\ufeff"

// encodingOf judges a file by its beginning.
func encodingOf(start []byte) charEncoding {
	switch {
	case bytes.HasPrefix(start, []byte(bom)):
		return withBOM
	case bytes.HasPrefix(start, []byte{0xff, 0xfe}) && !bytes.HasPrefix(start, []byte{0xff, 0xfe, 0, 0}):
		return utf16LE
	case bytes.HasPrefix(start, []byte{0xfe, 0xff}):
		return utf16BE
	case isBinary(start):
		return binary
	}
	return plain
}

func (e charEncoding) wide() bool { return e == utf16LE || e == utf16BE }

// decode reads text as UTF-8. The byte order mark is still in front of it.
func (e charEncoding) decode(r io.Reader) (io.Reader, error) {
	switch e {
	case utf16LE:
		return charset.NewReaderLabel("utf-16le", r)
	case utf16BE:
		return charset.NewReaderLabel("utf-16be", r)
	}
	return r, nil
}

// note says what a model would not see. Edits keep a byte order mark.
func (e charEncoding) note() string {
	switch {
	case e == withBOM:
		return "[the file begins with a byte order mark, which is not shown; write_file and edit_file keep it]\n"
	case e.wide():
		return "[the file is UTF-16; it is shown as text, but edit_file cannot change it]\n"
	}
	return ""
}

// refuse says why a file cannot be read as UTF-8; nil if it can.
func (e charEncoding) refuse(name string, size int64) error {
	switch {
	case e == binary:
		return fmt.Errorf("%s is a binary file of %d bytes: it cannot be read or edited as text. Use a command for it, if you may run any", name, size)
	case e.wide():
		return fmt.Errorf("%s is UTF-16, not UTF-8: it can be read, but not edited. Replace it with write_file (as UTF-8), or convert it with a command, if you may run any", name)
	}
	return nil
}
