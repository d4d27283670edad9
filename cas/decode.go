package cas

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"
)

// Decode decodes canonical CBOR to nil, bool, int64, float64, string, []any and map[string]any. It rejects
// anything that [Encode] would not have written.
func Decode(payload []byte) (any, error) {
	var v any
	if err := decodeInto(payload, &v); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return v, nil
}

// Value returns the payload as a JSON value.
func (n Node) Value() (any, error) {
	v, err := Decode(n.Payload)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", n.Hash, err)
	}
	return v, nil
}

// Decode decodes the payload into a struct with json tags, matched by exact case. It ignores fields that the
// struct doesn't have, because a newer program might have written them.
func (n Node) Decode(into any) error {
	if err := decodeInto(n.Payload, into); err != nil {
		return fmt.Errorf("node %s: decode: %w", n.Hash, err)
	}
	return nil
}

func decodeInto(payload []byte, into any) error {
	if err := CheckCanonical(payload); err != nil {
		return err
	}
	return decMode().Unmarshal(payload, into)
}

// decMode decodes canonical CBOR into the types of [Decode] or into structs. Types with JSON methods are
// decoded by way of JSON.
var decMode = sync.OnceValue(func() cbor.DecMode {
	m, err := cbor.DecOptions{
		DupMapKey:                 cbor.DupMapKeyEnforcedAPF,
		IndefLength:               cbor.IndefLengthForbidden,
		TagsMd:                    cbor.TagsForbidden,
		IntDec:                    cbor.IntDecConvertSignedOrFail,
		MaxNestedLevels:           MaxDepth,
		MaxArrayElements:          MaxPayload,
		MaxMapPairs:               MaxPayload,
		DefaultMapType:            reflect.TypeFor[map[string]any](),
		UTF8:                      cbor.UTF8RejectInvalid,
		FieldNameMatching:         cbor.FieldNameMatchingCaseSensitive,
		NaN:                       cbor.NaNDecodeForbidden,
		Inf:                       cbor.InfDecodeForbidden,
		JSONUnmarshalerTranscoder: jsonTranscoder{},
	}.DecMode()
	if err != nil {
		panic("cas: " + err.Error()) // the options are constant, so tests would detect it
	}
	return m
})

// jsonTranscoder converts a CBOR value to JSON.
type jsonTranscoder struct{}

// Transcode implements cbor.Transcoder.
func (jsonTranscoder) Transcode(dst io.Writer, src io.Reader) error {
	data, err := io.ReadAll(src)
	if err != nil {
		return err
	}
	v, err := Decode(data)
	if err != nil {
		return err
	}
	return json.NewEncoder(dst).Encode(v)
}

// Bounds of a payload, far above real nodes. They protect memory and stack from hostile or damaged files.
const (
	MaxPayload = 64 << 20 // bytes of CBOR
	MaxDepth   = 256      // nesting of arrays and objects
)

// maxSafe is the largest integer that every JSON implementation represents exactly: 2^53−1. Larger numbers
// are floats.
const maxSafe = 1<<53 - 1

// Encode encodes a value as canonical CBOR: integers up to 2^53−1 in the shortest form (so 1.0 becomes 1, and
// -0 becomes 0), other numbers as 64-bit floats, keys sorted by their encoded bytes.
//
// value is a JSON value, or anything that encoding/json can encode. As in JSON, an integer beyond 2^53−1 is
// rounded to the nearest float. Encode returns an error for values that JSON can't represent, invalid UTF-8,
// and values that exceed [MaxDepth] or [MaxPayload].
func Encode(value any) ([]byte, error) {
	v, err := normalize(value)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	payload, err := encMode().Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	if len(payload) > MaxPayload {
		return nil, fmt.Errorf("encode: payload has %d bytes; the limit is %d", len(payload), MaxPayload)
	}
	return payload, nil
}

// encMode encodes normalized values canonically. Use it only on the result of [normalize], because the
// library itself doesn't reject invalid UTF-8.
var encMode = sync.OnceValue(func() cbor.EncMode {
	m, err := cbor.EncOptions{
		Sort:          cbor.SortBytewiseLexical,
		ShortestFloat: cbor.ShortestFloatNone,
		NaNConvert:    cbor.NaNConvertReject,
		InfConvert:    cbor.InfConvertReject,
		IndefLength:   cbor.IndefLengthForbidden,
		TagsMd:        cbor.TagsForbidden,
	}.EncMode()
	if err != nil {
		panic("cas: " + err.Error()) // the options are constant, so tests would detect it
	}
	return m
})

