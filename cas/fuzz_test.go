package cas_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/fuzztest"
)

// Decoding never panics, and accepted data has one encoding.
func FuzzDecode(f *testing.F) {
	for _, v := range readVectors[[]hashVector](f, "hash-vectors.json") {
		if data, err := hex.DecodeString(v.CBORHex); err == nil && len(data) < 1000 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzztest.Bounded(t)()
		checked := cas.CheckCanonical(data)
		v, err := cas.Decode(data)
		if (checked == nil) != (err == nil) {
			t.Fatalf("the check says %v, the library %v", checked, err)
		}
		if err != nil {
			return
		}
		again, err := cas.Encode(v)
		if err != nil || !bytes.Equal(data, again) {
			t.Fatalf("%x was read as %v and written as %x (%v)", data, v, again, err)
		}
		decodeIntoKinds(data)
	})
}

// decodeIntoKinds must not panic; errors are expected for most inputs.
func decodeIntoKinds(payload []byte) {
	n := cas.Node{Payload: payload}
	for _, into := range []any{
		new(protocol.Workflow), new(protocol.Start), new(protocol.Step), new(protocol.Detail),
		new(protocol.Turn), new(protocol.Text), new(protocol.Suspend),
	} {
		_ = n.Decode(into)
	}
}

// A JSON value survives the store: its encoding is stable, and the value equals the result of encoding/json.
func FuzzEncode(f *testing.F) {
	for _, v := range readVectors[[]hashVector](f, "hash-vectors.json") {
		if len(v.Payload) < 1000 {
			f.Add([]byte(v.Payload))
		}
	}
	f.Add([]byte(`[1e400, 1e-400, -0.0, 9007199254740993, "\ud800"]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer fuzztest.Bounded(t)()
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		var v any
		if dec.Decode(&v) != nil {
			return
		}
		payload, err := cas.Encode(v)
		if err != nil {
			return
		}
		decoded, err := cas.Decode(payload)
		if err != nil {
			t.Fatalf("%q was written as %x, which cannot be read: %v", text, payload, err)
		}
		asJSON, err := json.Marshal(decoded)
		if err != nil {
			t.Fatal(err)
		}
		var again any
		if err := json.Unmarshal(asJSON, &again); err != nil {
			t.Fatal(err)
		}
		if twice, err := cas.Encode(again); err != nil || !bytes.Equal(payload, twice) {
			t.Fatalf("%q: %x became %x by way of JSON (%v)", text, payload, twice, err)
		}
	})
}

// Parsing a node file never panics, and marshaling an accepted one gives the same bytes.
func FuzzUnmarshalFile(f *testing.F) {
	n := textNode(f, cas.XXH3, "hi")
	f.Add([]byte(cas.MarshalFile(n)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzztest.Bounded(t)()
		for _, a := range []cas.Algorithm{cas.XXH3, cas.XXH64} {
			h := n.Hash
			if len(data) > 40 {
				h = a.Sum(cas.Hash(data[7:20]), data[28:max(28, len(data)-19)])
			}
			got, err := a.UnmarshalFile(h, data)
			if err == nil && !bytes.Equal(cas.MarshalFile(got), data) {
				t.Fatalf("%x was read as %+v", data, got)
			}
		}
	})
}
