package cas

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"sync"

	"github.com/fxamacker/cbor/v2"
)

// Decode reads canonical CBOR: nil, bool, int64, float64, string, []any,
// map[string]any. It refuses everything that [Encode] would not have written.
func Decode(payload []byte) (any, error) {
	var v any
	if err := decodeInto(payload, &v); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return v, nil
}

// Value is the payload as a JSON value.
func (n Node) Value() (any, error) {
	v, err := Decode(n.Payload)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", n.Hash, err)
	}
	return v, nil
}

// Decode reads the payload into a struct with json tags, matched by their exact
// case. Fields that the struct does not have are ignored: a newer program may
// have written them.
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

// decMode reads canonical CBOR into the types of [Decode] or into structs.
// Types with JSON methods of their own are read through JSON.
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
		panic("cas: " + err.Error()) // the options are constant: a test would see it
	}
	return m
})

// jsonTranscoder turns one CBOR value into JSON.
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
