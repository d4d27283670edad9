package cas

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// CheckCanonical reports the first byte at which a payload is not what [Encode]
// writes. One value has one encoding, so that one content has one hash; the
// CBOR library alone would accept several.
func CheckCanonical(payload []byte) error {
	if len(payload) > MaxPayload {
		return fmt.Errorf("payload of %d bytes is too big, at most %d", len(payload), MaxPayload)
	}
	c := checker{data: payload}
	err := c.item(0)
	if err == nil && c.pos < len(payload) {
		err = errors.New("more than one value")
	}
	if err != nil {
		return fmt.Errorf("payload is not canonical CBOR: byte %d: %w", c.pos, err)
	}
	return nil
}

// The major types of CBOR, RFC 8949 section 3.1.
const (
	majorUint byte = iota
	majorNegative
	majorBytes
	majorText
	majorArray
	majorMap
	majorTag
	majorSimple
)

// checker walks one payload; pos is the first byte not yet accepted.
type checker struct {
	data []byte
	pos  int
}

func (c *checker) item(depth int) error {
	start := c.pos
	major, arg, err := c.head()
	if err != nil {
		return err
	}
	switch major {
	case majorUint, majorNegative:
		// A negative integer is -1-arg.
		if arg > maxSafe-uint64(major) {
			c.pos = start
			return errors.New("integer beyond 2^53-1")
		}
		return nil
	case majorText:
		_, err := c.text(arg)
		return err
	case majorArray:
		return c.array(arg, depth+1)
	case majorMap:
		return c.object(arg, depth+1)
	case majorSimple:
		return nil
	}
	c.pos = start
	return fmt.Errorf("major type %d is not JSON", major)
}

// head reads the initial byte and its argument, which must be in the shortest
// form. For simple values it accepts only what JSON has.
func (c *checker) head() (major byte, arg uint64, err error) {
	rest := c.data[c.pos:]
	if len(rest) == 0 {
		return 0, 0, errors.New("unexpected end")
	}
	major, info := rest[0]>>5, rest[0]&0x1f
	if major == majorSimple {
		return major, 0, c.simple(info)
	}
	if info < 24 {
		c.pos++
		return major, uint64(info), nil
	}
	if info > 27 {
		return 0, 0, errors.New("indefinite or reserved length")
	}
	size := 1 << (info - 24)
	if len(rest) <= size {
		return 0, 0, errors.New("unexpected end")
	}
	var smallest uint64 // that needs this size
	switch size {
	case 1:
		arg, smallest = uint64(rest[1]), 24
	case 2:
		arg, smallest = uint64(binary.BigEndian.Uint16(rest[1:])), 1<<8
	case 4:
		arg, smallest = uint64(binary.BigEndian.Uint32(rest[1:])), 1<<16
	case 8:
		arg, smallest = binary.BigEndian.Uint64(rest[1:]), 1<<32
	}
	if arg < smallest {
		return 0, 0, errors.New("number is not in its shortest form")
	}
	c.pos += 1 + size
	return major, arg, nil
}

func (c *checker) simple(info byte) error {
	switch info {
	case 20, 21, 22: // false, true, null
		c.pos++
		return nil
	case 27:
		return c.float()
	}
	return fmt.Errorf("simple value or float of kind %d is not JSON, or not in its one form", info)
}

func (c *checker) float() error {
	rest := c.data[c.pos:]
	if len(rest) < 9 {
		return errors.New("unexpected end")
	}
	f := math.Float64frombits(binary.BigEndian.Uint64(rest[1:]))
	n, err := normalizeFloat(f)
	if err != nil {
		return err
	}
	if _, integral := n.(int64); integral {
		return errors.New("float that must be an integer")
	}
	c.pos += 9
	return nil
}

func (c *checker) text(length uint64) ([]byte, error) {
	if length > uint64(len(c.data)-c.pos) {
		return nil, errors.New("unexpected end of text")
	}
	s := c.data[c.pos : c.pos+int(length)]
	if !utf8.Valid(s) {
		return nil, errors.New("text is not UTF-8")
	}
	c.pos += int(length)
	return s, nil
}

func (c *checker) array(n uint64, depth int) error {
	if depth > MaxDepth {
		return errTooDeep()
	}
	for range n {
		if err := c.item(depth); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) object(n uint64, depth int) error {
	if depth > MaxDepth {
		return errTooDeep()
	}
	var last []byte
	for range n {
		start := c.pos
		major, length, err := c.head()
		if err != nil {
			return err
		}
		if major != majorText {
			c.pos = start
			return errors.New("key is not text")
		}
		if _, err := c.text(length); err != nil {
			return err
		}
		key := c.data[start:c.pos]
		if bytes.Compare(last, key) >= 0 {
			c.pos = start
			return errors.New("keys are not in order")
		}
		last = key
		if err := c.item(depth); err != nil {
			return err
		}
	}
	return nil
}
