package proxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

var errNoHello = errors.New("no TLS hello")

// serverName returns the server name in a TLS client hello (RFC 8446, RFC 6066), or "", and everything read so
// far. crypto/tls would add megabytes to each adapter. A hello that servers could understand in different ways is
// refused.
func serverName(r io.Reader) (name string, hello io.Reader, err error) {
	var seen bytes.Buffer
	message, err := readHello(io.TeeReader(r, &seen))
	if err == nil {
		name, err = nameIn(message)
	}
	if err != nil {
		return "", nil, err
	}
	return name, &seen, nil
}

// readHello returns the content of a client hello.
func readHello(r io.Reader) ([]byte, error) {
	const handshake, maxRecord, clientHello, maxHello = 22, 1 << 14, 1, 1 << 16 // as in crypto/tls
	var message []byte
	for {
		head := make([]byte, 5) // type, version and length of a record
		if _, err := io.ReadFull(r, head); err != nil {
			return nil, err
		}
		length := int(binary.BigEndian.Uint16(head[3:]))
		if head[0] != handshake || head[1] != 3 || length == 0 || length > maxRecord {
			return nil, errNoHello
		}
		record := make([]byte, length)
		if _, err := io.ReadFull(r, record); err != nil {
			return nil, err
		}
		if message = append(message, record...); len(message) < 4 { // type and length of the message
			continue
		}
		whole := 4 + int(binary.BigEndian.Uint32(message)&0xffffff)
		switch {
		case message[0] != clientHello, whole > maxHello, len(message) > whole:
			return nil, errNoHello
		case len(message) == whole:
			return message[4:], nil
		}
	}
}

// nameIn returns the server name in the content of a client hello, or "".
func nameIn(hello []byte) (name string, err error) {
	h := parser{left: hello}
	h.take(2 + 32) // version and random
	h.vector(1)    // session
	h.vector(2)    // cipher suites
	h.vector(1)    // compression methods
	all, named := parser{bad: h.bad}, false
	if len(h.left) > 0 {
		all.left = h.vector(2)
	}
	for len(all.left) > 0 {
		kind, extension := all.number(2), parser{left: all.vector(2)}
		if kind != 0 {
			continue
		}
		list := parser{left: extension.vector(2), bad: named || extension.bad || len(extension.left) > 0}
		host := list.number(1) == 0
		name, named = string(list.vector(2)), true
		if list.bad || len(list.left) > 0 || !host || name == "" || name[len(name)-1] == '.' {
			return "", errNoHello
		}
	}
	if h.bad || all.bad || len(h.left) > 0 {
		return "", errNoHello
	}
	return name, nil
}

// parser takes fields from the front of a text until one is incomplete; then nothing is left.
type parser struct {
	left []byte
	bad  bool
}

func (p *parser) take(n int) []byte {
	if n > len(p.left) {
		p.bad, p.left = true, nil
		return nil
	}
	taken := p.left[:n]
	p.left = p.left[n:]
	return taken
}

// number takes a big-endian number of n bytes.
func (p *parser) number(n int) (number int) {
	for _, b := range p.take(n) {
		number = number<<8 | int(b)
	}
	return number
}

// vector takes a text after its length of n bytes.
func (p *parser) vector(n int) []byte { return p.take(p.number(n)) }
