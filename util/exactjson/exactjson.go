// Package exactjson parses JSON without losing information. Package encoding/json silently drops the first of
// two equal keys, rounds integers that don't fit a float64, and replaces invalid Unicode. This package
// returns an error with a position and a remedy instead, so that stored data equals the input.
package exactjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds nesting; encoding/json itself allows 10,000 levels.
const maxDepth = 1000

// Parse parses exactly one JSON value. Numbers are json.Number, as written.
func Parse(data []byte) (any, error) {
	if err := Check(data); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// Check returns an error if a text isn't exactly one JSON value or if parsing would change it: a duplicate
// key, an integer that can't be represented (see [Keeps]), half a surrogate pair, or invalid UTF-8.
func Check(data []byte) error {
	if err := checkText(data); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	c := checker{data: data, dec: dec}
	if err := c.value(0); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return c.fail("more than one value")
	}
	return nil
}

// Keeps reports whether a number is unchanged when parsed as a float64 and formatted again. It returns true
// for fractions, which everyone expects to be rounded, unlike integers such as ids. Integers within ±(2^53-1)
// are always kept; numbers beyond float64's range never are.
func Keeps(number string) bool {
	digits := strings.TrimPrefix(number, "-")
	const surely = 15 // digits, less than 2^53
	if len(digits) <= surely && !strings.ContainsAny(digits, "eE") {
		return true
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return false
	}
	const beyond = 1 << 53 // could be 2^53+1, rounded
	if -beyond < f && f < beyond {
		return true
	}
	const longest = 1000 // characters; no realistic fraction is longer
	value, ok := new(big.Rat), len(number) <= longest
	if ok {
		_, ok = value.SetString(number)
	}
	if !ok {
		return false
	}
	shortest, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'e', -1, 64))
	return !value.IsInt() || value.Cmp(shortest) == 0
}

// NotKept returns the message for a number that [Keeps] rejects.
func NotKept(number string) string {
	why := "whole numbers beyond 9007199254740991 are rounded"
	if _, err := strconv.ParseFloat(number, 64); err != nil {
		why = "it is larger than 1.79e308"
	}
	return fmt.Sprintf("cannot store %.40s: %s; write it as a string, in quotes", number, why)
}

// checker walks over the tokens of a text.
type checker struct {
	data []byte
	dec  *json.Decoder
}

func (c *checker) value(depth int) error {
	if depth > maxDepth {
		return c.fail(fmt.Sprintf("more than %d levels deep", maxDepth))
	}
	token, err := c.next()
	if err != nil {
		return err
	}
	switch t := token.(type) {
	case json.Number:
		if !Keeps(string(t)) {
			return failAt(c.data, int(c.dec.InputOffset())-len(t)+1, NotKept(string(t)))
		}
	case json.Delim:
		if t == '{' {
			return c.object(depth)
		}
		return c.list(depth)
	}
	return nil
}

func (c *checker) list(depth int) error {
	for c.dec.More() {
		if err := c.value(depth + 1); err != nil {
			return err
		}
	}
	_, err := c.next()
	return err
}

func (c *checker) object(depth int) error {
	seen := map[string]bool{}
	for c.dec.More() {
		token, err := c.next()
		if err != nil {
			return err
		}
		key, ok := token.(string)
		if !ok { // the decoder would have rejected it
			return c.fail("a key must be a string")
		}
		if seen[key] {
			return c.fail(fmt.Sprintf("duplicate key %.80q", key))
		}
		seen[key] = true
		if err := c.value(depth + 1); err != nil {
			return err
		}
	}
	_, err := c.next()
	return err
}

func (c *checker) next() (json.Token, error) {
	token, err := c.dec.Token()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("unexpected end of JSON")
	case err != nil:
		return nil, c.fail(err.Error())
	}
	return token, nil
}

// fail returns an error at the decoder's position, after the last token.
func (c *checker) fail(what string) error { return failAt(c.data, int(c.dec.InputOffset()), what) }

func failAt(data []byte, at int, what string) error {
	before := data[:min(at, len(data))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return fmt.Errorf("line %d, column %d: %s", line, max(column, 1), what)
}

// checkText checks for what a decoder silently replaces. It only has to find escapes, which occur only in
// strings.
func checkText(data []byte) error {
	if !utf8.Valid(data) {
		at := 0
		for r, n := utf8.DecodeRune(data); r != utf8.RuneError || n > 1; r, n = utf8.DecodeRune(data[at:]) {
			at += n
		}
		return failAt(data, at+1, "this is not UTF-8")
	}
	for at := 0; ; {
		next := bytes.IndexByte(data[at:], '\\')
		if next < 0 || at+next+1 >= len(data) {
			return nil
		}
		at += next
		if data[at+1] != 'u' {
			at += 2
			continue
		}
		unit := escaped(data[at:])
		size := 6
		if utf16.IsSurrogate(unit) {
			if utf16.DecodeRune(unit, escaped(data[min(at+6, len(data)):])) == utf8.RuneError {
				return failAt(data, at+1, fmt.Sprintf(`\u%04x is half of a character: the other half of the pair is missing`, unit))
			}
			size = 12
		}
		at = min(at+size, len(data))
	}
}

// escaped decodes \uXXXX at the start of a text; 0 if there is none.
func escaped(data []byte) rune {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}
