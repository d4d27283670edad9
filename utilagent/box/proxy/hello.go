package proxy

import (
	"bufio"
	"encoding/binary"
	"errors"
)

// Of TLS, RFC 8446.
const (
	recordHead      = 5
	recordHandshake = 22
	messageHead     = 4
	clientHello     = 1
	helloRandom     = 2 + 32 // the version before it
	extensionName   = 0
)

var errHello = errors.New("no TLS hello")

// serverName returns the name in a TLS client hello, "" if it has none. It takes nothing from r, waits for
// what is missing, and accepts no hello that a server could read in another way.
func serverName(r *bufio.Reader) (string, error) {
	var message []byte
	for at := 0; ; {
		b, err := r.Peek(at + recordHead)
		if err != nil {
			return "", err
		}
		head := b[at:]
		n := int(binary.BigEndian.Uint16(head[3:]))
		if head[0] != recordHandshake || head[1] != 3 || n == 0 {
			return "", errHello
		}
		if b, err = r.Peek(at + recordHead + n); err != nil {
			return "", err
		}
		message = append(message, b[at+recordHead:at+recordHead+n]...)
		at += recordHead + n
		if len(message) < messageHead {
			continue
		}
		rest := len(message) - messageHead - int(binary.BigEndian.Uint32(message)&0xffffff)
		if message[0] != clientHello || rest > 0 {
			return "", errHello
		}
		if rest == 0 {
			return nameInHello(message[messageHead:])
		}
	}
}

func nameInHello(b field) (string, error) {
	ok := len(b) >= helloRandom
	if ok {
		b = b[helloRandom:]
	}
	for _, size := range []int{1, 2, 1} { // session, cipher suites, compression
		_, ok = b.cut(size, ok)
	}
	if ok && len(b) == 0 {
		return "", nil // without extensions
	}
	extensions, ok := b.cut(2, ok)
	name, seen := field(nil), false
	for ok = ok && len(b) == 0; ok && len(extensions) > 0; {
		kind := extensions.number(2)
		extensions = extensions[min(2, len(extensions)):]
		var e field
		if e, ok = extensions.cut(2, ok); kind != extensionName || !ok {
			continue
		}
		list, well := e.cut(2, !seen)
		well = well && list.number(1) == 0 // the kind of a host's name
		list = list[min(1, len(list)):]
		name, well = list.cut(2, well)
		ok = well && len(name) > 0 && len(list) == 0 && len(e) == 0
		seen = true
	}
	if !ok {
		return "", errHello
	}
	return string(name), nil
}

// field is a part of a hello.
type field []byte

// number is the number in the first bytes, or -1.
func (f field) number(size int) int {
	if len(f) < size {
		return -1
	}
	n := 0
	for _, b := range f[:size] {
		n = n<<8 | int(b)
	}
	return n
}

// cut takes a field that begins with its length in so many bytes; ok is false if it was, or if it is not whole.
func (f *field) cut(size int, ok bool) (field, bool) {
	n := f.number(size)
	if !ok || n < 0 || len(*f) < size+n {
		return nil, false
	}
	got := (*f)[size : size+n]
	*f = (*f)[size+n:]
	return got, true
}