// CheckCanonical returns an error for the first byte at which a payload differs from the output of [Encode].
// Each value must have one encoding, so that equal contents have equal hashes; the CBOR library alone would
// accept several.
func CheckCanonical(payload []byte) error {
	if len(payload) > MaxPayload {
		return fmt.Errorf("payload has %d bytes; the limit is %d", len(payload), MaxPayload)
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

// The major types of CBOR (RFC 8949, section 3.1).
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

// checker validates one payload; pos is the first byte not yet accepted.
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

// head reads the initial byte and its argument, which must be in the shortest form. It accepts only the
// simple values that JSON has.
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
	var smallest uint64 // that requires this size
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
	return fmt.Errorf("simple value or float of kind %d is not canonical JSON", info)
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

// normalize converts a value to the Go types of canonical CBOR: nil, bool, int64, float64, string, []any and
// map[string]any. It never modifies its argument.
func normalize(value any) (any, error) { return normalizeAt(value, 0) }

func normalizeAt(value any, depth int) (any, error) {
	switch v := value.(type) {
	case nil, bool:
		return v, nil
	case string:
		return v, checkText(v)
	case float64:
		return normalizeFloat(v)
	case json.Number:
		return normalizeNumber(v)
	case int:
		return normalizeInt(int64(v)), nil
	case int64:
		return normalizeInt(v), nil
	case uint64:
		if v > maxSafe {
			return float64(v), nil
		}
		return int64(v), nil
	case []any:
		return normalizeList(v, depth+1)
	case map[string]any:
		return normalizeMap(v, depth+1)
	}
	return normalizeOther(value, depth)
}

func normalizeInt(n int64) any {
	if n > maxSafe || n < -maxSafe {
		return float64(n)
	}
	return n
}

func normalizeFloat(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%v is not a JSON number", f)
	}
	if f == math.Trunc(f) && math.Abs(f) <= maxSafe {
		return int64(f), nil
	}
	return f, nil
}

func normalizeNumber(n json.Number) (any, error) {
	// Go's parsers also accept forms that JSON doesn't: 0x10, 1_000, inf.
	if !json.Valid([]byte(n)) {
		return nil, fmt.Errorf("number %.40q is not JSON", string(n))
	}
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return normalizeInt(i), nil
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return nil, fmt.Errorf("number %.40q: %w", string(n), errors.Unwrap(err))
	}
	return normalizeFloat(f)
}

func normalizeList(list []any, depth int) (any, error) {
	if depth > MaxDepth {
		return nil, errTooDeep()
	}
	out := make([]any, len(list))
	for i, v := range list {
		n, err := normalizeAt(v, depth)
		if err != nil {
			return nil, fmt.Errorf("%d: %w", i, err)
		}
		out[i] = n
	}
	return out, nil
}

func normalizeMap(m map[string]any, depth int) (any, error) {
	if depth > MaxDepth {
		return nil, errTooDeep()
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		if err := checkText(k); err != nil {
			return nil, fmt.Errorf("key: %w", err)
		}
		n, err := normalizeAt(v, depth)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		out[k] = n
	}
	return out, nil
}

