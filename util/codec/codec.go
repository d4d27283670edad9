// Package codec encodes values in a fixed order, without reflection, and decodes them in the same order by the same
// code: numbers as varints, texts with their length, so that they needn't be valid UTF-8.
package codec

import (
	"encoding/binary"
	"errors"
)

// ErrDamaged means that data is not what was encoded.
var ErrDamaged = errors.New("damaged data")

// Coder encodes or decodes one value after another. Its methods take the place of a value, which they read or set.
type Coder struct {
	data    []byte
	decodes bool
	bad     bool
}

// Encode returns the encoding of the values that code passes to a Coder.
func Encode(code func(*Coder)) []byte {
	c := &Coder{}
	code(c)
	return c.data
}

// Decode sets the values that code passes to a Coder. A count in the data is bounded by the length of the data.
func Decode(data []byte, code func(*Coder)) error {
	c := &Coder{data: data, decodes: true}
	if code(c); c.bad {
		return ErrDamaged
	}
	return nil
}

// Decodes reports whether values are set.
func (c *Coder) Decodes() bool { return c.decodes }

// Uint codes a number.
func (c *Coder) Uint(n *uint64) {
	if !c.decodes {
		c.data = binary.AppendUvarint(c.data, *n)
		return
	}
	size := 0
	if *n, size = binary.Uvarint(c.data); size <= 0 {
		*n, c.bad, size = 0, true, len(c.data)
	}
	c.data = c.data[size:]
}

// Int codes a number that is rarely negative.
func (c *Coder) Int(n *int64) {
	u := uint64(*n)
	c.Uint(&u)
	*n = int64(u)
}

// Bool codes a truth value.
func (c *Coder) Bool(b *bool) {
	n := uint64(0)
	if *b {
		n = 1
	}
	c.Uint(&n)
	*b = n == 1
}

// Text codes a text.
func (c *Coder) Text(s *string) {
	n := c.length(len(*s))
	if !c.decodes {
		c.data = append(c.data, *s...)
		return
	}
	*s, c.data = string(c.data[:n]), c.data[n:]
}

// Version codes a constant text and reports whether it is there.
func (c *Coder) Version(want string) bool {
	got := want
	c.Text(&got)
	return got == want
}

// List codes a list by coding its items, each of which takes at least one byte.
func List[T any](c *Coder, all *[]T, item func(*T)) {
	n := c.length(len(*all))
	if c.decodes && n > 0 {
		*all = make([]T, n)
	}
	for i := range n {
		item(&(*all)[i])
	}
}

func (c *Coder) length(n int) int {
	number := uint64(n)
	if c.Uint(&number); c.decodes && number > uint64(len(c.data)) {
		c.bad, number = true, 0
	}
	return int(number)
}
