package cas

import (
	"fmt"
	"sync"

	"github.com/fxamacker/cbor/v2"
)

// Bounds of a payload. They keep a hostile or broken file from taking all
// memory or stack; no real node comes near them.
const (
	MaxPayload = 64 << 20 // bytes of CBOR
	MaxDepth   = 256      // arrays and objects inside one another
)

// maxSafe is the largest integer that a JSON number holds exactly for everyone:
// 2^53−1. Beyond it, numbers are floats.
const maxSafe = 1<<53 - 1

// Encode writes a value as canonical CBOR: integral numbers up to 2^53−1 as the
// shortest integer (so 1.0 is 1 and -0 is 0), every other number as a 64-bit
// float, keys sorted by their encoded bytes.
//
// Value is a JSON value, or anything that encoding/json can write. Numbers are
// JSON's: an integer beyond 2^53−1 is rounded to the nearest float. Errors: what
// JSON cannot say, text that is not UTF-8, [MaxDepth], [MaxPayload].
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
		return nil, fmt.Errorf("encode: payload of %d bytes is too big, at most %d", len(payload), MaxPayload)
	}
	return payload, nil
}

// encMode writes normalized values canonically. Only [normalize] may feed it:
// the library itself would let invalid UTF-8 through.
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
		panic("cas: " + err.Error()) // the options are constant: a test would see it
	}
	return m
})