// normalizeOther converts structs and named types by way of encoding/json. That package silently replaces
// invalid UTF-8, and an integer that JSON can't represent could not be read back, hence the check.
func normalizeOther(value any, depth int) (any, error) {
	switch value.(type) {
	case json.Marshaler, encoding.TextMarshaler:
	default:
		if v := reflect.ValueOf(value); v.Kind() == reflect.String {
			return normalizeAt(v.String(), depth)
		}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if err := checkExact(reflect.ValueOf(value)); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return normalizeAt(v, depth)
}

// checkExact checks every string and integer that encoding/json would encode. It runs afterwards, because
// encoding/json detects cycles.
func checkExact(v reflect.Value) error {
	if !v.IsValid() || v.Type().Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		return checkText(v.String())
	case reflect.Int, reflect.Int64:
		if n := v.Int(); n > maxSafe || n < -maxSafe {
			return fmt.Errorf("%d is outside the range that JSON stores exactly", n)
		}
	case reflect.Pointer, reflect.Interface:
		return checkExact(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if err := checkExact(v.Field(i)); err != nil {
				return fmt.Errorf("%s: %w", v.Type().Field(i).Name, err)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := checkExact(v.Index(i)); err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
	case reflect.Map:
		for k, e := range v.Seq2() {
			if err := errors.Join(checkExact(k), checkExact(e)); err != nil {
				return fmt.Errorf("%v: %w", k, err)
			}
		}
	}
	return nil
}

func checkText(s string) error {
	if utf8.ValidString(s) {
		return nil
	}
	return fmt.Errorf("%.40q is not UTF-8", s)
}

func errTooDeep() error { return fmt.Errorf("more than %d levels deep", MaxDepth) }

// A node file is the CBOR map {type, payload, timestamp}, with the keys in that order, byte for byte as in
// the original:
//
//	a3 64 "type" 6d <13 characters> 67 "payload" <CBOR> 69 "timestamp" <integer>
const (
	fileHead   = "\xa3\x64type\x6d"
	fileMiddle = "\x67payload"
	fileTail   = "\x69timestamp"

	payloadStart = len(fileHead) + 13 + len(fileMiddle)

	// MaxFile bounds a node file, in bytes.
	MaxFile = payloadStart + MaxPayload + len(fileTail) + 9
)

// MarshalFile returns the content of a node's file.
func MarshalFile(n Node) []byte {
	b := make([]byte, 0, payloadStart+len(n.Payload)+len(fileTail)+9)
	b = append(b, fileHead...)
	b = append(b, n.Type...)
	b = append(b, fileMiddle...)
	b = append(b, n.Payload...)
	b = append(b, fileTail...)
	return appendUint(b, uint64(n.Timestamp))
}

// TypeOf returns the type of the node in a file, without checking more than its beginning; "" if there is none.
func TypeOf(file []byte) Hash {
	typ, found := bytes.CutPrefix(file, []byte(fileHead))
	if !found || len(typ) < 13 {
		return ""
	}
	return Hash(typ[:13])
}

// UnmarshalFile parses the file of node h and verifies its hash. The error is a [*CorruptError] without a
// path, or a [*RedactedError] if the file contains a tombstone. Only the timestamp isn't covered by a hash.
// The payload shares memory with data.
func (a Algorithm) UnmarshalFile(h Hash, data []byte) (Node, error) {
	if IsTombstone(data) {
		t, err := UnmarshalTombstone(h, data)
		if err != nil {
			return Node{}, err
		}
		return Node{}, &RedactedError{Tombstone: t}
	}
	n, err := parseFile(data)
	if err != nil {
		return Node{}, &CorruptError{Hash: h, Reason: err.Error(), Cut: isCut(data)}
	}
	n.Hash = h
	if !a.Matches(n) {
		return Node{}, &CorruptError{Hash: h, Reason: "its content has another hash, " + string(a.Sum(n.Type, n.Payload))}
	}
	return n, nil
}

func parseFile(data []byte) (Node, error) {
	switch {
	case len(data) == 0:
		return Node{}, errors.New("the file is empty")
	case len(data) > MaxFile:
		return Node{}, fmt.Errorf("the file has %d bytes; the limit is %d", len(data), MaxFile)
	case !bytes.HasPrefix(data, []byte(fileHead)):
		return Node{}, errors.New("the file has no node header")
	case len(data) < payloadStart:
		return Node{}, errors.New("the file is truncated")
	case string(data[payloadStart-len(fileMiddle):payloadStart]) != fileMiddle:
		return Node{}, errors.New("the file is damaged near its start")
	}
	end, timestamp, ok := findTail(data)
	if !ok {
		return Node{}, errors.New("the file is truncated or damaged at its end")
	}
	typ := data[len(fileHead) : len(fileHead)+13]
	return Node{Type: Hash(typ), Payload: data[payloadStart:end:end], Timestamp: timestamp}, nil
}

// isCut reports whether data is a proper prefix of a valid file.
func isCut(data []byte) bool {
	data = bytes.TrimRight(data, "\x00")
	head := data[:min(len(data), len(fileHead))]
	return strings.HasPrefix(fileHead, string(head)) &&
		(len(data) < payloadStart || string(data[payloadStart-len(fileMiddle):payloadStart]) == fileMiddle)
}

// findTail returns the end of the payload. The timestamp's key can't overlap itself, so at most one length of
// the integer fits.
func findTail(data []byte) (end int, timestamp int64, ok bool) {
	for _, size := range []int{9, 5, 3, 2, 1} {
		end := len(data) - size - len(fileTail)
		if end <= payloadStart || string(data[end:len(data)-size]) != fileTail {
			continue
		}
		n, ok := parseUint(data[len(data)-size:])
		return end, int64(n), ok && n <= maxSafe
	}
	return 0, 0, false
}

// appendUint appends an unsigned integer in its shortest form.
func appendUint(b []byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(b, byte(n))
	case n < 1<<8:
		return append(b, 24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, 25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, 26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 27), n)
}

// parseUint parses b completely as an unsigned integer in its shortest form.
func parseUint(b []byte) (uint64, bool) {
	c := checker{data: b}
	major, n, err := c.head()
	return n, err == nil && major == majorUint && c.pos == len(b)
}
